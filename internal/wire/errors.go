package wire

import "errors"

var (
	// ErrFrameSize means that a frame announces a size that is zero, negative or above the limit (K1-K4).
	ErrFrameSize = errors.New("frame size out of bounds")
	// ErrHTTP means that the first bytes of a frame are an HTTP request (K6).
	ErrHTTP = errors.New("HTTP request on a Kafka port")
	// ErrTLS means that the first bytes of a frame are a TLS handshake on a plaintext listener (K7).
	ErrTLS = errors.New("TLS handshake on a plaintext Kafka port")
	// ErrBudget means that a frame or its decoded form would take more memory than allowed (I14).
	ErrBudget = errors.New("request is over its memory budget")
	// ErrShort means that bytes end inside a field.
	ErrShort = errors.New("message is cut short")
	// ErrTrailing means that bytes follow the end of a message (K14).
	ErrTrailing = errors.New("bytes behind the end of the message")
	// ErrMalformed means that a field cannot be what it says: a negative length, an overlong varint.
	ErrMalformed = errors.New("message is malformed")
	// ErrUnknownKey means that no API has this key (K8).
	ErrUnknownKey = errors.New("unknown API key")
	// ErrVersionTooNew means that the version is above what we know, so that its layout is unknown (K10).
	ErrVersionTooNew = errors.New("API version is above the supported range")
	// ErrVersionTooOld means that the version is below what we serve, but its layout is known (K10).
	ErrVersionTooOld = errors.New("API version is below the supported range")
	// ErrUnknownRelease means that Cap does not know the release.
	ErrUnknownRelease = errors.New("unknown release of Kafka")
)
