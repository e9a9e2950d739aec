package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"strandline.dev/internal/auth/certs"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/sys"
)

// Config is what Peers needs. Functions may be called from any goroutine and must not block.
type Config struct {
	Net sys.Net
	// TLS authenticates both sides; nil: plaintext.
	TLS *certs.Source
	// Self says who this process is. When it changes, connections are opened anew before they are used again.
	Self func() Identity
	// Resolve returns the cluster address of a node.
	Resolve func(kafka.NodeID) (address string, ok bool)
	// Admit refuses other processes by name, dialled and dialling ones: its error is told to them. nil admits all.
	Admit func(Identity) error
	// Gone is told that an accepted connection has ended. nil: nobody wants to know.
	Gone    func(Identity, Class)
	Log     *slog.Logger
	Metrics *metrics.Peer
}

// Peers are the other nodes of a cluster.
type Peers struct {
	cfg      Config
	lines    *lines
	requests map[Kind]requestHandler // not changed after Serve
	oneWays  map[Kind]oneWayHandler
	open     atomic.Int64 // accepted connections
	unknown  atomic.Int64 // those without an accepted hello

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // dials and connections

	mu    sync.Mutex // a leaf
	ended bool
	lanes map[laneKey]*lane
	conns map[*conn]struct{}
}

type laneKey struct {
	to    kafka.NodeID
	class Class
}

type requestHandler struct {
	new func() Message
	h   func(ctx context.Context, from Identity, m Message) (Message, error)
}

type oneWayHandler struct {
	new func() Message
	h   func(from Identity, m Message)
}

// New returns Peers without connections.
func New(cfg Config) *Peers {
	p := &Peers{
		cfg: cfg, requests: map[Kind]requestHandler{}, oneWays: map[Kind]oneWayHandler{},
		lanes: map[laneKey]*lane{}, conns: map[*conn]struct{}{},
	}
	p.lines = newLines(cfg.Log, cfg.Metrics)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// HandleRequest says who answers a kind. h runs in a goroutine for each request, at most inFlightMax a connection; its ctx ends with the
// connection. An error becomes the caller's RemoteError. Call it before Serve.
func (p *Peers) HandleRequest(k Kind, new func() Message, h func(ctx context.Context, from Identity, m Message) (Message, error)) {
	mustKind(k, false)
	p.requests[k] = requestHandler{new, h}
}

// HandleOneWay says who takes a kind that is not answered. h runs in the connection's reader, in order of arrival, also while a request of the
// same connection is parked, so it must not block. Call it before Serve.
func (p *Peers) HandleOneWay(k Kind, new func() Message, h func(from Identity, m Message)) {
	mustKind(k, true)
	p.oneWays[k] = oneWayHandler{new, h}
}

// Call sends a request and waits for its answer. It dials when there is no connection, and waits for the back-off after failed dials, which
// ctx bounds. Errors: ErrUnreachable with its kinds ErrRefused, ErrDenied and ErrBusy (nothing was sent); ErrBroken (outcome unknown);
// *RemoteError.
func (p *Peers) Call(ctx context.Context, to kafka.NodeID, m Message, answer Message) error {
	row := mustKind(m.Kind(), false)
	l := p.lane(to, row.class)
	for {
		c, err := l.connect(ctx)
		if err == nil {
			err = c.call(ctx, m, answer)
		} else {
			releaseMessage(m)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errStale) && ctx.Err() == nil && !p.isClosed():
			continue // it ended between the two lines above; each round dials, and waits for the back-off
		}
		return fmt.Errorf("%s to node %v: %w", row.name, to, err)
	}
}

// Send queues a one-way message and never blocks. It dials when there is no connection; what waits for a dial that fails is lost. Errors:
// ErrBusy; ErrUnreachable (dials have failed, and it is too early for another). After an error the message is not sent.
func (p *Peers) Send(to kafka.NodeID, m Message) error {
	row := mustKind(m.Kind(), true)
	f := newFrame(m.Kind(), flagOneWay, 0, m)
	if err := p.lane(to, row.class).send(f); err != nil {
		f.release()
		p.cfg.Metrics.Dropped.Inc()
		return fmt.Errorf("%s to node %v: %w", row.name, to, err)
	}
	return nil
}

// CallAddress is Call to whoever is behind an address, over a connection of its own: for forming, when no node id is known to be there.
// It does not wait for a back-off.
func (p *Peers) CallAddress(ctx context.Context, address string, m, answer Message) error {
	row := mustKind(m.Kind(), false)
	h := &hello{version: protocolVersion, self: p.cfg.Self(), class: row.class, passing: true, expected: kafka.NoNode}
	err := p.pass(ctx, address, h, func(c *conn) error { return c.call(ctx, m, answer) }, func() { releaseMessage(m) })
	if err != nil {
		return fmt.Errorf("%s to %s: %w", row.name, address, err)
	}
	return nil
}

// Probe dials a node anew and exchanges hellos. nil: the process lives and is the node's. ErrRefused: nobody listens. Any other error:
// not known.
func (p *Peers) Probe(ctx context.Context, to kafka.NodeID) error {
	address, ok := p.cfg.Resolve(to)
	if !ok {
		return fmt.Errorf("%w: the address of node %v is not known", ErrUnreachable, to)
	}
	h := &hello{version: protocolVersion, self: p.cfg.Self(), class: Control, passing: true, expected: to}
	return p.pass(ctx, address, h, func(*conn) error { return nil }, func() {})
}

// pass opens a connection for one use. unused is called when it comes to none.
func (p *Peers) pass(ctx context.Context, address string, h *hello, use func(*conn) error, unused func()) error {
	if !p.begin() {
		unused()
		return fmt.Errorf("%w: %w", ErrUnreachable, errClosed)
	}
	defer p.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	c, err := p.greet(ctx, address, h)
	if err != nil {
		unused()
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run()
	}()
	stop := context.AfterFunc(ctx, func() { c.end(errClosed) })
	err = use(c)
	stop()
	c.end(errClosed)
	<-done
	return err
}

// Recheck asks Admit about every open connection and ends those refused: for the moment when a newer process of a node has registered.
func (p *Peers) Recheck() {
	if p.cfg.Admit == nil {
		return
	}
	p.mu.Lock()
	conns := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		conns = append(conns, c)
	}
	p.mu.Unlock()
	for _, c := range conns {
		if err := p.cfg.Admit(c.there); err != nil {
			c.end(fmt.Errorf("%w: %w", errClosed, err))
		}
	}
}

// Close ends all connections and dials. Calls fail, now and later. All goroutines of this package have ended when it returns, apart from Serve's
// accept loop, which its ctx ends.
func (p *Peers) Close() {
	p.mu.Lock()
	p.ended = true
	conns := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		conns = append(conns, c)
	}
	p.mu.Unlock()
	p.cancel()
	for _, c := range conns {
		c.end(errClosed)
	}
	p.running.Wait()
}

func (p *Peers) isClosed() bool { return p.ctx.Err() != nil }

// begin counts a goroutine that Close waits for, unless Close was called.
func (p *Peers) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	p.running.Add(1)
	return true
}

// remember makes Close and Recheck reach a connection, unless Close was called.
func (p *Peers) remember(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Peers) forget(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// lane returns the lane to a node. There are as many as the caller knows nodes.
func (p *Peers) lane(to kafka.NodeID, class Class) *lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := laneKey{to, class}
	l := p.lanes[key]
	if l == nil {
		l = &lane{p: p, to: to, class: class}
		p.lanes[key] = l
	}
	return l
}

func releaseMessage(m Message) {
	if r, ok := m.(Releaser); ok {
		r.Release()
	}
}
