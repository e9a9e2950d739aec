package controller

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/quorum"
	"strandline.dev/internal/sys"
)

// Quorum is what the controller needs of *quorum.Quorum. It is an interface because a quorum of one voter never loses its
// leadership, and what happens then is the hard part of this package: tests bring a quorum that does.
type Quorum interface {
	// Image is the committed metadata; Changed is closed at the next one.
	Image() *metadata.Image
	Changed() <-chan struct{}
	// Leadership says who leads; LeadershipChanged is closed when that changes.
	Leadership() quorum.Leadership
	LeadershipChanged() <-chan struct{}
	// LogEnd is the index of the next entry. While this node leads, only Propose raises it.
	LogEnd() uint64
	// Propose appends records as the entry at index, or nothing.
	Propose(term, index uint64, rs []metadata.Record) error
	// Stopped is closed when the quorum runs no more.
	Stopped() <-chan struct{}
}

// Config is what a Controller needs.
type Config struct {
	Quorum  Quorum
	Wall    sys.Wall
	Log     *slog.Logger
	Metrics *metrics.Broker
	// Peers are the other nodes, and Node this one. Without Peers there are no others: no sessions are kept, and nobody is fenced for silence.
	// New registers the handlers, so it comes before Peers.Serve; Gone of the Peers' Config is to call Gone here.
	Peers *peer.Peers
	Node  kafka.NodeID
	// SessionTimeout is broker.session.timeout; 0 for its default.
	SessionTimeout time.Duration
	// InternalReplicas is how many replicas the brokers' own topics are raised to as brokers come; 0 or 1 leaves them.
	InternalReplicas int
}

// Controller takes metadata events and answers them when their changes are committed.
type Controller struct {
	quorum  Quorum
	wall    sys.Wall
	log     *slog.Logger
	metrics *metrics.Broker

	inbox            chan *call
	done             chan struct{}
	peers            *peer.Peers
	node             kafka.NodeID
	sessionTimeout   time.Duration
	internalReplicas int
	sessions         sessions
	// reigning is the term in which this node decides, 0 while it does not: what heartbeats may know of the loop.
	reigning atomic.Uint64
	gone     chan peer.Identity
	probed   chan probed
	running  sync.WaitGroup // probes

	// The fields below belong to Run.

	// watch tells whether the wall clock has stepped, stepped what it said last.
	watch   sys.WallWatch
	stepped bool
	// reign is the state of this node as the active controller, nil while it is not. taking is the take-over before it, tookOver the last term
	// that had one.
	reign    *reign
	taking   *takeOver
	tookOver uint64
	// missed are those whose connections have broken while this node led and did not decide. probing are the brokers that are being dialled, due
	// those that are gone and not fenced yet; checked is when the sessions were looked at.
	missed  []peer.Identity
	probing []kafka.NodeID
	due     []metadata.FenceBroker
	checked time.Time
}

// call is one event and whom to answer.
type call struct {
	ctx    context.Context
	event  metadata.Event
	answer chan answer // holds one
	// state lets the caller who gives up know whether the event will still be decided.
	state atomic.Int32
}

// The states of a call.
const (
	waiting  = 0
	deciding = 1 // a round has taken it
	givenUp  = 2 // its caller has gone: it will not be decided
)

// take claims a call for a round, unless its caller has gone.
func (one *call) take() bool {
	return one.ctx.Err() == nil && one.state.CompareAndSwap(waiting, deciding)
}

type answer struct {
	reply   any
	version uint64
	err     error
}

// New returns a controller that waits for Run.
func New(c Config) *Controller {
	made := &Controller{
		quorum: c.Quorum, wall: c.Wall, log: c.Log, metrics: c.Metrics,
		peers: c.Peers, node: c.Node, sessionTimeout: c.SessionTimeout, internalReplicas: c.InternalReplicas,
		inbox: make(chan *call, inboxMax), done: make(chan struct{}),
		gone: make(chan peer.Identity, goneMax), probed: make(chan probed, goneMax),
		watch: sys.WatchWall(c.Wall),
	}
	if made.sessionTimeout == 0 {
		made.sessionTimeout = sessionTimeoutDefault
	}
	if c.Peers != nil {
		made.serve(c.Peers)
	}
	return made
}

