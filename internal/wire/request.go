package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// NewRequest returns an empty request of this key and version, with defaults set. Errors: those of Check.
func NewRequest(key, version int16) (kmsg.Request, error) {
	if err := Check(key, version); err != nil {
		return nil, err
	}
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	return req, nil
}

// DecodeRequest decodes body into req, whose version is set. Byte fields of req are views of body; strings are copies.
//
// The body is scanned first: it must be exactly one request, and its decoded form must not take more than maxDecodedRequest bytes (the
// bytes of fields, which are views, do not count). Errors: ErrUnknownKey, ErrShort, ErrMalformed, ErrTrailing, ErrBudget. All of them
// mean that the connection is to be closed.
func DecodeRequest(req kmsg.Request, body []byte) error {
	if err := scanRequest(req.Key(), req.GetVersion(), body, maxDecodedRequest); err != nil {
		return err
	}
	if err := req.ReadFrom(body); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// AppendResponse appends a whole frame to dst: size, response header and body.
func AppendResponse(dst []byte, resp kmsg.Response, correlationID int32) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = AppendResponseHeader(dst, resp.Key(), resp.GetVersion(), correlationID)
	dst = resp.AppendTo(dst)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-frameSizeBytes))
	return dst
}
