package wire

import (
	"encoding/binary"
	"io"
)

// Budget bounds the memory that the frames of all connections hold together.
type Budget interface {
	// Reserve takes n more bytes. It may wait; false means that the frame is to be refused.
	Reserve(n int) bool
	// Release gives n bytes back.
	Release(n int)
}

// frameSizeBytes is the length of the size that begins a frame.
const frameSizeBytes = 4

// ReadFrame reads one frame, an int32 size and so many bytes, into buf (which may be nil) and returns it without the size. What it
// allocates and reserves grows with the bytes that arrived, at most twofold, whatever the size announces (C086). limit is the largest
// size accepted, in bytes; budget may be nil, else len(frame) bytes of it belong to the caller afterwards, and none after an error.
//
// Errors: io.EOF when the peer closed between frames, io.ErrUnexpectedEOF inside one, ErrFrameSize, ErrHTTP, ErrTLS, ErrBudget, or
// what r returned.
func ReadFrame(r io.Reader, buf []byte, limit int, budget Budget) (frame []byte, err error) {
	buf = buf[:0]
	if cap(buf) < frameSizeBytes {
		buf = make([]byte, 0, frameChunk)
	}
	head := buf[:frameSizeBytes]
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	size, err := frameSize(head, limit)
	if err != nil {
		return nil, err
	}
	reserved := 0
	defer func() {
		if err != nil && budget != nil && reserved > 0 {
			budget.Release(reserved)
		}
	}()
	for len(buf) < size {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(size, 2*cap(buf)))
			copy(grown, buf)
			buf = grown
		}
		next := min(size, cap(buf))
		if budget != nil {
			if !budget.Reserve(next - reserved) {
				return nil, ErrBudget
			}
			reserved = next
		}
		n, err := io.ReadFull(r, buf[len(buf):next])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
	return buf, nil
}

// FrameSize judges the first four bytes of a frame and returns the size they announce, in bytes, for readers that bring their own
// buffers. Errors: ErrFrameSize, ErrHTTP, ErrTLS.
func FrameSize(head []byte, limit int) (int, error) { return frameSize(head, limit) }

// frameSize judges the first four bytes of a frame. A peer that speaks another protocol is named: that log line saves an hour.
func frameSize(head []byte, limit int) (int, error) {
	size := int64(int32(binary.BigEndian.Uint32(head)))
	if size > 0 && size <= int64(limit) {
		return int(size), nil
	}
	switch string(head) {
	case "GET ", "POST", "PUT ", "HEAD", "DELE", "OPTI", "PATC", "CONN", "PRI ":
		return 0, ErrHTTP
	}
	if head[0] == tlsHandshake && head[1] == tlsMajor {
		return 0, ErrTLS
	}
	return 0, ErrFrameSize
}

// The first two bytes of every TLS connection: a handshake record of version 3.x.
const (
	tlsHandshake = 0x16
	tlsMajor     = 0x03
)
