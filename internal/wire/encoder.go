package wire

import (
	"encoding/binary"

	"strandline.dev/internal/kafka"
)

// Encoder appends fields of our own messages to B, in Kafka's flexible encoding: big-endian integers, unsigned varints for lengths
// (length+1; 0 is null), tags at the end of each struct. A message begins with Header. The zero value is ready.
type Encoder struct {
	// B is what was encoded so far. Set it to append to something.
	B []byte
}

// Header begins a message: its type and version, which a Decoder checks before it reads anything else.
func (e *Encoder) Header(typ uint16, version uint8) {
	e.B = binary.BigEndian.AppendUint16(e.B, typ)
	e.B = append(e.B, version)
}

// Bool appends one byte, 0 or 1.
func (e *Encoder) Bool(v bool) {
	if v {
		e.B = append(e.B, 1)
		return
	}
	e.B = append(e.B, 0)
}

// Int8 appends one byte.
func (e *Encoder) Int8(v int8) { e.B = append(e.B, byte(v)) }

// Int16 appends two bytes.
func (e *Encoder) Int16(v int16) { e.B = binary.BigEndian.AppendUint16(e.B, uint16(v)) }

// Int32 appends four bytes.
func (e *Encoder) Int32(v int32) { e.B = binary.BigEndian.AppendUint32(e.B, uint32(v)) }

// Int64 appends eight bytes.
func (e *Encoder) Int64(v int64) { e.B = binary.BigEndian.AppendUint64(e.B, uint64(v)) }

// Uint32 appends four bytes.
func (e *Encoder) Uint32(v uint32) { e.B = binary.BigEndian.AppendUint32(e.B, v) }

// Uint64 appends eight bytes.
func (e *Encoder) Uint64(v uint64) { e.B = binary.BigEndian.AppendUint64(e.B, v) }

// Uvarint appends an unsigned varint of 1 to 10 bytes.
func (e *Encoder) Uvarint(v uint64) { e.B = binary.AppendUvarint(e.B, v) }

// String appends a string.
func (e *Encoder) String(s string) {
	e.Uvarint(uint64(len(s)) + 1)
	e.B = append(e.B, s...)
}

// NullableString appends a string, or null for nil.
func (e *Encoder) NullableString(s *string) {
	if s == nil {
		e.Uvarint(0)
		return
	}
	e.String(*s)
}

// Bytes appends bytes; nil and empty are the same.
func (e *Encoder) Bytes(b []byte) {
	e.Uvarint(uint64(len(b)) + 1)
	e.B = append(e.B, b...)
}

// NullableBytes appends bytes, or null for nil.
func (e *Encoder) NullableBytes(b []byte) {
	if b == nil {
		e.Uvarint(0)
		return
	}
	e.Bytes(b)
}

// ID appends the 16 bytes of an id.
func (e *Encoder) ID(id kafka.ID) { e.B = append(e.B, id[:]...) }

// ArrayLen begins an array of n elements, which the caller appends next.
func (e *Encoder) ArrayLen(n int) { e.Uvarint(uint64(n) + 1) }

// NoTags ends a struct: version 0 of every struct has no tagged fields.
func (e *Encoder) NoTags() { e.B = append(e.B, 0) }

// Tags ends a struct with tagged fields, which must be in ascending order of their numbers.
func (e *Encoder) Tags(tags ...Tag) {
	e.Uvarint(uint64(len(tags)))
	for _, t := range tags {
		e.Uvarint(uint64(t.Number))
		e.Uvarint(uint64(len(t.Value)))
		e.B = append(e.B, t.Value...)
	}
}

// Tag is one tagged field: its number and its encoded value.
type Tag struct {
	Number uint32
	Value  []byte
}

// AppendArray appends an array: its length, then each element by fn.
func AppendArray[T any](e *Encoder, list []T, fn func(*Encoder, T)) {
	e.ArrayLen(len(list))
	for _, v := range list {
		fn(e, v)
	}
}
