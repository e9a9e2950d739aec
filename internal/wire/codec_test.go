package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"runtime"
	"testing"

	"strandline.dev/internal/kafka"
)

// sample is a message with every kind of field.
type sample struct {
	flag     bool
	a        int8
	b        int16
	c        int32
	d        int64
	u        uint64
	v        uint64
	name     string
	nullable *string
	raw      []byte
	null     []byte
	id       kafka.ID
	list     []string
	tags     []Tag
}

func newTestSample() sample {
	return sample{true, -1, -2, -3, -4, math.MaxUint64, 300, "naïve", nil, []byte{1, 2}, nil, kafka.ID{1, 15: 9},
		[]string{"x", "", "yz"}, []Tag{{1, []byte("one")}, {70000, nil}}}
}

func (s sample) encode() []byte {
	var e Encoder
	e.Header(7, 1)
	e.Bool(s.flag)
	e.Int8(s.a)
	e.Int16(s.b)
	e.Int32(s.c)
	e.Int64(s.d)
	e.Uint64(s.u)
	e.Uvarint(s.v)
	e.String(s.name)
	e.NullableString(s.nullable)
	e.Bytes(s.raw)
	e.NullableBytes(s.null)
	e.ID(s.id)
	AppendArray(&e, s.list, (*Encoder).String)
	e.Tags(s.tags...)
	return e.B
}

func decodeSample(b []byte) (s sample, err error) {
	d := NewDecoder(b)
	d.ExpectHeader(7, 1)
	s.flag = d.Bool()
	s.a, s.b, s.c, s.d, s.u, s.v = d.Int8(), d.Int16(), d.Int32(), d.Int64(), d.Uint64(), d.Uvarint()
	s.name, s.nullable = d.String(), d.NullableString()
	s.raw, s.null, s.id = d.Bytes(), d.NullableBytes(), d.ID()
	s.list = ReadArray(d, 1, (*Decoder).String)
	d.Tags(func(t Tag) { s.tags = append(s.tags, t) })
	return s, d.Done()
}

func TestOwnCodecGolden(t *testing.T) {
	golden(t, "own-message.txt", hex.Dump(newTestSample().encode()))
}

func TestOwnCodecRoundTrip(t *testing.T) {
	raw := newTestSample().encode()
	got, err := decodeSample(raw)
	if err != nil {
		t.Fatal(err)
	}
	if again := got.encode(); !bytes.Equal(again, raw) {
		t.Errorf("%x\nwant %x", again, raw)
	}
	for n := range len(raw) {
		if _, err := decodeSample(raw[:n]); !errors.Is(err, ErrShort) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	if _, err := decodeSample(append(raw, 0)); err != ErrTrailing {
		t.Error(err)
	}
}

func TestOwnCodecFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		raw  []byte
		read func(d *Decoder)
		want error
	}{
		{"bool 2", []byte{2}, func(d *Decoder) { d.Bool() }, ErrMalformed},
		{"overlong varint", []byte{0x80, 0}, func(d *Decoder) { d.Uvarint() }, ErrMalformed},
		{"varint above 64 bits", bytes.Repeat([]byte{0xff}, 11), func(d *Decoder) { d.Uvarint() }, ErrMalformed},
		{"null string", []byte{0}, func(d *Decoder) { _ = d.String() }, ErrMalformed},
		{"null bytes", []byte{0}, func(d *Decoder) { d.Bytes() }, ErrMalformed},
		{"null array", []byte{0}, func(d *Decoder) { d.ArrayLen(1) }, ErrMalformed},
		{"string of invalid UTF-8", []byte{2, 0xff}, func(d *Decoder) { _ = d.String() }, ErrMalformed},
		{"string beyond the end", []byte{9, 'a'}, func(d *Decoder) { _ = d.String() }, ErrShort},
		{"array beyond the end", []byte{4, 1, 1}, func(d *Decoder) { d.ArrayLen(1) }, ErrShort},
		{"array of larger elements", []byte{3, 1, 1, 1}, func(d *Decoder) { d.ArrayLen(2) }, ErrShort},
		{"array of 2^64-1", append(bytes.Repeat([]byte{0xff}, 9), 1), func(d *Decoder) { d.ArrayLen(1) }, ErrShort},
		{"bytes of 2^64-1", append(bytes.Repeat([]byte{0xff}, 9), 1), func(d *Decoder) { d.Bytes() }, ErrShort},
		{"tag size of 2^64-1", append([]byte{1, 1}, append(bytes.Repeat([]byte{0xff}, 9), 1)...), func(d *Decoder) { d.Tags(nil) }, ErrShort},
		{"tags out of order", []byte{2, 5, 0, 5, 0}, func(d *Decoder) { d.Tags(nil) }, ErrMalformed},
		{"another type", []byte{0, 8, 1}, func(d *Decoder) { d.ExpectHeader(7, 1) }, ErrMalformed},
		{"a newer version", []byte{0, 7, 2}, func(d *Decoder) { d.ExpectHeader(7, 1) }, ErrMalformed},
	} {
		d := NewDecoder(c.raw)
		c.read(d)
		if !errors.Is(d.Err(), c.want) || d.Rest() != 0 {
			t.Errorf("%s: %v, want %v", c.name, d.Err(), c.want)
		}
		if d.Int64() != 0 || d.String() != "" || !errors.Is(d.Done(), c.want) {
			t.Errorf("%s: the error did not stick", c.name)
		}
	}
}

func TestI14_ReadArrayAllocatesByWhatIsThere(t *testing.T) {
	var e Encoder
	e.ArrayLen(1 << 20)
	e.B = append(e.B, make([]byte, 1<<20)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d := NewDecoder(e.B)
	got := ReadArray(d, 1, func(d *Decoder) [64]int64 { d.Fail(ErrMalformed); return [64]int64{} })
	runtime.ReadMemStats(&after)
	if got != nil || after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("allocated %d bytes", after.TotalAlloc-before.TotalAlloc)
	}
}
