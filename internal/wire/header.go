package wire

// RequestHeader is what every request begins with.
type RequestHeader struct {
	Key, Version  int16
	CorrelationID int32
	// ClientID is nil when the client sent none.
	ClientID *string
}

// ParseRequestHeader reads the header of a frame; body is the rest of it. For a key or version that is not in the table the fields up
// to the correlation id are filled, body is nil and the error says which (see Check).
func ParseRequestHeader(frame []byte) (h RequestHeader, body []byte, err error) {
	panic("being written")
}

// AppendResponseHeader appends the header of the response to a request of this key, version and correlation id, without the frame's
// size.
func AppendResponseHeader(dst []byte, key, version int16, correlationID int32) []byte {
	panic("being written")
}
