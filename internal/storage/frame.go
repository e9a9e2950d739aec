package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A frame is the envelope of every small file of this package:
//
//	0  4  magic (ASCII, names the kind of file)
//	4  2  version
//	6  2  zero
//	8  4  length of the payload, n
//	12 n  payload
//	.. 4  CRC32C of everything before it
//
// All integers are big endian. A file is a frame and nothing else; a slot of the start file is a frame followed by zeros.
const (
	frameHeader  = 12
	frameTrailer = 4
)

// errBadFrame means bytes that are not a whole frame of the wanted kind and a known version.
var errBadFrame = errors.New("not a valid frame")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends a frame around the payload that fill appends.
func appendFrame(dst []byte, magic string, version uint16, fill func([]byte) []byte) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	dst = binary.BigEndian.AppendUint16(dst, version)
	dst = append(dst, 0, 0, 0, 0, 0, 0)
	dst = fill(dst)
	binary.BigEndian.PutUint32(dst[start+8:], uint32(len(dst)-start-frameHeader))
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// openFrame returns the version and payload of the frame at the beginning of b, and what follows it.
func openFrame(b []byte, magic string, newest uint16) (version uint16, payload, rest []byte, err error) {
	if len(b) < frameHeader+frameTrailer {
		return 0, nil, nil, fmt.Errorf("%w: %d bytes", errBadFrame, len(b))
	}
	if string(b[:4]) != magic {
		return 0, nil, nil, fmt.Errorf("%w: magic %q, want %q", errBadFrame, b[:4], magic)
	}
	n := int64(binary.BigEndian.Uint32(b[8:]))
	if n > int64(len(b)-frameHeader-frameTrailer) {
		return 0, nil, nil, fmt.Errorf("%w: payload of %d bytes in %d", errBadFrame, n, len(b))
	}
	end := frameHeader + n
	if got, want := crc32.Checksum(b[:end], castagnoli), binary.BigEndian.Uint32(b[end:]); got != want {
		return 0, nil, nil, fmt.Errorf("%w: checksum %08x, want %08x", errBadFrame, got, want)
	}
	version = binary.BigEndian.Uint16(b[4:])
	if version == 0 || version > newest {
		return 0, nil, nil, fmt.Errorf("%w: version %d, newest known %d", errBadFrame, version, newest)
	}
	return version, b[frameHeader:end], b[end+frameTrailer:], nil
}

// openFile is openFrame for a file that must hold one frame and nothing else.
func openFile(b []byte, magic string, newest uint16) (*fields, error) {
	_, payload, rest, err := openFrame(b, magic, newest)
	if err != nil {
		return nil, err
	}
	if len(rest) != 0 {
		return nil, fmt.Errorf("%w: %d bytes behind it", errBadFrame, len(rest))
	}
	return &fields{b: payload}, nil
}

// fields reads big-endian fields; the first read beyond the end sets bad, and zero is returned from then on.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) take(n int) []byte {
	if f.bad || n > len(f.b) {
		f.bad = true
		return nil
	}
	out := f.b[:n]
	f.b = f.b[n:]
	return out
}

func (f *fields) u8() uint8 {
	if b := f.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (f *fields) u16() uint16 {
	if b := f.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (f *fields) u32() uint32 {
	if b := f.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (f *fields) u64() uint64 {
	if b := f.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (f *fields) i64() int64 { return int64(f.u64()) }

// text reads a string with a two-byte length of at most limit.
func (f *fields) text(limit int) string {
	n := int(f.u16())
	if n > limit {
		f.bad = true
	}
	return string(f.take(n))
}

// done says that everything was read and nothing is left.
func (f *fields) done() bool { return !f.bad && len(f.b) == 0 }

func appendText(dst []byte, s string) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(s)))
	return append(dst, s...)
}

func appendI64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }
