package record

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

var zstdStreams = sync.Pool{New: func() any { return new(zstdStream) }}

// zstdStream reads one zstd frame. Most batches decompress to less than zstdWhole: those are decoded in one call into a buffer of that
// size, which needs no window. Larger ones are read as a stream, which holds a window. Frames with a window above maxZstdWindow (the
// encoder's levels 20 to 22) are decoded whole in a buffer that grows up to the limit, so that a tiny frame that declares a huge
// window still allocates by what it holds.
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
	windowBytes, err := checkZstdFrame(src)
	if err != nil {
		return err
	}
	if s.whole == nil {
		if s.whole, err = newZstdDecoder(maxZstdDeclared, zstd.WithDecodeAllCapLimit(true)); err != nil {
			return err
		}
		s.out = make([]byte, 0, zstdWhole)
	}
	err = s.decodeAll(src)
	for size := cap(s.out); err == ErrTooLarge && windowBytes > maxZstdWindow && int64(size) < limit; {
		size = int(min(int64(size)*4, limit))
		s.out = make([]byte, 0, size)
		err = s.decodeAll(src)
	}
	if err != ErrTooLarge || windowBytes > maxZstdWindow {
		return err
	}
	return s.openPieces(src)
}

func (s *zstdStream) decodeAll(src []byte) error {
	out, err := s.whole.DecodeAll(src, s.out[:0])
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return ErrTooLarge
	}
	if err != nil {
		return ErrCompressed
	}
	s.out, s.ready = out, true
	return nil
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
	zstdBlockRLE       = 1
	zstdBlockReserved  = 3
	zstdChecksumBytes  = 4
	zstdBlockSizeShift = 3
)

// checkZstdFrame walks a frame by its block headers and returns ErrCompressed unless it is exactly src: the library would skip frames
// that are not data and read on into further ones. It returns the window that the frame asks for, in bytes.
func checkZstdFrame(src []byte) (window uint64, err error) {
	var h zstd.Header
	if h.Decode(src) != nil || h.Skippable || h.DictionaryID != 0 || h.HeaderSize > len(src) {
		return 0, ErrCompressed
	}
	window = h.WindowSize
	if h.SingleSegment {
		window = h.FrameContentSize
	}
	pos := h.HeaderSize
	for last := false; !last; {
		if len(src)-pos < zstdBlockHeader {
			return 0, ErrCompressed
		}
		head := uint32(src[pos]) | uint32(src[pos+1])<<8 | uint32(src[pos+2])<<16
		pos += zstdBlockHeader
		last = head&1 != 0
		size := int(head >> zstdBlockSizeShift)
		switch head >> 1 & 3 {
		case zstdBlockRLE:
			size = 1
		case zstdBlockReserved:
			return 0, ErrCompressed
		}
		if size > len(src)-pos {
			return 0, ErrCompressed
		}
		pos += size
	}
	if h.HasCheckSum {
		pos += zstdChecksumBytes
	}
	if pos != len(src) {
		return 0, ErrCompressed
	}
	return window, nil
}
