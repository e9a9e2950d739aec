package peer

import (
	"encoding/binary"
	"net"
	"time"
)

const (
	// copyBelow is the size up to which a piece is copied together with its neighbours: under TLS each piece would be a record.
	copyBelow = 4 << 10
	// scratchBytes is the room for such copies.
	scratchBytes = 64 << 10
)

// pingFrame says only that this side is alive.
var pingFrame = func() []byte {
	b := appendHead(nil, kindPing, flagOneWay, 0)
	binary.BigEndian.PutUint32(b, uint32(len(b)-sizeBytes))
	return b
}()

// writer gathers pieces and writes at most writeChunk bytes under one deadline, so that a slow but living peer gets all of a big frame.
type writer struct {
	nc      net.Conn
	pieces  net.Buffers
	bytes   int
	scratch []byte
	joined  bool // the last piece is the end of scratch
}

// frame writes one frame.
func (w *writer) frame(f *frame) error {
	if err := w.add(f.head); err != nil {
		return err
	}
	for _, b := range f.payload {
		if err := w.add(b); err != nil {
			return err
		}
	}
	return nil
}

// add takes a piece, which must not change until flush.
func (w *writer) add(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), writeChunk-w.bytes)
		w.piece(b[:n])
		b = b[n:]
		if w.bytes >= writeChunk {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) piece(b []byte) {
	w.bytes += len(b)
	if len(b) > copyBelow || len(w.scratch)+len(b) > scratchBytes {
		w.pieces, w.joined = append(w.pieces, b), false
		return
	}
	if w.scratch == nil {
		w.scratch = make([]byte, 0, scratchBytes)
	}
	at := len(w.scratch)
	w.scratch = append(w.scratch, b...)
	if last := len(w.pieces) - 1; w.joined {
		w.pieces[last] = w.scratch[at-len(w.pieces[last]) : len(w.scratch)]
		return
	}
	w.pieces, w.joined = append(w.pieces, w.scratch[at:]), true
}

// flush writes what was gathered.
func (w *writer) flush() error {
	if w.bytes == 0 {
		return nil
	}
	if err := w.nc.SetWriteDeadline(time.Now().Add(writeMax)); err != nil {
		return err
	}
	pieces := w.pieces // WriteTo consumes its receiver
	_, err := pieces.WriteTo(w.nc)
	clear(w.pieces)
	w.pieces, w.bytes, w.scratch, w.joined = w.pieces[:0], 0, w.scratch[:0], false
	return err
}
