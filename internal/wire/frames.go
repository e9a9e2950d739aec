package wire

import "io"

// Budget bounds the memory that frames of all connections hold together.
type Budget interface {
	// Reserve takes n more bytes, or says false.
	Reserve(n int) bool
}

// ReadFrame reads one frame (an int32 size, then that many bytes) into buf, which it grows as bytes arrive. limit is the largest
// size accepted, in bytes; budget may be nil.
func ReadFrame(r io.Reader, buf []byte, limit int, budget Budget) ([]byte, error) {
	panic("being written")
}
