package wire

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"strandline.dev/internal/kafka"
)

// Decoder reads what an Encoder wrote. Its error is sticky: after the first fault every method returns a zero value, so that a caller
// reads all fields and asks once, with Done or Err. Every length is compared with the bytes left before anything is allocated (I14).
// Strings are copied; byte fields are views of the input.
type Decoder struct {
	b   []byte
	err error
}

// NewDecoder returns a decoder of b.
func NewDecoder(b []byte) *Decoder { return &Decoder{b: b} }

// Err is the first fault, or nil. Errors: ErrShort, ErrMalformed, ErrTrailing, or what Fail was given.
func (d *Decoder) Err() error { return d.err }

// Rest is the number of bytes not read yet; 0 after a fault.
func (d *Decoder) Rest() int { return len(d.b) }

// Done returns the first fault, or ErrTrailing if bytes are left.
func (d *Decoder) Done() error {
	if d.err == nil && len(d.b) > 0 {
		d.Fail(ErrTrailing)
	}
	return d.err
}

// Fail makes err the decoder's fault unless there is one already: for callers that find a value impossible.
func (d *Decoder) Fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}

// Header reads the type and version that begin a message.
func (d *Decoder) Header() (typ uint16, version uint8) {
	b := d.take(3)
	if b == nil {
		return 0, 0
	}
	return binary.BigEndian.Uint16(b), b[2]
}

// ExpectHeader reads the header of a message of one type and returns its version, which is at most maxVersion. Another type or a newer
// version is a fault that wraps ErrMalformed: it must stop the reader, not be skipped.
func (d *Decoder) ExpectHeader(typ uint16, maxVersion uint8) (version uint8) {
	t, v := d.Header()
	if d.err == nil && (t != typ || v > maxVersion) {
		d.Fail(fmt.Errorf("%w: message type %d version %d, want type %d version at most %d", ErrMalformed, t, v, typ, maxVersion))
		return 0
	}
	return v
}

// Bool reads one byte that must be 0 or 1.
func (d *Decoder) Bool() bool {
	b := d.take(1)
	if b == nil {
		return false
	}
	if b[0] > 1 {
		d.Fail(ErrMalformed)
		return false
	}
	return b[0] == 1
}

// Int8 reads one byte.
func (d *Decoder) Int8() int8 {
	if b := d.take(1); b != nil {
		return int8(b[0])
	}
	return 0
}

// Int16 reads two bytes.
func (d *Decoder) Int16() int16 {
	if b := d.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

// Int32 reads four bytes.
func (d *Decoder) Int32() int32 { return int32(d.Uint32()) }

// Int64 reads eight bytes.
func (d *Decoder) Int64() int64 { return int64(d.Uint64()) }

// Uint32 reads four bytes.
func (d *Decoder) Uint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// Uint64 reads eight bytes.
func (d *Decoder) Uint64() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Uvarint reads an unsigned varint. Overlong forms are faults: one value has one encoding.
func (d *Decoder) Uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	switch {
	case d.err != nil:
		return 0
	case n == 0:
		d.Fail(ErrShort)
		return 0
	case n < 0 || n > 1 && d.b[n-1] == 0:
		d.Fail(ErrMalformed)
		return 0
	}
	d.b = d.b[n:]
	return v
}

// String reads a string that is not null and valid UTF-8.
func (d *Decoder) String() string {
	s := d.NullableString()
	if s == nil {
		d.Fail(ErrMalformed)
		return ""
	}
	return *s
}

// NullableString reads a string, nil for null.
func (d *Decoder) NullableString() *string {
	b := d.NullableBytes()
	if b == nil {
		return nil
	}
	if !utf8.Valid(b) {
		d.Fail(ErrMalformed)
		return nil
	}
	s := string(b)
	return &s
}

// Bytes reads bytes that are not null; they are a view of the input.
func (d *Decoder) Bytes() []byte {
	b := d.NullableBytes()
	if b == nil {
		d.Fail(ErrMalformed)
	}
	return b
}

// NullableBytes reads bytes, nil for null; they are a view of the input.
func (d *Decoder) NullableBytes() []byte {
	n := d.Uvarint()
	if n == 0 {
		return nil
	}
	if n-1 > uint64(len(d.b)) {
		d.Fail(ErrShort)
		return nil
	}
	return d.take(int(n - 1))
}

// ID reads the 16 bytes of an id.
func (d *Decoder) ID() kafka.ID {
	var id kafka.ID
	copy(id[:], d.take(len(id)))
	return id
}

// ArrayLen reads the length of an array that is not null. Each element takes at least minElement bytes (1 or more), so a length that
// cannot fit in the bytes left is a fault and never an allocation.
func (d *Decoder) ArrayLen(minElement int) int {
	n := d.Uvarint()
	if d.err != nil {
		return 0
	}
	if n == 0 {
		d.Fail(ErrMalformed)
		return 0
	}
	if n-1 > uint64(len(d.b)/max(minElement, 1)) {
		d.Fail(ErrShort)
		return 0
	}
	return int(n - 1)
}

// Tags reads the tagged fields that end a struct and gives each to fn, which may be nil. Unknown numbers are fn's to ignore. Numbers
// that do not ascend are a fault. The values are views of the input.
func (d *Decoder) Tags(fn func(Tag)) {
	n := d.Uvarint()
	if n > uint64(len(d.b)/2) {
		d.Fail(ErrShort)
		return
	}
	last := int64(-1)
	for range n {
		number, size := d.Uvarint(), d.Uvarint()
		if d.err != nil {
			return
		}
		if number > 1<<32-1 || int64(number) <= last {
			d.Fail(ErrMalformed)
			return
		}
		last = int64(number)
		if size > uint64(len(d.b)) {
			d.Fail(ErrShort)
			return
		}
		v := d.take(int(size))
		if fn != nil && d.err == nil {
			fn(Tag{Number: uint32(number), Value: v})
		}
	}
}

// ReadArray reads an array whose elements take at least minElement bytes each. It returns nil for an empty one.
func ReadArray[T any](d *Decoder, minElement int, fn func(*Decoder) T) []T {
	n := d.ArrayLen(minElement)
	if n == 0 {
		return nil
	}
	list := make([]T, 0, min(n, maxPreallocated))
	for range n {
		v := fn(d)
		if d.err != nil {
			return nil
		}
		list = append(list, v)
	}
	return list
}

// take returns the next n bytes, or nil and a fault. It never returns nil for n = 0 without a fault.
func (d *Decoder) take(n int) []byte {
	if d.err != nil {
		return nil
	}
	if n > len(d.b) {
		d.Fail(ErrShort)
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	if b == nil {
		return []byte{}
	}
	return b
}
