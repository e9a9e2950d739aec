package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
)

// Config is what a Quorum needs. All fields but Controllers, Peers and SnapshotEntries are required.
type Config struct {
	Machine sys.Machine
	Dir     *storage.Dir
	Node    kafka.NodeID
	// Controllers are the configured controllers, 1, 3 or 5 times "<node id>@host:port"; none means only this node. A node that is
	// not listed is an observer. The list is for asking: who votes is in the table of voters.
	Controllers []string
	// Peers reach the other nodes; nil for a node that is alone. Open registers handlers with them, so it comes before Serve.
	Peers *peer.Peers
	Log   *slog.Logger
	// SnapshotEntries is how many entries are applied between snapshots; 0 means the default.
	SnapshotEntries int

	rescue bool // RecoverFromThisNode: other voters do not matter
}

// Leadership is who leads the metadata quorum, as far as this node knows.
type Leadership struct {
	// Term is the newest raft term this node has seen.
	Term uint64
	// Leader is the node that leads in Term, or NoNode when unknown (I13).
	Leader kafka.NodeID
	// Leading says that this node is the leader. It may act only when the Image has reached TermStart: then everything that
	// earlier terms committed is in it.
	Leading bool
	// TermStart is the index of this term's first entry; 0 unless Leading.
	TermStart uint64
}

// Quorum is this node's part in the metadata consensus.
type Quorum struct {
	log        *slog.Logger
	node       kafka.NodeID
	configured configured
	peers      *peer.Peers // nil: alone
	// start is what Open found; Run takes it. Before Raft runs, forming changes it.
	start *recovered

	proposals chan proposal
	arrivals  chan arrival
	tasks     chan func(*loop) error

	image      *cell[*metadata.Image]
	leadership *cell[Leadership]
	end        atomic.Uint64
	// position is how far image reaches, newest the newest snapshot on disk, or nil; isMember says whether this directory takes part in Raft.
	position atomic.Pointer[position]
	newest   atomic.Pointer[snapshotID]
	isMember atomic.Bool
	// forced says that a table is in force here: Raft runs, or has run.
	forced atomic.Bool
	// waiting and placeless say what this node waits for.
	waiting, placeless atomic.Pointer[string]

	// gone holds a leader whose connection has ended.
	gone chan kafka.NodeID

	running    atomic.Bool
	stopped    chan struct{}
	lifetime   context.Context // of Run
	background sync.WaitGroup  // what Run started beside the loop
	metalog    *storage.Log
}

// proposal is records on their way into the loop.
type proposal struct {
	term, index uint64
	data        []byte
	answer      chan error
}

// Open reads the metadata directory, and forms a cluster with this node as its only voter when there is none and no other controller is
// configured. Where there are others, Run comes to a cluster; until then the Image is empty and has no cluster id. Errors: ErrControllers,
// ErrSeveralControllers, ErrNotAVoter, ErrIdentity, *CorruptError and *storage.CorruptError with the file's path.
func Open(c Config) (*Quorum, error) {
	list, err := parseControllers(c.Controllers)
	if err != nil {
		return nil, err
	}
	conf := configured{self: c.Node, list: list}
	if c.Peers == nil && !conf.alone() {
		return nil, fmt.Errorf("%w: cluster.controllers is %s, this is node %d", ErrSeveralControllers, strings.Join(c.Controllers, ","), c.Node)
	}
	start, err := recoverDirectory(c, conf)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	q := &Quorum{
		log:        c.Log,
		node:       c.Node,
		configured: conf,
		peers:      c.Peers,
		start:      start,
		proposals:  make(chan proposal),
		arrivals:   make(chan arrival, arrivalsMax),
		tasks:      make(chan func(*loop) error),
		gone:       make(chan kafka.NodeID, 1),
		image:      newCell(start.snapshot.Image),
		leadership: newCell(Leadership{Term: start.vote.Term, Leader: kafka.NoNode}),
		stopped:    make(chan struct{}),
		metalog:    start.log,
	}
	q.end.Store(uint64(start.log.End()))
	q.position.Store(&position{index: start.snapshot.Index, term: start.snapshot.Term})
	if start.formed() {
		q.newest.Store(&start.snapshot.snapshotID)
		q.forced.Store(start.ran())
	}
	if q.peers != nil {
		q.handle()
	}
	return q, nil
}

// Run takes part in the consensus until ctx ends, which is no error, or until something fails for good: a sync (I11), a
// record that cannot be applied (ErrApply), a disk that was put back (ErrRestored). It is called once.
func (q *Quorum) Run(ctx context.Context) error {
	if !q.running.CompareAndSwap(false, true) {
		return ErrStopped
	}
	defer close(q.stopped)
	err := q.run(ctx)
	q.leadership.store(Leadership{Term: q.Leadership().Term, Leader: kafka.NoNode})
	if err != nil {
		q.log.Error("the metadata quorum has stopped on this node", "err", err)
	}
	return err
}

func (q *Quorum) run(ctx context.Context) error {
	if !q.start.formed() || !q.start.ran() {
		if err := q.form(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	l, err := newLoop(q, q.start)
	if err != nil {
		return err
	}
	var end context.CancelFunc
	q.lifetime, end = context.WithCancel(ctx)
	q.forced.Store(true)
	var disk sync.WaitGroup
	disk.Go(func() { l.disk.run(q.lifetime) })
	if q.peers != nil {
		q.background.Go(func() { q.observe(q.lifetime) })
		q.background.Go(func() { q.seekPlace(q.lifetime) })
		q.background.Go(func() { q.inherit(q.lifetime) })
	}
	err = l.run(ctx)
	end()
	disk.Wait()
	q.background.Wait()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // the end came while the loop waited for the disk
	}
	if err == nil {
		err = l.lastSnapshot()
	}
	return err
}

// inForce says that a table of voters is in force here.
func (q *Quorum) inForce() bool { return q.forced.Load() }

// waitFor notes what this node waits for, "" for nothing.
func (q *Quorum) waitFor(why string) {
	if why == "" {
		q.waiting.Store(nil)
		return
	}
	q.waiting.Store(&why)
}

// Waiting says for whom or what this node's metadata waits: other controllers, to form a cluster or to become one of them, or a leader. It
// is "" when nothing is waited for.
func (q *Quorum) Waiting() string {
	for _, why := range []*string{q.waiting.Load(), q.placeless.Load()} {
		if why != nil {
			return *why
		}
	}
	return ""
}

// Close closes the metadata log and its copy. Run must have returned, or never been called.
func (q *Quorum) Close() error {
	err := q.metalog.Close()
	if c := q.start.copy; c != nil {
		err = errors.Join(err, c.close())
	}
	return err
}

// Image returns the newest committed metadata. Its version is the index of the last applied entry, with or without records.
func (q *Quorum) Image() *metadata.Image { return q.image.load() }

// Changed returns a channel that is closed when the next Image is published. Take it before Image.
func (q *Quorum) Changed() <-chan struct{} { return q.image.changed() }

// Leadership returns who leads.
func (q *Quorum) Leadership() Leadership { return q.leadership.load() }

// LeadershipChanged returns a channel that is closed at the next change. Take it before Leadership.
func (q *Quorum) LeadershipChanged() <-chan struct{} { return q.leadership.changed() }

// LogEnd returns the index that the next entry will get.
func (q *Quorum) LogEnd() uint64 { return q.end.Load() }

// Stopped returns a channel that is closed when Run has returned.
func (q *Quorum) Stopped() <-chan struct{} { return q.stopped }

// Propose appends records as the entry at index, decided as the leader of term, and returns before they are committed: they
// are when Image has reached index while this node still leads in term. Errors: ErrNotLeader, ErrMoved, ErrBusy, ErrTooLarge,
// ErrStopped; each means that nothing was appended.
func (q *Quorum) Propose(term, index uint64, rs []metadata.Record) error {
	if l := q.Leadership(); !l.Leading || l.Term != term {
		return ErrNotLeader
	}
	data := metadata.EncodeRecords(nil, rs)
	if len(data) > EntryBytesMax {
		return fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, len(data), EntryBytesMax)
	}
	p := proposal{term: term, index: index, data: data, answer: make(chan error, 1)}
	select {
	case q.proposals <- p:
	case <-q.stopped:
		return ErrStopped
	}
	// The loop answers what it has taken before it does anything else, so there is always an answer, and it is the truth.
	return <-p.answer
}
