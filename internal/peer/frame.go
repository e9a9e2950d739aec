package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"strandline.dev/internal/wire"
)

// A frame is: size int32 of what follows, kind int16, flags int8, correlation int64, body, payload.
const (
	sizeBytes = 4
	headBytes = 2 + 1 + 8 // behind the size
)

// The flags. A request has none.
const (
	flagAnswer = 1 << iota // answers the request with the same correlation on the other direction
	flagFault              // with flagAnswer: the body is a fault, a byte, and a text
	flagOneWay             // nothing answers; the correlation is 0
)

// errFrame means that a frame is not one of ours.
var errFrame = errors.New("not a frame of the cluster protocol")

// header is a frame's head.
type header struct {
	size        int // of body and payload
	kind        Kind
	flags       uint8
	correlation int64
}

// frame is one message on its way out.
type frame struct {
	head    []byte // size, head and body
	payload [][]byte
	size    int     // bytes of both
	message Message // released when written or dropped
	call    *call   // the request's caller
	slot    *conn   // an answer: the connection whose in-flight slot it holds
}

// newFrame encodes a message.
func newFrame(k Kind, flags uint8, correlation int64, m Message) *frame {
	f := &frame{message: m, head: appendHead(make([]byte, 0, 256), k, flags, correlation)}
	f.head = m.Append(f.head)
	f.size = len(f.head)
	if p, ok := m.(Payloader); ok {
		f.payload = p.Payload()
		for _, b := range f.payload {
			f.size += len(b)
		}
	}
	binary.BigEndian.PutUint32(f.head, uint32(f.size-sizeBytes))
	return f
}

// faultFrame encodes the answer that a request failed.
func faultFrame(k Kind, correlation int64, fault Fault, text string) *frame {
	e := wire.Encoder{B: appendHead(make([]byte, 0, 64+len(text)), k, flagAnswer|flagFault, correlation)}
	e.Int8(int8(fault))
	e.String(clip(text))
	binary.BigEndian.PutUint32(e.B, uint32(len(e.B)-sizeBytes))
	return &frame{head: e.B, size: len(e.B)}
}

func appendHead(b []byte, k Kind, flags uint8, correlation int64) []byte {
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(k))
	b = append(b, flags)
	return binary.BigEndian.AppendUint64(b, uint64(correlation))
}

// release gives back what the frame holds; it is called once, by whoever has written or dropped it.
func (f *frame) release() {
	if r, ok := f.message.(Releaser); ok {
		r.Release()
	}
	if f.slot != nil {
		<-f.slot.inFlight
	}
}

// decodeFault reads the body of a failed answer.
func decodeFault(k Kind, b []byte) error {
	d := wire.NewDecoder(b)
	e := &RemoteError{Kind: k, Fault: Fault(d.Int8()), Text: d.String()}
	if err := d.Done(); err != nil {
		return err
	}
	if e.Fault < Failed || e.Fault > Malformed {
		return fmt.Errorf("%w: fault %d", wire.ErrMalformed, e.Fault)
	}
	return e
}

// readHeader reads a frame's size and head and judges them.
func readHeader(r io.Reader, limit int) (header, error) {
	var b [sizeBytes + headBytes]byte
	if _, err := io.ReadFull(r, b[:sizeBytes]); err != nil {
		return header{}, err
	}
	size, err := wire.FrameSize(b[:sizeBytes], limit)
	if err != nil {
		return header{}, err
	}
	if size < headBytes {
		return header{}, fmt.Errorf("%w: %d bytes", errFrame, size)
	}
	if _, err := io.ReadFull(r, b[sizeBytes:]); err != nil {
		return header{}, noEOF(err)
	}
	return header{
		size:        size - headBytes,
		kind:        Kind(binary.BigEndian.Uint16(b[4:])),
		flags:       b[6],
		correlation: int64(binary.BigEndian.Uint64(b[7:])),
	}, nil
}

// readBody reads size bytes into buf, which has room for them, or into memory that grows with the bytes that came. Each piece has idleMax to
// arrive.
func readBody(nc net.Conn, r io.Reader, size int, buf []byte) ([]byte, error) {
	if len(buf) < size {
		buf = make([]byte, min(size, bodyChunk))
	}
	for at := 0; at < size; {
		if at == len(buf) {
			grown := make([]byte, min(size, 2*len(buf)))
			copy(grown, buf)
			buf = grown
		}
		next := min(size, len(buf), at+bodyChunk)
		if at > 0 {
			nc.SetReadDeadline(time.Now().Add(idleMax))
		}
		n, err := io.ReadFull(r, buf[at:next])
		if at += n; err != nil {
			return nil, noEOF(err)
		}
	}
	return buf[:size], nil
}

// noEOF tells an end inside a frame from an end between frames.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// clip bounds a text that goes to another node or comes from one, and makes it text: an error may quote a client's bytes.
func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), faultTextMax)], "") }
