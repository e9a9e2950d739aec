package server

import (
	"cmp"
	"errors"
	"net"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/wire"
)

// writer answers the requests of one connection in request order. Answers that are ready together leave in one write.
type writer struct {
	c     *conn
	out   []byte  // encoded answers that are not written yet
	box   *[]byte // where out came from, and goes when it has been written: an idle connection keeps no buffer
	timer *time.Timer
	held  lease // of out, while it is large
}

// loop answers until the connection ends, then drops what is left.
func (w *writer) loop() {
	for w.step() {
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	w.held.release()
	w.c.close()
	for _, x := range w.c.abandon() {
		x.drop()
	}
}

// abandon takes everything unanswered off the connection.
func (c *conn) abandon() []*exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.mu.queue
	if c.mu.held != nil {
		left = append(left, c.mu.held)
	}
	c.mu.queue, c.mu.held, c.mu.gone = nil, nil, true
	signal(c.toReader)
	return left
}

// step answers one request; false ends the connection.
func (w *writer) step() bool {
	x, ok := w.front()
	if !ok || !w.settle(x) {
		return false
	}
	w.c.mute(x.reply.Throttle)
	ends, why := x.reply.Close, cmp.Or(x.reply.why, reasonAcksNone)
	if !w.send(x) {
		return false
	}
	w.c.pop()
	x.slow(w.c.server)
	x.finish()
	if ends {
		w.c.server.peers.closed(why, w.c.call.Peer, "client", clip(x.call.ClientID))
		w.flush()
	}
	return !ends
}

// front waits for the oldest unanswered request, and starts a held one when its turn has come.
func (w *writer) front() (*exchange, bool) {
	c := w.c
	for {
		c.mu.Lock()
		held, ended, unsent := c.mu.held != nil, c.mu.ended, len(w.out) > 0
		c.mu.writing = len(c.mu.queue) > 0 || held || unsent
		if len(c.mu.queue) > 0 {
			x := c.mu.queue[0]
			c.mu.Unlock()
			return x, true
		}
		c.mu.Unlock()
		switch {
		case unsent: // what comes next may take long
			if !w.flush() {
				return nil, false
			}
		case held:
			c.startHeld()
		case ended:
			return nil, false
		default:
			select {
			case <-c.toWriter:
			case <-c.ctx.Done():
				return nil, false
			}
		}
	}
}

// startHeld starts what the reader had to hold back, now that everything before it has been answered.
func (c *conn) startHeld() {
	c.mu.Lock()
	x := c.mu.held
	c.mu.held, c.mu.starting = nil, true
	c.mu.Unlock()
	signal(c.toReader)
	c.start(x)
	c.mu.Lock()
	c.mu.queue = append(c.mu.queue, x)
	c.mu.starting = false
	c.mu.Unlock()
}

func (c *conn) pop() {
	c.mu.Lock()
	n := copy(c.mu.queue, c.mu.queue[1:])
	c.mu.queue[n] = nil
	c.mu.queue = c.mu.queue[:n]
	c.mu.Unlock()
	signal(c.toReader)
}

// mute has the reader take no new frame for d.
func (c *conn) mute(d time.Duration) {
	if d <= 0 {
		return
	}
	until, rules := time.Now().Add(d), c.server.quotas.Rules()
	c.mu.Lock()
	defer c.mu.Unlock()
	if until.After(c.mu.muted) || c.mu.mutedBy != rules {
		c.mu.muted, c.mu.mutedBy = until, rules
	}
}

// mutedLocked is for how long the reader takes no new frame. When quotas have changed it takes one: the next answer says what is owed by the new ones.
func (c *conn) mutedLocked() time.Duration {
	if c.mu.mutedBy == nil {
		return 0
	}
	d := time.Until(c.mu.muted)
	if d <= 0 || c.mu.mutedBy != c.server.quotas.Rules() {
		c.mu.mutedBy = nil
		return 0
	}
	return d
}

// settle waits until x's reply is ready; false means that the peer is gone.
func (w *writer) settle(x *exchange) bool {
	for x.reply.Pending != nil {
		p := x.reply.Pending
		late, ok := false, true
		select {
		case <-p.Ready():
			// However often it is woken for too little, it ends at its deadline.
			late = overdue(p)
		default:
			late, ok = w.park(x, p)
		}
		if !ok {
			return false
		}
		if late {
			x.keep()
		}
		if r, done := p.Complete(late); done {
			x.reply = r
		}
	}
	return true
}

// overdue says that a request's deadline has passed.
func overdue(p Pending) bool {
	d := p.Deadline()
	return !d.IsZero() && time.Now().After(d)
}

