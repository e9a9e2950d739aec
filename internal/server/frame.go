package server

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"strandline.dev/internal/wire"
)

const (
	// frameMin and frameMax are the smallest and largest frame buffers that are kept for the next request: below, the allocator is as
	// fast; above, they are rare.
	frameMin = 4 << 10
	frameMax = 32 << 20
	// frameHead is the length of the size that begins a frame, and frameGrowth what a buffer may grow by when it is full. Each frame that is smaller
	// than what a peer's frames had takes one of provenDecay parts from that: a peer that publishes sends small ones between large ones.
	frameHead   = 4
	frameGrowth = 4
	provenDecay = 16
)

// protocolError is a frame that ends the connection: what is wrong with it, and whose it was.
type protocolError struct {
	why  reason
	attr []any
	err  error
}

func (e *protocolError) Error() string { return e.err.Error() }
func (e *protocolError) Unwrap() error { return e.err }

// refuse logs why the connection is closed, when that is the peer's doing.
func (c *conn) refuse(err error) {
	var p *protocolError
	if errors.As(err, &p) {
		c.server.peers.closed(p.why, c.call.Peer, append([]any{"error", p.err}, p.attr...)...)
	}
}

// readRequest reads and decodes one request. Errors end the connection: a *protocolError is the peer's fault and is logged.
func (c *conn) readRequest() (*exchange, error) {
	c.stall = c.server.limits.FrameStall
	x := &exchange{lease: lease{b: c.server.budget, gone: c.ctx.Done(), drop: c.dropForMemory}, call: c.call}
	raw := c.guard.wantsRaw()
	err := c.readFrame(x)
	switch {
	case err != nil:
	case raw:
		rawLogin(x)
	default:
		err = c.decode(x)
	}
	if err != nil {
		x.finish()
		return nil, err
	}
	return x, nil
}

// readFrame reads the bytes of one frame. Buffer and budget grow with what has arrived, at most fourfold, whatever the frame announces
// (C086), from what the peer's last frames had: peers that publish send many of one size, and growing copies a third of each.
func (c *conn) readFrame(x *exchange) error {
	head, err := c.in.Peek(frameHead)
	if err != nil {
		return frameError(err)
	}
	most := c.server.broker().SocketRequestMaxBytes
	if c.guard.stranger() {
		most = min(most, strangerFrameMax) // K4
	}
	size, err := wire.FrameSize(head, most)
	if err != nil {
		return frameError(err)
	}
	c.in.Discard(frameHead) // what has been peeked is there
	if size <= smallFrame {
		x.lease.b = c.server.small
	}
	first := max(frameMin, c.in.Buffered())
	if first < c.proven && x.lease.b.roomy(c.proven) {
		first = c.proven
	}
	defer x.lease.settle()
	want := min(size, first)
	for reserved := 0; ; {
		room := min(size, frameRoom(want))
		if !x.lease.Reserve(room - reserved) { // before there is a buffer: hundreds may wait here
			return c.ctx.Err()
		}
		reserved = room
		f := c.server.frames.take(want)
		if x.frame != nil {
			f.b = append(f.b, x.frame.b...)
			putFrame(x.frame)
		}
		x.frame = f
		if err := c.fill(f, room, &x.lease); err != nil {
			return frameError(err)
		}
		if room == size {
			c.proven = max(size, c.proven-c.proven/provenDecay)
			x.call.Received = time.Now()
			return nil
		}
		want = min(size, frameGrowth*room)
	}
}

// fill reads until f holds room bytes, and tells the budget of each step: a frame that makes none may be dropped for others.
func (c *conn) fill(f *frame, room int, l *lease) error {
	for len(f.b) < room {
		n, err := c.in.Read(f.b[len(f.b):room])
		f.b = f.b[:len(f.b)+n]
		l.arrived.Store(int64(len(f.b)))
		if err != nil && len(f.b) < room {
			return err
		}
	}
	return nil
}

// dropForMemory closes a connection whose half-sent frame holds memory that others have waited for.
func (c *conn) dropForMemory() {
	c.server.peers.closed(reasonBudget, c.call.Peer, "error", "memory is short and this request arrives too slowly")
	c.close()
}

func frameError(err error) error {
	for _, known := range []struct {
		err error
		why reason
	}{
		{wire.ErrHTTP, reasonHTTP}, {wire.ErrTLS, reasonTLS}, {wire.ErrFrameSize, reasonFrameSize},
		{os.ErrDeadlineExceeded, reasonSlowWriter}, {io.ErrUnexpectedEOF, ""}, {net.ErrClosed, ""},
	} {
		if errors.Is(err, known.err) && known.why != "" {
			return &protocolError{why: known.why, err: err}
		}
	}
	return err
}

// decode parses the header and body of x's frame, or sets the answer that a version outside our range gets.
func (c *conn) decode(x *exchange) error {
	h, body, err := c.headers.Parse(x.frame.b)
	x.correlation = h.CorrelationID
	if h.ClientID != nil {
		x.call.ClientID = *h.ClientID
	}
	if err == nil || errors.Is(err, wire.ErrVersionTooOld) {
		if no := c.server.admits(h.Key, h.Version); no != nil {
			err = no
		}
	}
	switch {
	case err == nil:
		err = decodeBody(x, h, body)
	case rowOf(h.Key) == nil:
		err = wire.ErrUnknownKey
	case errors.Is(err, wire.ErrVersionTooNew) && h.Key == wire.KeyApiVersions:
		own, _ := c.server.api(h.Key)
		x.reply, err = ready(wire.RefuseApiVersions(own)), nil
	case errors.Is(err, wire.ErrVersionTooOld):
		err = refuseOld(x, h, body)
	}
	if err == nil {
		return nil
	}
	p := &protocolError{why: reasonMalformed, err: err}
	p.attr = []any{"key", h.Key, "version", h.Version, "client", clip(x.call.ClientID)}
	switch {
	case errors.Is(err, wire.ErrVersionTooNew), errors.Is(err, wire.ErrVersionTooOld):
		p.why = reasonVersion
	case errors.Is(err, wire.ErrUnknownKey):
		p.why = reasonUnknownAPI
	case errors.Is(err, wire.ErrBudget):
		p.why = reasonBudget
	}
	return p
}

func decodeBody(x *exchange, h wire.RequestHeader, body []byte) error {
	req, err := wire.NewRequest(h.Key, h.Version)
	if err != nil {
		return err
	}
	if x.call.Request, x.row = req, rowOf(h.Key); x.row == nil {
		return wire.ErrUnknownKey
	}
	return wire.DecodeRequest(req, body)
}

// refuseOld answers a version below our range in its own layout. A publish that wants no answer can only be refused by closing.
func refuseOld(x *exchange, h wire.RequestHeader, body []byte) error {
	resp, err := wire.RefuseOld(h, body)
	if err == nil && resp == nil {
		err = wire.ErrVersionTooOld
	}
	x.reply = ready(resp)
	return err
}
