package record

import (
	"encoding/binary"
	"io"
	"sync"

	"github.com/klauspost/compress/snappy"
)

var snappyStreams = sync.Pool{New: func() any { return new(snappyStream) }}

// xerialMagic begins the framing of Java clients: this, two int32 versions, then blocks behind an int32 length each. Other clients
// send one bare block.
const xerialMagic = "\x82SNAPPY\x00"

const (
	xerialHeader      = len(xerialMagic) + 8
	xerialBlockLength = 4
)

// snappyStream reads one bare snappy block, or the blocks of one xerial stream. A bare block is decoded whole: the format has no
// other way, and cannot say more than maxSnappyRatio times its length.
type snappyStream struct {
	rest   []byte
	framed bool
	done   bool
	limit  int64
	out    []byte
}

func (s *snappyStream) open(src []byte, limit int64) error {
	s.limit, s.done, s.framed, s.rest = limit, false, false, src
	if len(src) >= len(xerialMagic) && string(src[:len(xerialMagic)]) == xerialMagic {
		if len(src) < xerialHeader {
			return ErrCompressed
		}
		s.framed, s.rest = true, src[xerialHeader:]
	}
	return nil
}

func (s *snappyStream) next() ([]byte, error) {
	for !s.done {
		block := s.rest
		if s.framed {
			if len(s.rest) == 0 {
				break
			}
			var err error
			if block, err = s.frame(); err != nil {
				return nil, err
			}
		} else {
			s.done, s.rest = true, nil
		}
		piece, err := s.decode(block)
		if err != nil || len(piece) > 0 {
			return piece, err
		}
	}
	return nil, io.EOF
}

func (s *snappyStream) frame() ([]byte, error) {
	if len(s.rest) < xerialBlockLength {
		return nil, ErrCompressed
	}
	n := int64(int32(binary.BigEndian.Uint32(s.rest)))
	s.rest = s.rest[xerialBlockLength:]
	if n < 0 || n > int64(len(s.rest)) {
		return nil, ErrCompressed
	}
	block := s.rest[:n]
	s.rest = s.rest[n:]
	return block, nil
}

// decode is strict: the library's faster decoder also accepts an extension that other clients' decoders refuse, and a batch that only
// we can read must not be accepted.
func (s *snappyStream) decode(block []byte) ([]byte, error) {
	n, err := snappy.DecodedLen(block)
	if err != nil || int64(n) > maxSnappyRatio*int64(len(block)) {
		return nil, ErrCompressed
	}
	if int64(n) > s.limit {
		return nil, ErrTooLarge
	}
	if n > cap(s.out) {
		s.out = make([]byte, max(n, windowSize))
	}
	out, err := snappy.DecodeStrict(s.out[:cap(s.out)], block)
	if err != nil {
		return nil, ErrCompressed
	}
	return out, nil
}

func (s *snappyStream) close() {
	s.rest = nil
	if cap(s.out) > maxPooledBuffer {
		s.out = nil
	}
	snappyStreams.Put(s)
}
