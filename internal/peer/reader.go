package peer

import (
	"fmt"
	"time"
)

// readLoop reads frames until the connection ends, and returns why.
func (c *conn) readLoop() error {
	for {
		if err := c.nc.SetReadDeadline(time.Now().Add(idleMax)); err != nil {
			return err
		}
		h, err := readHeader(c.r, frameBytesMax(c.class))
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if err := c.read(h); err != nil {
			return fmt.Errorf("read %v: %w", h.kind, err)
		}
	}
}

// read reads the rest of a frame and does what it asks for. An error ends the connection.
func (c *conn) read(h header) error {
	if h.kind == kindPing {
		return c.skip(h.size)
	}
	row, known := kinds[h.kind]
	if known && row.class != c.class {
		return fmt.Errorf("%w: it does not belong on a connection of class %v", errFrame, c.class)
	}
	switch {
	case h.flags&^flagFault == flagAnswer && !c.accepted:
		return c.readAnswer(h)
	case h.flags == flagOneWay && c.accepted:
		return c.readOneWay(h)
	case h.flags == 0 && c.accepted:
		return c.readRequest(h)
	}
	return fmt.Errorf("%w: flags %#x", errFrame, h.flags)
}

// readAnswer completes the call that an answer belongs to.
func (c *conn) readAnswer(h header) error {
	k := c.claim(h.correlation)
	if k == nil {
		return c.skip(h.size) // given up
	}
	if k.kind != h.kind {
		k.finish(fmt.Errorf("%w: %w: %v answered with %v", ErrBroken, errFrame, k.kind, h.kind))
		return errFrame
	}
	var buf []byte
	if r, ok := k.answer.(Receiver); ok && h.flags&flagFault == 0 {
		buf = r.Buffer(h.size)
	}
	body, err := readBody(c.nc, c.r, h.size, buf)
	switch {
	case err != nil:
		k.finish(fmt.Errorf("%w: %w", ErrBroken, err))
		return err
	case h.flags&flagFault != 0:
		k.finish(decodeFault(h.kind, body))
		return nil
	}
	if err := k.answer.Decode(body); err != nil {
		k.finish(fmt.Errorf("%w: the answer to %v cannot be read: %w", ErrBroken, h.kind, err))
		return nil
	}
	k.finish(nil)
	return nil
}

// readOneWay handles a one-way message here and now: order matters.
func (c *conn) readOneWay(h header) error {
	handler, ok := c.p.oneWays[h.kind]
	if !ok {
		c.p.lines.odd(c.there, fmt.Sprintf("sends %v, which this node does not handle", h.kind))
		return c.skip(h.size)
	}
	body, err := readBody(c.nc, c.r, h.size, nil)
	if err != nil {
		return err
	}
	m := handler.new()
	if err := m.Decode(body); err != nil {
		c.p.lines.odd(c.there, fmt.Sprintf("sends %v that cannot be read: %v", h.kind, err))
		return nil
	}
	handler.h(c.there, m)
	return nil
}

// readRequest starts a request, or refuses it by name.
func (c *conn) readRequest(h header) error {
	select {
	case c.inFlight <- struct{}{}:
	default:
		if err := c.skip(h.size); err != nil {
			return err
		}
		return c.refuse(h, Overloaded, "too many requests of this connection are in work", nil)
	}
	handler, ok := c.p.requests[h.kind]
	if !ok {
		if err := c.skip(h.size); err != nil {
			return err
		}
		return c.refuse(h, NotServed, "this node does not handle it", c)
	}
	body, err := readBody(c.nc, c.r, h.size, nil)
	if err != nil {
		return err
	}
	m := handler.new()
	if err := m.Decode(body); err != nil {
		return c.refuse(h, Malformed, err.Error(), c)
	}
	c.handlers.Go(func() { c.serve(h, handler, m) })
	return nil
}

// serve runs a request's handler and queues its answer, which keeps the slot until it is written.
func (c *conn) serve(h header, handler requestHandler, m Message) {
	answer, err := handler.h(c.ctx, c.there, m)
	f := (*frame)(nil)
	if err != nil {
		f = faultFrame(h.kind, h.correlation, Failed, err.Error())
	} else {
		f = newFrame(h.kind, flagAnswer, h.correlation, answer)
	}
	if f.size-sizeBytes > frameBytesMax(c.class) {
		f.release()
		f = faultFrame(h.kind, h.correlation, Failed, fmt.Sprintf("the answer has %d bytes", f.size))
	}
	f.slot = c
	if c.enqueue(f, 0) != nil {
		f.release() // the connection has ended
	}
}

// refuse answers a request that is not handled. slot is the connection if the request holds a slot of it. Without one the refusals
// are bounded by the queue: a peer that takes no answers while it goes on asking is broken.
func (c *conn) refuse(h header, fault Fault, text string, slot *conn) error {
	f := faultFrame(h.kind, h.correlation, fault, text)
	f.slot = slot
	if err := c.enqueue(f, 0); err != nil {
		f.release()
		return err
	}
	return nil
}

// skip reads over a body nobody wants.
func (c *conn) skip(size int) error {
	for size > 0 {
		n, err := c.r.Discard(min(size, bodyChunk))
		if size -= n; err != nil {
			return noEOF(err)
		}
		c.nc.SetReadDeadline(time.Now().Add(idleMax))
	}
	return nil
}
