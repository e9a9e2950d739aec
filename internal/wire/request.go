package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// NewRequest returns an empty request of this key and version, with defaults set. Errors: those of Check.
func NewRequest(key, version int16) (kmsg.Request, error) { panic("being written") }

// DecodeRequest decodes body into req, whose version is set. Byte fields of req are views of body. Errors: ErrShort, ErrMalformed,
// ErrTrailing, ErrBudget.
func DecodeRequest(req kmsg.Request, body []byte) error { panic("being written") }

// AppendResponse appends a whole frame: size, header and body.
func AppendResponse(dst []byte, resp kmsg.Response, correlationID int32) []byte {
	panic("being written")
}

// RefuseOld decodes body, a request of a version below our minimum, and returns the answer UNSUPPORTED_VERSION in that version's
// own layout.
func RefuseOld(h RequestHeader, body []byte) (kmsg.Response, error) { panic("being written") }

// RefuseApiVersions returns the answer to an ApiVersions request above our maximum: version 0's layout, UNSUPPORTED_VERSION and our
// range (KIP-511).
func RefuseApiVersions() kmsg.Response { panic("being written") }
