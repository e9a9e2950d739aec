package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// errClosed is why a connection ends that this node does not need any more.
var errClosed = errors.New("closed by this node")

// conn is one connection after its hello, on either side. A dialled one carries requests and one-way messages out and answers in; an accepted
// one the reverse.
type conn struct {
	p        *Peers
	nc       net.Conn
	raw      net.Conn // under TLS, what carries it: closing it never waits for the peer
	r        *bufio.Reader
	self     Identity // who this side said it is
	there    Identity
	class    Class
	accepted bool
	passing  bool

	ctx      context.Context // ends with the connection
	cancel   context.CancelFunc
	wake     chan struct{} // the queue is not empty
	inFlight chan struct{} // slots of requests in work
	handlers sync.WaitGroup

	next atomic.Int64

	mu         sync.Mutex // a leaf
	queue      []*frame
	queueBytes int
	pending    map[int64]*call
	broken     error // set once, when the connection has ended
	retired    bool  // takes no more calls, and ends when none waits
}

// connEnds are what a conn is made from.
type connEnds struct {
	nc, raw     net.Conn
	r           *bufio.Reader
	self, there Identity
	class       Class
	accepted    bool
	passing     bool
}

func (p *Peers) newConn(e connEnds) *conn {
	c := &conn{
		p: p, nc: e.nc, raw: e.raw, r: e.r, self: e.self, there: e.there, class: e.class, accepted: e.accepted, passing: e.passing,
		wake: make(chan struct{}, 1), inFlight: make(chan struct{}, inFlightMax), pending: map[int64]*call{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// run reads and writes until the connection ends. All its goroutines have ended when it returns.
func (c *conn) run() {
	c.p.cfg.Metrics.Connections.Inc()
	defer c.p.cfg.Metrics.Connections.Dec()
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.writeLoop()
	}()
	c.end(c.readLoop())
	if c.accepted && !c.passing && c.p.cfg.Gone != nil {
		c.p.cfg.Gone(c.there, c.class)
	}
	<-written
	c.handlers.Wait()
}

// end closes the connection and fails what waits on it. Only the first error counts.
func (c *conn) end(err error) {
	c.mu.Lock()
	if c.broken != nil {
		c.mu.Unlock()
		return
	}
	c.broken = err
	queue, pending := c.queue, c.pending
	c.queue, c.pending, c.queueBytes = nil, nil, 0
	failed := map[*call]error{}
	for _, k := range pending {
		failed[k] = fmt.Errorf("%w: %w", ErrBroken, err)
		if k.state == waiting {
			failed[k] = fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		k.state = over
	}
	c.mu.Unlock()
	c.cancel()
	c.raw.Close()
	for k, err := range failed {
		k.finish(err)
	}
	for _, f := range queue {
		c.drop(f)
	}
	if !errors.Is(err, errClosed) && !c.passing {
		c.p.cfg.Metrics.Broken.Inc()
		c.p.cfg.Log.Debug("connection to another node ended", "peer", c.there.Node, "class", c.class.String(), "accepted", c.accepted, "error", err)
	}
}

// drop releases a frame that is not written.
func (c *conn) drop(f *frame) {
	if f.call == nil && f.slot == nil {
		c.p.cfg.Metrics.Dropped.Inc()
	}
	f.release()
}

// usable says whether new calls may use the connection.
func (c *conn) usable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken == nil && !c.retired
}

// retire lets the connection end when no call waits on it any more.
func (c *conn) retire() {
	c.mu.Lock()
	c.retired = true
	c.mu.Unlock()
	c.settle()
}

// settle ends a retired connection without work.
func (c *conn) settle() {
	c.mu.Lock()
	idle := c.retired && len(c.pending) == 0 && len(c.queue) == 0
	c.mu.Unlock()
	if idle {
		c.end(errClosed)
	}
}

// call sends a request and waits for its answer.
func (c *conn) call(ctx context.Context, m, answer Message) error {
	correlation := c.next.Add(1)
	k := &call{kind: m.Kind(), answer: answer, done: make(chan struct{})}
	f := newFrame(m.Kind(), 0, correlation, m)
	f.call = k
	if err := c.enqueue(f, correlation); err != nil {
		f.release()
		return err
	}
	err := c.wait(ctx, correlation, k)
	c.settle()
	return err
}

// enqueue hands a frame to the writer, unless it says ErrUnreachable, of which ErrBusy is a kind; then the frame is still the caller's. Answers
// always find room: their number is bounded by inFlightMax.
func (c *conn) enqueue(f *frame, correlation int64) error {
	if limit := frameBytesMax(c.class); f.size-sizeBytes > limit {
		return fmt.Errorf("%w: message of %d bytes, above the limit of %d", ErrUnreachable, f.size, limit)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	full := len(c.queue) >= queueFramesMax || c.queueBytes > 0 && c.queueBytes+f.size > queueBytesMax
	switch {
	case c.broken != nil:
		return fmt.Errorf("%w: %w", errStale, c.broken)
	case c.retired && f.slot == nil:
		return errStale
	case f.slot == nil && full, f.call != nil && len(c.pending) >= pendingMax:
		return fmt.Errorf("%w: node %v, %v", ErrBusy, c.there.Node, c.class)
	}
	if f.call != nil {
		c.pending[correlation] = f.call
	}
	c.queue = append(c.queue, f)
	c.queueBytes += f.size
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

// errStale means that a connection ended before the frame was queued: another one may be dialled.
var errStale = fmt.Errorf("%w: its connection has ended", ErrUnreachable)

// take empties the queue. From here on the outcome of its calls is unknown; those given up already are not sent.
func (c *conn) take() []*frame {
	c.mu.Lock()
	queue := c.queue
	c.queue, c.queueBytes = nil, 0
	frames := queue[:0]
	var givenUp []*frame
	for _, f := range queue {
		if f.call != nil && f.call.state == over {
			givenUp = append(givenUp, f)
			continue
		}
		if f.call != nil {
			f.call.state = sent
		}
		frames = append(frames, f)
	}
	c.mu.Unlock()
	for _, f := range givenUp {
		f.release()
	}
	return frames
}

// unreachable and broken say what is known of a call whose time was up.
func unreachable(ctx context.Context) error {
	return fmt.Errorf("%w: %w", ErrUnreachable, context.Cause(ctx))
}
func broken(ctx context.Context) error { return fmt.Errorf("%w: %w", ErrBroken, context.Cause(ctx)) }

// writeLoop writes what is queued, and a ping when nothing is.
func (c *conn) writeLoop() {
	w := writer{nc: c.nc}
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	quiet := false
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.wake:
			quiet = false
		case <-ping.C:
			if !quiet {
				quiet = true
				continue
			}
			w.add(pingFrame)
		}
		frames := c.take()
		var err error
		for _, f := range frames {
			if err == nil {
				err = w.frame(f)
			}
		}
		if err == nil {
			err = w.flush()
		}
		for _, f := range frames {
			f.release()
		}
		if err != nil {
			c.end(fmt.Errorf("write: %w", err))
			return
		}
	}
}
