package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
)

// Config is what a Quorum needs. All fields but SnapshotEntries and Controllers are required.
type Config struct {
	Machine sys.Machine
	Dir     *storage.Dir
	Node    kafka.NodeID
	// Controllers are the configured controllers, "<node id>@host:port"; none means only this node.
	Controllers []string
	Log         *slog.Logger
	// SnapshotEntries is how many entries are applied between snapshots; 0 means the default.
	SnapshotEntries int
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
	log  *slog.Logger
	node kafka.NodeID
	// start is what Open found; Run takes it.
	start *recovered

	proposals  chan proposal
	image      *cell[*metadata.Image]
	leadership *cell[Leadership]
	end        atomic.Uint64
	running    atomic.Bool
	stopped    chan struct{}
	metalog    *storage.Log
	copy       *logCopy
}

// proposal is records on their way into the loop.
type proposal struct {
	term, index uint64
	data        []byte
	answer      chan error
}

// Open reads the metadata directory, and forms a cluster with this node as its only voter when there is none. Errors:
// ErrSeveralControllers, ErrNotAVoter, ErrIdentity, *CorruptError and *storage.CorruptError with the file's path.
func Open(c Config) (*Quorum, error) {
	start, err := recoverDirectory(c)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	q := &Quorum{
		log:        c.Log,
		node:       c.Node,
		start:      start,
		proposals:  make(chan proposal),
		image:      newCell(start.snapshot.Image),
		leadership: newCell(Leadership{Term: start.vote.Term, Leader: kafka.NoNode}),
		stopped:    make(chan struct{}),
		metalog:    start.log,
		copy:       start.copy,
	}
	q.end.Store(uint64(start.log.End()))
	return q, nil
}

// Run takes part in the consensus until ctx ends, which is no error, or until something fails for good: a sync (I11), a
// record that cannot be applied (ErrApply). It is called once.
func (q *Quorum) Run(ctx context.Context) error {
	if !q.running.CompareAndSwap(false, true) {
		return ErrStopped
	}
	defer close(q.stopped)
	l, err := newLoop(q, q.start)
	if err != nil {
		return err
	}
	diskContext, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.disk.run(diskContext)
	}()
	err = l.run(ctx)
	stop()
	<-done
	if err == nil {
		err = l.lastSnapshot()
	}
	q.leadership.store(Leadership{Term: q.Leadership().Term, Leader: kafka.NoNode})
	if err != nil {
		q.log.Error("the metadata quorum has stopped on this node", "err", err)
	}
	return err
}

// Close closes the metadata log and its copy. Run must have returned, or never been called.
func (q *Quorum) Close() error { return errors.Join(q.metalog.Close(), q.copy.close()) }

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
