package record

import (
	"bytes"
	"io"
	"sync"
)

// stream gives the decompressed bytes of one payload piece by piece, so that a bomb costs time up to the cap and never more memory
// than a window (C088). After open, next returns pieces that are good until the following next, then io.EOF; any other error is
// ErrCompressed, or ErrTooLarge where a codec must hold its output whole and that exceeds the limit.
type stream interface {
	open(src []byte, limit int64) error
	next() ([]byte, error)
	// close forgets src and returns the stream to its pool.
	close()
}

// openStream takes a stream of the codec from its pool and opens it on src. The caller closes it, also after an error of next. Errors:
// ErrCodec for a codec without a stream, ErrCompressed, ErrTooLarge.
func openStream(codec Codec, src []byte, limit int64) (stream, error) {
	var s stream
	switch codec {
	case Gzip:
		s = gzipStreams.Get().(*gzipStream)
	case Snappy:
		s = snappyStreams.Get().(*snappyStream)
	case LZ4:
		s = lz4Streams.Get().(*lz4Stream)
	case Zstd:
		s = zstdStreams.Get().(*zstdStream)
	default:
		return nil, ErrCodec
	}
	if err := s.open(src, limit); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// Decompress appends what src, exactly one frame of the codec, decompresses to: at most limit bytes (0: DecompressedLimit of src).
// The buffer grows with the output, never by a size that src declares. Errors: ErrCodec, ErrCompressed, ErrTooLarge; dst is then
// returned as it was.
func Decompress(codec Codec, dst, src []byte, limit int) ([]byte, error) {
	if limit <= 0 {
		limit = DecompressedLimit(len(src))
	}
	if codec == None {
		if len(src) > limit {
			return dst, ErrTooLarge
		}
		return append(dst, src...), nil
	}
	s, err := openStream(codec, src, int64(limit))
	if err != nil {
		return dst, err
	}
	defer s.close()
	out := dst
	for {
		piece, err := s.next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return dst, err
		}
		if len(out)-len(dst)+len(piece) > limit {
			return dst, ErrTooLarge
		}
		out = append(grow(out, len(piece), len(dst)+limit), piece...)
	}
}

// grow makes room for n more bytes by doubling, as far as most. append alone would grow in many small steps.
func grow(b []byte, n, most int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	grown := make([]byte, len(b), max(len(b)+n, min(2*cap(b), most)))
	copy(grown, b)
	return grown
}

// buffers holds scratch for whole decompressed payloads.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func putBuffer(p *[]byte) {
	if cap(*p) > maxPooledBuffer {
		return
	}
	*p = (*p)[:0]
	buffers.Put(p)
}

// readPiece fills window from r. It returns io.EOF only without a piece, and ErrCompressed for every other fault. left is what must be
// 0 at the end: bytes of the input behind the frame.
func readPiece(r io.Reader, window []byte, in *bytes.Reader) ([]byte, error) {
	for range maxEmptyReads {
		n, err := r.Read(window)
		if n > 0 && (err == nil || err == io.EOF) {
			return window[:n], nil
		}
		if err == io.EOF {
			if in.Len() != 0 {
				return nil, ErrCompressed
			}
			return nil, io.EOF
		}
		if err != nil {
			return nil, ErrCompressed
		}
	}
	return nil, ErrCompressed
}
