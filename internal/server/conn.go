package server

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"strandline.dev/internal/metadata"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/wire"
)

// conn is one client connection: a reader that decodes and starts requests, and a writer that answers them in request order.
//
// The queue holds started requests, oldest first. Only Produce is started behind an unanswered Produce; anything else that the reader
// has decoded too early waits in held, and the writer starts it when the queue has run empty. So at most one request is read ahead,
// and the reader, waiting for the next frame's first byte, notices a peer that goes away while its requests are parked (C116).
//
// When nothing is unanswered and the answer is there at once, the reader sends it itself: waking the writer would cost more than most
// requests. Only one of the two writes at a time: the reader while the writer is idle (mu.writing), the writer otherwise.
type conn struct {
	server *Server
	raw    net.Conn // as accepted
	net    net.Conn // raw, or TLS over it; set before the writer starts
	guard  *guard
	in     *bufio.Reader
	// headers parses request headers: reader only.
	headers wire.HeaderParser
	// call is what every Call of this connection has in common.
	call   Call
	ctx    context.Context // ends when the peer is gone
	cancel context.CancelFunc
	// stall is the read deadline in force, direct sends the reader's own answers, proven is what the frames
	// that arrived whole of late had: reader only.
	stall    time.Duration
	direct   writer
	proven   int
	draining atomic.Bool
	spoke    atomic.Bool   // a request has come, after those that begin a connection
	hurry    chan struct{} // closed by drain: long polls answer with what there is

	toWriter chan struct{} // capacity 1: the queue, held or ended changed
	toReader chan struct{} // capacity 1: held or the queue's length changed
	mu       struct {
		sync.Mutex
		queue    []*exchange
		held     *exchange
		starting bool            // the writer is starting what was held
		writing  bool            // the writer is not idle: only it may write
		ended    bool            // the reader is done; the writer ends once everything is answered
		gone     bool            // the writer is done; what is pushed now is dropped
		muted    time.Time       // the reader takes no new frame before (throttling)
		mutedBy  *metadata.Image // the quotas of then: by others it is not muted any more
	}
}

// exchange is one request and its answer on a connection.
type exchange struct {
	call        Call
	row         *row
	correlation int32
	frame       *frame // the request's bytes: call.Request has views of them
	lease       lease  // of the frame's bytes
	reply       Reply
	raw         bool // a message of a login, without a header
}

