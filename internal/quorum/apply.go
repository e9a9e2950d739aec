package quorum

import (
	"context"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// snapshotting is when the next snapshot is due.
type snapshotting struct {
	every int
	// entries and bytes were applied since the last snapshot was begun.
	entries, bytes int
	// quiet counts the ticks since the last applied entry.
	quiet int
	// term is that of the last applied entry.
	term uint64
	// writing says that a snapshot is on its way to the disk, installing that raft has taken another node's, which is.
	writing, installing bool
}

// apply makes committed entries into Images and publishes the last one.
func (l *loop) apply(ctx context.Context, entries []*raftpb.Entry) error {
	for _, e := range entries {
		var err error
		if e.GetType() == raftpb.EntryNormal {
			err = l.applyRecords(e.GetIndex(), e.GetData())
		} else {
			err = l.applyChange(ctx, e)
		}
		if err != nil {
			return fmt.Errorf("%w: entry %d of term %d: %w", ErrApply, e.GetIndex(), e.GetTerm(), err)
		}
		l.term = e.GetTerm()
		l.entries++
		l.bytes += len(e.GetData())
	}
	l.publishImage()
	l.log.forget(l.image.Version())
	l.quiet = 0
	if l.entries >= l.every || l.bytes >= snapshotBytes {
		l.beginSnapshot()
	}
	return nil
}

// publishImage publishes what is applied, to this node and to those that fetch from it.
func (l *loop) publishImage() {
	l.q.isMember.Store(l.member())
	l.q.position.Store(&position{index: l.image.Version(), term: l.term})
	l.q.image.store(l.image)
}

// beginSnapshot has a snapshot written, unless one is on its way.
func (l *loop) beginSnapshot() {
	if l.writing || l.installing {
		return
	}
	l.writing = true
	l.entries, l.bytes = 0, 0
	l.disk.in.push(job{snapshot: l.takeSnapshot()})
}

// tickQuiet is called each tick. A quiet moment after new entries gets one snapshot.
func (l *loop) tickQuiet() {
	if l.quiet = min(l.quiet+1, quietTicks); l.quiet == quietTicks && l.entries > 0 {
		l.beginSnapshot()
	}
}

func (l *loop) applyRecords(index uint64, data []byte) error {
	image, err := applyEntry(l.image, index, data)
	if err != nil {
		return err
	}
	l.image = image
	return nil
}

// applyChange applies a membership change: the records in its context (the new table of voters), then raft's configuration.
// It returns when a snapshot with both is durable. Otherwise, after a crash, raft would start with the old configuration
// although messages under the new one had gone out, and two majorities without a common voter could decide.
func (l *loop) applyChange(ctx context.Context, e *raftpb.Entry) error {
	change, err := decodeChange(e)
	if err != nil {
		return err
	}
	if err := l.applyRecords(e.GetIndex(), change.GetContext()); err != nil {
		return err
	}
	was := l.member()
	l.conf = l.node.ApplyConfChange(change)
	l.retires = l.retires && !l.member() || was && !l.member()
	if err := checkVoters(l.conf, l.image.Voters()); err != nil {
		return err
	}
	l.term = e.GetTerm()
	snap := l.takeSnapshot()
	if err := l.disk.wait(ctx, job{snapshot: snap}); err != nil {
		return err
	}
	l.snapshotDone(snapshotDone{id: snap.snapshotID, conf: snap.Conf, durable: true})
	l.entries, l.bytes = 0, 0
	l.publishLeadership(nil) // a member knows its leader from raft, an observer by hearsay
	return nil
}

func decodeChange(e *raftpb.Entry) (*raftpb.ConfChangeV2, error) {
	if e.GetType() == raftpb.EntryConfChange {
		var v1 raftpb.ConfChange
		err := proto.Unmarshal(e.GetData(), &v1)
		return v1.AsV2(), err
	}
	var v2 raftpb.ConfChangeV2
	err := proto.Unmarshal(e.GetData(), &v2)
	return &v2, err
}

func (l *loop) takeSnapshot() *snapshot {
	return &snapshot{snapshotID: snapshotID{Index: l.image.Version(), Term: l.term}, Conf: l.conf, Image: l.image}
}

// snapshotDone lets raft's log begin behind a snapshot that is durable. One that found no room on the disk is tried again
// after as many entries more, or at the next quiet moment.
func (l *loop) snapshotDone(done snapshotDone) {
	l.writing = false
	if done.durable && l.log.snapshot.compare(done.id) < 0 {
		l.log.snapshot, l.log.conf = done.id, done.conf
		l.q.newest.Store(&done.id)
	}
}

// lastSnapshot leaves a snapshot of everything applied: the next start replays nothing, and damage to the log while the node
// is down costs nothing. Both goroutines have ended.
func (l *loop) lastSnapshot() error {
	for _, done := range l.disk.out.take() {
		if done.err != nil {
			return done.err
		}
	}
	if kept := l.disk.snapshots.kept; len(kept) > 0 && kept[len(kept)-1].Index >= l.image.Version() {
		return nil
	}
	return l.disk.writeSnapshot(context.Background(), job{snapshot: l.takeSnapshot()})
}
