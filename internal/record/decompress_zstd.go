package record

import (
	"bytes"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

var zstdStreams = sync.Pool{New: func() any { return new(zstdStream) }}

// zstdStream reads one zstd frame. Most batches decompress to less than zstdWhole: those are decoded in one call into a buffer of that
// size, which needs no window. Larger ones are read as a stream, which holds a window. Frames with a window above maxZstdWindow (the
// encoder's levels 20 to 22) are decoded whole into a buffer of what their blocks can hold at most, so that a tiny frame that declares
// a huge window still allocates by what it holds.
type zstdStream struct {
	in     bytes.Reader
	whole  *zstd.Decoder
	piece  *zstd.Decoder
	out    []byte
	ready  bool // out holds all there is and was not returned yet
	done   bool
	window []byte
}

func (s *zstdStream) open(src []byte, limit int64) error {
	s.ready, s.done = false, false
	f, err := checkZstdFrame(src)
	if err != nil {
		return err
	}
	if s.whole == nil {
		if s.whole, err = newZstdDecoder(maxZstdDeclared, zstd.WithDecodeAllCapLimit(true)); err != nil {
			return err
		}
		s.out = make([]byte, 0, zstdWhole)
	}
	// The library names a full buffer in more than one way, so a failure here says only that the frame is damaged or too large for it.
	if s.decodeAll(src) {
		return nil
	}
	switch {
	case f.most <= int64(cap(s.out)):
		return ErrCompressed
	case f.window <= maxZstdWindow:
		return s.openPieces(src)
	}
	s.out = make([]byte, 0, min(f.most, limit))
	switch {
	case s.decodeAll(src):
		return nil
	case f.most > limit:
		return ErrTooLarge
	}
	return ErrCompressed
}

// decodeAll decodes src into the buffer and says whether it fitted and was sound.
func (s *zstdStream) decodeAll(src []byte) bool {
	out, err := s.whole.DecodeAll(src, s.out[:0])
	if err != nil {
		return false
	}
	s.out, s.ready = out, true
	return true
}

func (s *zstdStream) openPieces(src []byte) (err error) {
	if s.piece == nil {
		if s.piece, err = newZstdDecoder(maxZstdWindow, zstd.WithDecoderLowmem(true), zstd.WithDecodeBuffersBelow(0)); err != nil {
			return err
		}
		s.window = make([]byte, windowSize)
	}
	s.in.Reset(src)
	if s.piece.Reset(&s.in) != nil {
		return ErrCompressed
	}
	return nil
}

func newZstdDecoder(maxMemory uint64, opts ...zstd.DOption) (*zstd.Decoder, error) {
	return zstd.NewReader(nil, append(opts,
		zstd.WithDecoderConcurrency(1), // no goroutines: a decoder can be left to the garbage collector
		zstd.WithDecoderMaxMemory(maxMemory),
		zstd.WithDecoderMaxWindow(maxMemory))...)
}

func (s *zstdStream) next() ([]byte, error) {
	switch {
	case s.done:
		return nil, io.EOF
	case s.ready:
		s.done = true
		if len(s.out) == 0 {
			return nil, io.EOF
		}
		return s.out, nil
	}
	return readPiece(s.piece, s.window, &s.in)
}

func (s *zstdStream) close() {
	s.in.Reset(nil)
	s.done = true
	if s.piece != nil {
		// Reset(nil) only lets go of the input; it cannot fail on an open decoder.
		_ = s.piece.Reset(nil)
	}
	if cap(s.out) > maxPooledBuffer {
		s.out = make([]byte, 0, zstdWhole)
	}
	zstdStreams.Put(s)
}

const (
	zstdBlockHeader    = 3
	zstdBlockMost      = 128 << 10
	zstdBlockRLE       = 1
	zstdBlockReserved  = 3
	zstdChecksumBytes  = 4
	zstdBlockSizeShift = 3
)

// zstdFrame is what a frame's lengths say: the window that it asks for and the most that its blocks can hold, in bytes.
type zstdFrame struct {
	window uint64
	most   int64
}

// checkZstdFrame walks a frame by its block headers and returns ErrCompressed unless it is exactly src: the library would skip frames
// that are not data and read on into further ones.
func checkZstdFrame(src []byte) (f zstdFrame, err error) {
	var h zstd.Header
	if h.Decode(src) != nil || h.Skippable || h.DictionaryID != 0 || h.HeaderSize > len(src) {
		return f, ErrCompressed
	}
	f.window = h.WindowSize
	if h.SingleSegment {
		f.window = h.FrameContentSize
	}
	if f.window > maxZstdDeclared {
		return f, ErrCompressed
	}
	pos := h.HeaderSize
	for last := false; !last; {
		if len(src)-pos < zstdBlockHeader {
			return f, ErrCompressed
		}
		head := uint32(src[pos]) | uint32(src[pos+1])<<8 | uint32(src[pos+2])<<16
		pos += zstdBlockHeader
		f.most += zstdBlockMost
		last = head&1 != 0
		size := int(head >> zstdBlockSizeShift)
		switch head >> 1 & 3 {
		case zstdBlockRLE:
			size = 1
		case zstdBlockReserved:
			return f, ErrCompressed
		}
		if size > len(src)-pos {
			return f, ErrCompressed
		}
		pos += size
	}
	if h.HasCheckSum {
		pos += zstdChecksumBytes
	}
	if pos != len(src) {
		return f, ErrCompressed
	}
	return f, nil
}