// park waits for p; late means that its deadline came first.
func (w *writer) park(x *exchange, p Pending) (late, ok bool) {
	if !w.flush() {
		return false, false
	}
	var hurry <-chan struct{}
	if x.row != nil && x.row.longPoll {
		hurry = w.c.hurry
	}
	select {
	case <-p.Ready():
		return false, true
	case <-w.after(p.Deadline()):
		return true, true
	case <-hurry:
		return true, true
	case <-w.c.ctx.Done():
		return false, false
	}
}

// after is the writer's one timer, set to t; nil for no deadline.
func (w *writer) after(t time.Time) <-chan time.Time {
	if t.IsZero() {
		return nil
	}
	if w.timer == nil {
		w.timer = time.NewTimer(time.Until(t))
	} else {
		w.timer.Reset(time.Until(t))
	}
	return w.timer.C
}

// send encodes x's answer, and writes it if it is large.
func (w *writer) send(x *exchange) bool {
	if w.box == nil && x.reply.Response != nil {
		w.takeBuffer()
	}
	if x.raw {
		w.out = appendRaw(w.out, x.reply.Response)
		return true
	}
	switch resp := x.reply.Response.(type) {
	case nil:
		return true
	case *kmsg.FetchResponse:
		if x.row != nil {
			return w.sendFetch(resp, x.correlation)
		}
		w.out = wire.AppendResponse(w.out, resp, x.correlation) // a refusal in a version that our encoder does not have
	default:
		w.out = wire.AppendResponse(w.out, resp, x.correlation)
	}
	return len(w.out) < outKeep || w.flush()
}

// sendFetch writes a Fetch answer around its records, which are not copied.
func (w *writer) sendFetch(resp *kmsg.FetchResponse, correlation int32) bool {
	pool := &w.c.server.encoders
	enc, _ := pool.Get().(*wire.FetchEncoder)
	if enc == nil {
		enc = new(wire.FetchEncoder)
	}
	defer pool.Put(enc)
	segments, size := enc.Encode(resp, correlation)
	if size < fetchCopyMax {
		for _, s := range segments {
			w.out = append(w.out, s...)
		}
		return len(w.out) < outKeep || w.flush()
	}
	return w.flush() && w.write(segments)
}

// fetchCopyMax is the answer size below which copying is cheaper than a vectored write.
const fetchCopyMax = 16 << 10

// flush writes what has been encoded.
func (w *writer) flush() bool {
	if len(w.out) == 0 {
		w.giveBuffer()
		return true
	}
	if cap(w.out) > outKeep {
		w.held.take(int64(cap(w.out)))
	}
	ok := w.writeOut()
	w.held.release()
	w.giveBuffer()
	return ok
}

// takeBuffer gets a buffer for answers from those that all connections share.
func (w *writer) takeBuffer() {
	box, _ := w.c.server.outs.Get().(*[]byte)
	if box == nil {
		box = new([]byte)
	}
	w.box, w.out = box, (*box)[:0]
}

// giveBuffer gives it back, empty; a large one is left to the collector.
func (w *writer) giveBuffer() {
	if w.box != nil && cap(w.out) <= outKeep {
		*w.box = w.out[:0]
		w.c.server.outs.Put(w.box)
	}
	w.box, w.out = nil, nil
}

// writeOut sends the encoded answers.
func (w *writer) writeOut() bool {
	for rest := w.out; len(rest) > 0; {
		n := min(len(rest), writeChunk)
		w.deadline()
		if _, err := w.c.net.Write(rest[:n]); err != nil {
			w.failed(err)
			return false
		}
		rest = rest[n:]
	}
	return true
}

func (w *writer) deadline() { w.c.net.SetWriteDeadline(time.Now().Add(w.c.server.limits.WriteStall)) }

// failed names a peer that takes no bytes.
func (w *writer) failed(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.c.server.peers.closed(reasonSlowReader, w.c.call.Peer, "stalled", w.c.server.limits.WriteStall)
	}
}

// write sends bufs, part by part, each under its own deadline: a peer that takes nothing is closed, a slow one is not (K60).
func (w *writer) write(bufs net.Buffers) bool {
	for len(bufs) > 0 {
		part := cut(&bufs, writeChunk)
		w.deadline()
		if _, err := part.WriteTo(w.c.net); err != nil {
			w.failed(err)
			return false
		}
	}
	return true
}

// cut takes at most n bytes off the front of bufs.
func cut(bufs *net.Buffers, n int) net.Buffers {
	all := *bufs
	for i, b := range all {
		if len(b) < n {
			n -= len(b)
			continue
		}
		part := append(net.Buffers(nil), all[:i]...)
		part = append(part, b[:n])
		rest := all[i:]
		if len(b) == n {
			rest = all[i+1:]
		} else {
			rest[0] = b[n:]
		}
		*bufs = rest
		return part
	}
	*bufs = nil
	return all
}
