package record

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/pierrec/lz4/v4"
)

var lz4Streams = sync.Pool{New: func() any { return new(lz4Stream) }}

// lz4Stream reads one LZ4 frame.
type lz4Stream struct {
	in     bytes.Reader
	pooled *lz4.Reader
	// r is pooled, or a reader of its own for a frame whose blocks depend on each other: such a reader keeps the end of what it
	// decoded as dictionary, and one client's bytes must never be reachable from another's frame.
	r      *lz4.Reader
	window [windowSize]byte
}

func (s *lz4Stream) open(src []byte, _ int64) error {
	independent, err := checkLZ4Frame(src)
	if err != nil {
		return err
	}
	s.in.Reset(src)
	if !independent {
		s.r = lz4.NewReader(&s.in)
		return nil
	}
	if s.pooled == nil {
		s.pooled = lz4.NewReader(&s.in)
	} else {
		s.pooled.Reset(&s.in)
	}
	s.r = s.pooled
	return nil
}

func (s *lz4Stream) next() ([]byte, error) { return readPiece(s.r, s.window[:], &s.in) }

func (s *lz4Stream) close() {
	s.in.Reset(nil)
	if s.pooled != nil {
		s.pooled.Reset(&s.in)
	}
	s.r = nil
	lz4Streams.Put(s)
}

// The LZ4 frame format: magic, flags, block descriptor, optional content size, header checksum, blocks, end mark, optional checksum.
const (
	lz4Magic              = 0x184D2204
	lz4VersionMask        = 0xC0
	lz4Version            = 0x40
	lz4BlockIndependence  = 0x20
	lz4BlockChecksum      = 0x10
	lz4ContentSize        = 0x08
	lz4ContentChecksum    = 0x04
	lz4ReservedOrDict     = 0x03
	lz4UncompressedBlock  = 1 << 31
	lz4FixedHeader        = 7
	lz4ContentSizeBytes   = 8
	lz4BlockSizeBytes     = 4
	lz4ChecksumBytes      = 4
	lz4DescriptorFlagsPos = 4
)

// checkLZ4Frame walks a frame by its lengths and returns ErrCompressed unless it is exactly src: the library would skip frames that
// are not data and read on into further ones.
func checkLZ4Frame(src []byte) (independentBlocks bool, err error) {
	if len(src) < lz4FixedHeader || binary.LittleEndian.Uint32(src) != lz4Magic {
		return false, ErrCompressed
	}
	flags := src[lz4DescriptorFlagsPos]
	if flags&lz4VersionMask != lz4Version || flags&lz4ReservedOrDict != 0 {
		return false, ErrCompressed
	}
	pos := lz4FixedHeader
	if flags&lz4ContentSize != 0 {
		pos += lz4ContentSizeBytes
	}
	for {
		if len(src)-pos < lz4BlockSizeBytes {
			return false, ErrCompressed
		}
		block := binary.LittleEndian.Uint32(src[pos:])
		pos += lz4BlockSizeBytes
		if block == 0 {
			break
		}
		size := int(block &^ lz4UncompressedBlock)
		if flags&lz4BlockChecksum != 0 {
			size += lz4ChecksumBytes
		}
		if size > len(src)-pos {
			return false, ErrCompressed
		}
		pos += size
	}
	if flags&lz4ContentChecksum != 0 {
		pos += lz4ChecksumBytes
	}
	if pos != len(src) {
		return false, ErrCompressed
	}
	return flags&lz4BlockIndependence != 0, nil
}