// Submit decides an event and returns its reply when everything the reply tells of is committed; version is the index that
// was waited for, and a view at that version shows it. Time, ids and seeds of the event are filled in here. While no leader
// is known Submit waits for one, as long as ctx allows. Errors: ErrNotController, ErrBusy (nothing was decided);
// ErrUnknownOutcome; ErrRefused. When ctx ends before the event was decided, that is ErrNotController.
func (c *Controller) Submit(ctx context.Context, ev metadata.Event) (reply any, version uint64, err error) {
	if c.quorum.Leadership().Leading {
		c.metrics.ControllerRequests.WithLabelValues(eventName(ev)).Inc()
	}
	// Without a place in the answer channel the loop would wait for callers that have gone.
	one := &call{ctx: ctx, event: ev, answer: make(chan answer, 1)}
	select {
	case c.inbox <- one:
	default:
		return nil, 0, ErrBusy
	}
	select {
	case a := <-one.answer:
		return a.reply, a.version, a.err
	case <-ctx.Done():
		if one.state.CompareAndSwap(waiting, givenUp) {
			return nil, 0, fmt.Errorf("%w: nothing was decided: %w", ErrNotController, ctx.Err())
		}
		return nil, 0, fmt.Errorf("%w: %w", ErrUnknownOutcome, ctx.Err())
	case <-c.done:
	}
	select {
	case a := <-one.answer:
		return a.reply, a.version, a.err
	default:
		return nil, 0, ErrNotController
	}
}

// eventName is the label of an event: the name of its type, of which there are a few dozen.
func eventName(ev metadata.Event) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", ev), "metadata.")
}

// Run decides until ctx ends or the quorum stops. It is called once.
func (c *Controller) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer c.running.Wait()
	defer cancel()
	defer close(c.done)
	defer c.endReign("stopped")
	expire, check, tend := time.NewTicker(expireEvery), time.NewTicker(checkEvery), time.NewTicker(tendEvery)
	defer expire.Stop()
	defer check.Stop()
	defer tend.Stop()
	if c.peers == nil {
		check.Stop() // nobody can be silent
		tend.Stop()  // nor take anything over
	}
	c.checked = time.Now()
	for {
		// The channels come before the values, or a change in between would be missed. The Image comes before the
		// leadership: while this node still leads in the term, every entry of that Image that it proposed is its own.
		changed, led := c.quorum.Changed(), c.quorum.LeadershipChanged()
		image := c.quorum.Image()
		leadership := c.quorum.Leadership()
		c.observe(ctx, image, leadership)
		select {
		case <-ctx.Done():
			return
		case <-c.quorum.Stopped():
			return
		case <-changed:
		case <-led:
		case <-expire.C:
			if c.reign != nil && !c.behind() {
				c.round(c.expiry())
			}
		case <-check.C:
			c.checkSessions()
		case now := <-tend.C:
			c.tend(now)
		case who := <-c.gone:
			c.lost(ctx, who)
		case p := <-c.probed:
			c.afterProbe(p)
		case dead := <-c.takenOver():
			c.taking.found, c.taking.done = dead, true
		case first := <-c.openInbox(leadership):
			c.take(first)
		}
	}
}

// openInbox returns the inbox, or nil while events are to wait in it: nobody is known to lead, the take-over is not
// finished, or the disk is behind.
func (c *Controller) openInbox(l quorum.Leadership) chan *call {
	if c.reign != nil {
		if c.reign.full() || c.behind() {
			return nil
		}
		return c.inbox
	}
	if l.Leading || l.Leader == kafka.NoNode {
		return nil
	}
	return c.inbox
}

// take makes a round of what is in the inbox, or turns it away.
func (c *Controller) take(first *call) {
	calls := []*call{first}
drain:
	for len(calls) < roundEventsMax {
		select {
		case next := <-c.inbox:
			calls = append(calls, next)
		default:
			break drain
		}
	}
	if c.reign == nil {
		for _, one := range calls {
			one.answer <- answer{err: ErrNotController}
		}
		return
	}
	c.round(calls)
}

// expiry is the purge of what the trash has kept long enough, or nothing while the wall clock is not to be trusted: a step forward must
// not end a recovery window (I9).
func (c *Controller) expiry() []*call {
	_, step, sane := c.watch.Now()
	if c.stepped != !sane {
		c.stepped = !sane
		if sane {
			c.log.Info("the trash is purged again: the wall clock is back")
		} else {
			c.log.Error("nothing is purged from the trash: the wall clock has stepped", "step", step.String())
		}
	}
	if !sane {
		return nil
	}
	return []*call{c.own(metadata.ExpireTrash{})}
}

// own is an event of the controller itself; nobody waits for its answer.
func (c *Controller) own(ev metadata.Event) *call {
	return &call{ctx: context.Background(), event: ev, answer: make(chan answer, 1)}
}
