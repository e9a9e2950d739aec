package record

import "io"

// fault says what is wrong with a record. It wraps ErrRecord.
type fault string

func (f fault) Error() string { return string(f) }

// Is makes errors.Is(err, ErrRecord) true.
func (f fault) Is(target error) bool { return target == ErrRecord }

// The faults that a walk over records finds.
const (
	faultShort         = fault("the records end before the count that the batch declares")
	faultTrailing      = fault("bytes behind the last record")
	faultVarint        = fault("a variable-length integer is too long")
	faultLength        = fault("the record's length does not fit its batch")
	faultContent       = fault("the record's length does not match its content")
	faultKeyLength     = fault("the key's length does not fit the record")
	faultValueLength   = fault("the value's length does not fit the record")
	faultHeaders       = fault("the number of headers does not fit the record")
	faultHeaderKey     = fault("a header key's length does not fit the record")
	faultHeaderValue   = fault("a header value's length does not fit the record")
	nullLength         = -1
	minHeaderSize      = 2
	maxVarintBytes     = 10
	recordAttributeLen = 1
)

// shape is what a walk learns about one record without looking at its bytes.
type shape struct {
	offsetDelta    int32
	timestampDelta int64
	keyLength      int32
	// userBytes is key, value, header keys and header values together.
	userBytes int64
	// headers is how many there are.
	headers int32
}

// cursor walks over records, in place for a plain payload or through the window of a stream for a compressed one. It allocates
// nothing per record.
type cursor struct {
	buf []byte
	// at is the number of bytes consumed.
	at int64
	// pulled is the number of bytes that came from the stream, limit the most that may.
	pulled, limit int64
	st            stream
	// end is the position at which the record being read ends.
	end int64
	// want, if not empty, is a header that the walk looks for, and got the value of the last one of that name in the record, nil if it has
	// none or a null one. Needs a cursor without a stream.
	want string
	got  []byte
}

// open points the cursor at a payload. The caller calls close, also after an error.
func (c *cursor) open(codec Codec, payload []byte, limit int) error {
	c.limit = int64(limit)
	if codec == None {
		c.buf = payload
		return nil
	}
	st, err := openStream(codec, payload, c.limit)
	c.st = st
	return err
}

func (c *cursor) close() {
	if c.st != nil {
		c.st.close()
		c.st = nil
	}
}

// refill replaces the empty window. Errors: io.EOF, ErrCompressed, ErrTooLarge.
func (c *cursor) refill() error {
	if c.st == nil {
		return io.EOF
	}
	piece, err := c.st.next()
	if err != nil {
		return err
	}
	c.pulled += int64(len(piece))
	if c.pulled > c.limit {
		return ErrTooLarge
	}
	c.buf = piece
	return nil
}

// finish checks that nothing is left; it also makes a stream check its own end (checksums, bytes behind the frame).
func (c *cursor) finish() error {
	if len(c.buf) > 0 {
		return faultTrailing
	}
	switch err := c.refill(); err {
	case nil:
		return faultTrailing
	case io.EOF:
		return nil
	default:
		return err
	}
}

func (c *cursor) byte() (byte, error) {
	for len(c.buf) == 0 {
		if err := c.refill(); err != nil {
			return 0, endAs(err, faultShort)
		}
	}
	b := c.buf[0]
	c.buf = c.buf[1:]
	c.at++
	return b, nil
}

// varint reads a zigzag integer of at most 64 bits. Most take one byte or two.
func (c *cursor) varint() (int64, error) {
	if b := c.buf; len(b) > 1 {
		if b[0] < 0x80 {
			c.buf = b[1:]
			c.at++
			return unzigzag(uint64(b[0])), nil
		}
		if b[1] < 0x80 {
			c.buf = b[2:]
			c.at += 2
			return unzigzag(uint64(b[0]&0x7f) | uint64(b[1])<<7), nil
		}
	}
	return c.longVarint()
}

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// longVarint reads an integer of any length, and one that lies across windows.
func (c *cursor) longVarint() (int64, error) {
	var u uint64
	for i := range maxVarintBytes {
		b, err := c.byte()
		if err != nil {
			return 0, err
		}
		if i == maxVarintBytes-1 && b > 1 {
			return 0, faultVarint
		}
		u |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return unzigzag(u), nil
		}
	}
	return 0, faultVarint
}