// newConn makes the connection of nc; common is what every Call of its listener has in common.
func newConn(ctx context.Context, s *Server, common Call, door *Door, nc net.Conn) *conn {
	common.Peer, common.Local = peerName(nc), localAddr(nc)
	common.host = common.Peer
	if host, _, err := net.SplitHostPort(common.Peer); err == nil {
		common.host = host
	}
	common.guard = s.newGuard(door, common.host)
	c := &conn{
		server: s, raw: nc, net: nc, guard: common.guard,
		hurry:    make(chan struct{}),
		toWriter: make(chan struct{}, 1),
		toReader: make(chan struct{}, 1),
		call:     common,
	}
	c.direct = writer{c: c, held: lease{b: s.answers}}
	c.in = bufio.NewReaderSize(timedReader{c}, readBuffer)
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

func localAddr(nc net.Conn) netip.AddrPort {
	if nc.LocalAddr() == nil {
		return netip.AddrPort{}
	}
	a, err := netip.ParseAddrPort(nc.LocalAddr().String())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// run serves the connection until it is closed.
func (c *conn) run() {
	if c.guard.door.asksLogin() {
		defer c.expectLogin()()
	}
	if !c.secure() {
		return
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		w := &writer{c: c, held: lease{b: c.server.answers}}
		w.loop()
	}()
	c.readLoop()
	<-written
}

// close ends the connection at once; parked work is dropped by the writer.
func (c *conn) close() {
	c.cancel()
	c.raw.Close()
}

// drain begins a graceful end: no further frame is read, and what is parked finishes.
func (c *conn) drain() {
	if c.draining.CompareAndSwap(false, true) {
		close(c.hurry)
		c.raw.SetReadDeadline(longAgo)
		signal(c.toReader)
	}
}

var longAgo = time.Unix(1, 0)

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// timedReader puts a deadline on each read from the socket.
type timedReader struct{ c *conn }

func (t timedReader) Read(p []byte) (int, error) {
	if t.c.stall > 0 {
		t.c.net.SetReadDeadline(time.Now().Add(t.c.stall))
		if t.c.draining.Load() { // drain may have set its deadline just before ours
			t.c.net.SetReadDeadline(longAgo)
		}
	}
	return t.c.net.Read(p)
}

// readLoop reads, decodes and starts requests.
func (c *conn) readLoop() {
	for c.awaitFrame() && c.awaitTurn() {
		x, err := c.readRequest()
		if err != nil {
			if !c.draining.Load() {
				c.refuse(err)
				c.close()
			}
			break
		}
		if !x.introduces() {
			c.spoke.Store(true)
		}
		if !c.begin(x) {
			break
		}
	}
	c.direct.flush()
	c.mu.Lock()
	c.mu.ended = true
	c.mu.Unlock()
	if !c.draining.Load() {
		c.close()
	}
	signal(c.toWriter)
}

// awaitFrame waits for the first bytes of a frame; false means that the connection ends. An idle peer is closed, unless its requests
// are parked here.
func (c *conn) awaitFrame() bool {
	for {
		c.stall = c.server.broker().ConnectionsMaxIdle
		_, err := c.in.Peek(frameHead)
		switch {
		case err == nil:
			return true
		case c.draining.Load() || c.ctx.Err() != nil || !errors.Is(err, os.ErrDeadlineExceeded):
			return false
		case c.busy():
			continue
		}
		c.server.peers.closed(reasonIdle, c.call.Peer, "idle", c.stall)
		return false
	}
}

func (c *conn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.mu.queue) > 0 || c.mu.held != nil || c.mu.starting
}

// awaitTurn waits until one more frame may be read: nothing is held back, the pipeline has room, and the client is not throttled. A peer
// that pipelined requests behind a long poll and went away cannot be noticed by reading, since its requests stand before its end; it is
// looked for, else each such poll would hold a connection and what is parked on it for fetchWaitMax (K59).
func (c *conn) awaitTurn() bool {
	for {
		c.mu.Lock()
		room := c.mu.held == nil && len(c.mu.queue) < pipelineMax
		muted := c.mutedLocked()
		c.mu.Unlock()
		if room && muted <= 0 {
			return true
		}
		if !c.direct.flush() { // the wait may be long
			return false
		}
		over := time.After(goneCheck)
		if room {
			over = time.After(min(muted, goneCheck))
		}
		select {
		case <-c.toReader:
		case <-over:
			if sys.HungUp(c.raw) {
				return false
			}
		case <-c.ctx.Done():
			return false
		}
		if c.draining.Load() {
			return false
		}
	}
}

// begin starts x if it is its turn, else leaves it to the writer; false ends the connection.
func (c *conn) begin(x *exchange) bool {
	c.mu.Lock()
	turn, idle, gone := c.turnLocked(x), len(c.mu.queue) == 0 && !c.mu.writing, c.mu.gone
	c.mu.Unlock()
	if gone { // the answer to a request before it has ended the connection, such as a failed login
		x.drop()
		return false
	}
	if turn {
		c.start(x)
		if r := &x.reply; idle && r.Pending == nil && !r.Close && r.Throttle == 0 {
			return c.answer(x)
		}
	}
	if !c.direct.flush() { // the writer's turn to write
		x.drop()
		return false
	}
	c.push(x, turn)
	return true
}

// answer sends a ready answer. When another whole request is here already, the answers leave together.
func (c *conn) answer(x *exchange) bool {
	ok := c.direct.send(x)
	x.slow(c.server)
	x.finish()
	return ok && (c.frameBuffered() || c.direct.flush())
}

// frameBuffered says whether the next frame can be read without waiting.
func (c *conn) frameBuffered() bool {
	n := c.in.Buffered() - frameHead
	if n < 0 {
		return false
	}
	head, err := c.in.Peek(frameHead)
	return err == nil && uint32(n) >= binary.BigEndian.Uint32(head)
}

// turnLocked says whether x may start behind what is in the queue. All of the queue is Produce when its last one is.
func (c *conn) turnLocked(x *exchange) bool {
	if c.mu.held != nil || c.mu.starting {
		return false
	}
	n := len(c.mu.queue)
	return n == 0 || (x.pipelines() && c.mu.queue[n-1].pipelines())
}

// introduces says that the request only begins a connection: clients count from the first one after those.
func (x *exchange) introduces() bool {
	return x.row != nil && x.row.key == wire.KeyApiVersions
}

func (x *exchange) pipelines() bool { return x.row != nil && x.row.key == wire.KeyProduce }

// start runs the handler, unless the answer was known when the request was read (a refused version).
func (c *conn) start(x *exchange) {
	if x.row != nil {
		if no := c.guard.admit(&x.call); no != "" {
			x.reply = Reply{Close: true, why: no}
		} else {
			x.reply = c.server.Do(c.ctx, &x.call)
		}
		c.mute(x.reply.Throttle)
	}
	if x.pipelines() {
		x.free() // the batches are in the log: a parked publish holds no request bytes
	}
}

// push hands x to the writer: at the end of the queue when it has been started, else to be started later.
func (c *conn) push(x *exchange, started bool) {
	c.mu.Lock()
	gone := c.mu.gone
	switch {
	case gone:
	case started:
		c.mu.queue = append(c.mu.queue, x)
	default:
		c.mu.held = x
	}
	c.mu.Unlock()
	if gone {
		x.drop()
		return
	}
	signal(c.toWriter)
}

// drop lets go of everything an unanswered exchange holds.
func (x *exchange) drop() {
	if x.reply.Pending != nil {
		x.reply.Pending.Cancel()
		x.keep()
	}
	x.finish()
}

// keep leaves the request's bytes to the collector: whoever works on the answer, a login or a group's coordinator, has not ended with it and would read
// those of the next request.
func (x *exchange) keep() { x.frame = nil }

// finish gives back the buffers of an exchange that has been answered or dropped.
func (x *exchange) finish() {
	if x.reply.Release != nil {
		x.reply.Release()
	}
	x.reply = Reply{}
	x.free()
}

// free gives back the request's bytes; nothing may look at them from then on.
func (x *exchange) free() {
	putFrame(x.frame)
	x.frame = nil
	x.lease.release()
}
