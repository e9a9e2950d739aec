package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/peer"
)

// LinkConfig is what a Link needs.
type LinkConfig struct {
	// Node is this node.
	Node   kafka.NodeID
	Quorum Quorum
	// Controller decides while this node leads the quorum.
	Controller *Controller
	// Peers are the other nodes; nil: there are none.
	Peers *peer.Peers
	Log   *slog.Logger

	// Registration describes this process. It is called for each registration: with replicas found damaged since the last one, Damaged names them.
	Registration func() (metadata.RegisterBroker, error)
	// Unfit says why this process is not to be registered now, or nil; it is asked again. nil: it always may.
	Unfit func() error
	// Registered takes the answer of the controller, which is OK: from here on the process is the broker of that epoch. It returns when this
	// node's view includes version, so that the broker can be unfenced. An error lets the registration begin anew.
	Registered func(ctx context.Context, r metadata.Registered, version uint64) error
	// Ends tells what the replicas of this node hold of the named partitions; nil: it holds none.
	Ends func([]kafka.TopicPartition) []metadata.PartitionEnds
	// Dev elects what has the most, as RecoverPartitions, once all that were last known to be in sync are back: under `dev` nobody is there to ask.
	Dev bool
}

// Link is a node's side of the control plane: it finds the active controller, wherever that is, registers this process, keeps its session, and
// has events decided.
type Link struct {
	cfg LinkConfig
	// again wakes the registration: the session is lost.
	again chan struct{}

	mu      sync.Mutex // a leaf
	hint    kafka.NodeID
	next    int // of the voters, when nobody is known to be active
	session session
	waits   string
	leaving bool // whoever fences this broker now does what it asked for
	// answered is when the active controller last answered a heartbeat; begun stands in for it before it has.
	answered, begun time.Time
}

// NewLink returns a link that waits for Run. It registers a handler with the Peers, so it comes before Peers.Serve.
func NewLink(c LinkConfig) *Link {
	if c.Ends == nil {
		c.Ends = func([]kafka.TopicPartition) []metadata.PartitionEnds { return nil }
	}
	if c.Unfit == nil {
		c.Unfit = func() error { return nil }
	}
	l := &Link{cfg: c, again: make(chan struct{}, 1), hint: kafka.NoNode, begun: time.Now()}
	if c.Peers != nil {
		l.serveEnds(c.Peers)
	}
	return l
}

// Submit has an event decided by the active controller and returns its reply when everything the reply tells of is committed; a view at version
// shows it. What was not decided is sent again as long as ctx allows; what may have been decided only if deciding it twice does no harm. Errors:
// ErrNotController (no active controller was reached before ctx ended) and ErrBusy: nothing was decided; ErrUnknownOutcome; ErrRefused.
func (l *Link) Submit(ctx context.Context, ev metadata.Event) (reply any, version uint64, err error) {
	if ev, err = minted(ev); err != nil {
		return nil, 0, err
	}
	repeatable, unsureBefore := mayRepeat(ev), error(nil)
	pause := retryMin
	for {
		// The channel comes before the look at who leads.
		changed := l.cfg.Quorum.LeadershipChanged()
		reply, version, err = l.attempt(ctx, ev, repeatable)
		switch {
		case err == nil, errors.Is(err, ErrRefused), errors.Is(err, ErrBusy):
			return reply, version, err
		case errors.Is(err, ErrUnknownOutcome):
			if unsureBefore = err; !repeatable {
				return nil, 0, err
			}
		}
		select {
		case <-ctx.Done():
			if unsureBefore != nil {
				return nil, 0, unsureBefore
			}
			return nil, 0, fmt.Errorf("%w: nothing was decided, it may be tried again: no active controller has answered this node for %v (%w; %v)",
				ErrNotController, l.Unanswered().Round(100*time.Millisecond), ctx.Err(), err)
		case <-changed:
		case <-time.After(pause):
		}
		pause = min(2*pause, retryMax)
	}
}

