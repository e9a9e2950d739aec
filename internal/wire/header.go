package wire

import "encoding/binary"

// RequestHeader is what every request begins with.
type RequestHeader struct {
	Key, Version  int16
	CorrelationID int32
	// ClientID is nil when the client sent none.
	ClientID *string
}

// fixedHeader is the length of key, version and correlation id.
const fixedHeader = 8

// ParseRequestHeader reads the header of a frame; body is the rest of it.
//
// Errors: ErrShort and ErrMalformed for bytes that are no header; else those of Check, with as much of the header as there is:
// for ErrVersionTooOld all of it and the body, for ErrUnknownKey and ErrVersionTooNew no body, since the layout is unknown.
func ParseRequestHeader(frame []byte) (h RequestHeader, body []byte, err error) {
	var p HeaderParser
	return p.Parse(frame)
}

// clientIDKept is the longest client id that is kept for the next request, in bytes: an idle connection must not hold the 32 KiB that an id
// may have.
const clientIDKept = 256

// HeaderParser parses the headers of one connection, whose client id is the same in each: it is allocated once.
type HeaderParser struct {
	last *string
}

// Parse is ParseRequestHeader.
func (p *HeaderParser) Parse(frame []byte) (h RequestHeader, body []byte, err error) {
	if len(frame) < fixedHeader {
		return h, nil, ErrShort
	}
	h.Key = int16(binary.BigEndian.Uint16(frame))
	h.Version = int16(binary.BigEndian.Uint16(frame[2:]))
	h.CorrelationID = int32(binary.BigEndian.Uint32(frame[4:]))
	clientID, rest, idErr := p.clientID(frame[fixedHeader:])
	h.ClientID = clientID
	err = Check(h.Key, h.Version)
	if err == ErrUnknownKey || err == ErrVersionTooNew {
		return h, nil, err
	}
	if idErr != nil {
		return h, nil, idErr
	}
	if isFlexible(h.Key, h.Version) {
		s := scanner{b: rest}
		s.tags()
		if s.err != nil {
			return h, nil, s.err
		}
		rest = s.b
	}
	return h, rest, err
}

// clientID reads the classic nullable string, which stays classic in flexible headers.
func (p *HeaderParser) clientID(b []byte) (id *string, rest []byte, err error) {
	if len(b) < 2 {
		return nil, nil, ErrShort
	}
	n := int(int16(binary.BigEndian.Uint16(b)))
	b = b[2:]
	switch {
	case n == -1:
		return nil, b, nil
	case n < 0:
		return nil, nil, ErrMalformed
	case n > len(b):
		return nil, nil, ErrShort
	}
	if p.last == nil || *p.last != string(b[:n]) {
		s := string(b[:n])
		if n > clientIDKept {
			return &s, b[n:], nil
		}
		p.last = &s
	}
	return p.last, b[n:], nil
}

// AppendResponseHeader appends the header of the response to a request of this key, version and correlation id, without the frame's
// size. A flexible response has a tag section, which is empty; ApiVersions never has one, since its reader may know no better.
func AppendResponseHeader(dst []byte, key, version int16, correlationID int32) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(correlationID))
	if key != KeyApiVersions && isFlexible(key, version) {
		dst = append(dst, 0)
	}
	return dst
}

func isFlexible(key, version int16) bool {
	a, ok := Lookup(key)
	return ok && version >= a.Flexible
}