// varint32 reads a zigzag integer that the format says has 32 bits.
func (c *cursor) varint32() (int32, error) {
	v, err := c.varint()
	if err == nil && v != int64(int32(v)) {
		err = faultVarint
	}
	return int32(v), err
}

// skip consumes n bytes. It returns them when they lie in the window together, which is always so without a stream.
func (c *cursor) skip(n int64) ([]byte, error) {
	c.at += n
	if n <= int64(len(c.buf)) {
		part := c.buf[:n:n]
		c.buf = c.buf[n:]
		return part, nil
	}
	for n > int64(len(c.buf)) {
		n -= int64(len(c.buf))
		c.buf = nil
		if err := c.refill(); err != nil {
			return nil, endAs(err, faultShort)
		}
	}
	c.buf = c.buf[n:]
	return nil, nil
}

// field reads a length and skips so many bytes. null is allowed where nullable.
func (c *cursor) field(nullable bool, f fault) (length int32, part []byte, err error) {
	length, err = c.varint32()
	if err != nil {
		return 0, nil, err
	}
	if length == nullLength && nullable {
		return length, nil, nil
	}
	if length < 0 || int64(length) > c.end-c.at {
		return 0, nil, f
	}
	part, err = c.skip(int64(length))
	return length, part, err
}

// record reads the next record. With keep it also fills in the record, whose bytes are then views of the window: that needs a cursor
// without a stream.
func (c *cursor) record(keep *Record) (s shape, err error) {
	length, err := c.varint32()
	if err != nil {
		return s, err
	}
	if length < minRecordSize-1 || c.st == nil && int64(length) > int64(len(c.buf)) {
		return s, faultLength
	}
	if c.st != nil && int64(length) > c.limit-c.at {
		return s, ErrTooLarge
	}
	c.end = c.at + int64(length)
	if _, err = c.skip(recordAttributeLen); err != nil {
		return s, err
	}
	if s.timestampDelta, err = c.varint(); err != nil {
		return s, err
	}
	if s.offsetDelta, err = c.varint32(); err != nil {
		return s, err
	}
	keyLength, key, err := c.field(true, faultKeyLength)
	if err != nil {
		return s, err
	}
	valueLength, value, err := c.field(true, faultValueLength)
	if err != nil {
		return s, err
	}
	s.keyLength = keyLength
	s.userBytes = int64(max(keyLength, 0)) + int64(max(valueLength, 0))
	if keep != nil {
		*keep = Record{OffsetDelta: s.offsetDelta, TimestampDelta: s.timestampDelta, Key: key, Value: value}
	}
	if err = c.headers(&s, keep); err != nil {
		return s, err
	}
	if c.at != c.end {
		return s, faultContent
	}
	return s, nil
}

func (c *cursor) headers(s *shape, keep *Record) error {
	count, err := c.varint32()
	if err != nil {
		return err
	}
	if count < 0 || int64(count) > (c.end-c.at)/minHeaderSize {
		return faultHeaders
	}
	s.headers = count
	c.got = nil
	if keep != nil && count > 0 && c.want == "" {
		keep.Headers = make([]Header, 0, count)
	}
	for range count {
		keyLength, key, err := c.field(false, faultHeaderKey)
		if err != nil {
			return err
		}
		valueLength, value, err := c.field(true, faultHeaderValue)
		if err != nil {
			return err
		}
		s.userBytes += int64(keyLength) + int64(max(valueLength, 0))
		if c.want != "" {
			if string(key) == c.want {
				c.got = value
			}
		} else if keep != nil {
			keep.Headers = append(keep.Headers, Header{Key: string(key), Value: value})
		}
	}
	return nil
}

// endAs replaces io.EOF by what the end means at this place.
func endAs(err error, f fault) error {
	if err == io.EOF {
		return f
	}
	return err
}