// attempt has an event decided by the node that is believed to be the active controller.
func (l *Link) attempt(ctx context.Context, ev metadata.Event, repeatable bool) (any, uint64, error) {
	if repeatable {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, attemptMax)
		defer cancel()
	}
	to := l.target()
	switch {
	case to == l.cfg.Node || l.cfg.Peers == nil:
		return l.cfg.Controller.Submit(ctx, ev)
	case to == kafka.NoNode:
		return nil, 0, fmt.Errorf("%w: nobody is known to be", ErrNotController)
	}
	m := &submission{Event: ev}
	if end, ok := ctx.Deadline(); ok {
		m.Wait = max(time.Until(end), time.Millisecond)
	}
	var a submissionAnswer
	grace := answerGrace
	if repeatable {
		grace = 0
	}
	if err := l.call(ctx, to, grace, m, &a); err != nil {
		return nil, 0, err
	}
	switch a.Fate {
	case decided:
		return a.Reply, a.Version, nil
	case busy:
		return nil, 0, fmt.Errorf("%w: node %v", ErrBusy, to)
	case unsure:
		return nil, 0, fmt.Errorf("%w: node %v: %s", ErrUnknownOutcome, to, a.Text)
	case refused:
		return nil, 0, fmt.Errorf("%w: node %v: %s", ErrRefused, to, a.Text)
	}
	l.moved(to, a.Active)
	return nil, 0, fmt.Errorf("%w: node %v is not", ErrNotController, to)
}

// call sends a request to the node that is believed to be active, and gives up when another one has become so for as long as grace: the old one may
// hang, and what it has decided it could not commit any more. Errors are ErrNotController (nothing was decided) and ErrUnknownOutcome.
func (l *Link) call(ctx context.Context, to kafka.NodeID, grace time.Duration, m, answer peer.Message) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			changed := l.cfg.Quorum.LeadershipChanged()
			if leader := l.cfg.Quorum.Leadership().Leader; leader != kafka.NoNode && leader != to {
				select {
				case <-time.After(grace):
					cancel()
				case <-done:
				}
				return
			}
			select {
			case <-changed:
			case <-done:
				return
			}
		}
	}()
	err := l.cfg.Peers.Call(ctx, to, m, answer)
	var remote *peer.RemoteError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, peer.ErrUnreachable), errors.As(err, &remote) && remote.NotRun():
		l.moved(to, kafka.NoNode)
		return fmt.Errorf("%w: %w", ErrNotController, err)
	}
	l.moved(to, kafka.NoNode)
	return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
}

// target is the node that is believed to be the active controller, or NoNode. This node's own quorum knows best; a node that only follows it goes
// by what it was told last, and else asks one voter after the other.
func (l *Link) target() kafka.NodeID {
	if leader := l.cfg.Quorum.Leadership().Leader; leader != kafka.NoNode {
		return leader
	}
	voters := l.cfg.Quorum.Image().Voters()
	if slices.ContainsFunc(voters, func(v metadata.Voter) bool { return v.Node == l.cfg.Node }) || len(voters) == 0 {
		return kafka.NoNode // an election is on, or there is no cluster yet: this node will know
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hint != kafka.NoNode {
		return l.hint
	}
	return voters[l.next%len(voters)].Node
}

// moved takes note that a node is not the active controller, and which one may be.
func (l *Link) moved(from, to kafka.NodeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if to == kafka.NoNode || to == from {
		l.next++
		to = kafka.NoNode
	}
	l.hint = to
}

// Unanswered is for how long no active controller has answered this node.
func (l *Link) Unanswered() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answered.IsZero() {
		return time.Since(l.begun)
	}
	return time.Since(l.answered)
}

// Active is the active controller as far as this node knows, or NoNode (I13).
func (l *Link) Active() kafka.NodeID {
	if leader := l.cfg.Quorum.Leadership().Leader; leader != kafka.NoNode {
		return leader
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hint
}

// minted gives topics that are to be created their ids here, so that a repeated creation is the same one.
func minted(ev metadata.Event) (metadata.Event, error) {
	e, ok := ev.(metadata.CreateTopics)
	if !ok {
		return ev, nil
	}
	return mintTopics(e)
}

// mayRepeat says that deciding an event a second time leads to what the first time did, or to something that is as good. Others are answered
// ErrUnknownOutcome when the outcome is unknown: a second deletion could hit a topic that was created in between.
func mayRepeat(ev metadata.Event) bool {
	switch ev.(type) {
	case metadata.RegisterBroker, // the same incarnation: a newer broker epoch
		metadata.BrokerReady, metadata.FenceBroker, metadata.ReplicasPurged, metadata.ReportDamage, metadata.DrainBroker,
		metadata.AlterISR,            // compare and set; the answer to the second has the state that the first made
		metadata.AllocateProducerIDs, // a block is left out
		metadata.CreateTopics,        // by id
		metadata.AlterAssignments, metadata.ElectLeaders, metadata.CreateACLs:
		return true
	}
	return false
}
