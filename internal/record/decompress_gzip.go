package record

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/gzip"
)

var gzipStreams = sync.Pool{New: func() any { return new(gzipStream) }}

// gzipStream reads one gzip member. Reading several, as gzip tools do, would accept bytes behind the records.
type gzipStream struct {
	in     bytes.Reader
	r      gzip.Reader
	window [windowSize]byte
}

func (s *gzipStream) open(src []byte, _ int64) error {
	s.in.Reset(src)
	if err := s.r.Reset(&s.in); err != nil {
		return ErrCompressed
	}
	s.r.Multistream(false)
	return nil
}

func (s *gzipStream) next() ([]byte, error) { return readPiece(&s.r, s.window[:], &s.in) }

func (s *gzipStream) close() {
	s.in.Reset(nil)
	gzipStreams.Put(s)
}
