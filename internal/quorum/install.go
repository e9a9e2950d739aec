package quorum

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

// Installing another node's snapshot: it is written and synced under a name of its own, the log begins anew behind it, then it gets the
// name of a snapshot. Before the first step is durable nothing has changed; after it every start finishes the rest, so that a log which ends before
// its snapshot always means a lost tail.

// stagedSuffix marks a snapshot that is being installed.
const stagedSuffix = snapshotSuffix + ".incoming"

func stagedName(id snapshotID) string {
	return strings.TrimSuffix(id.file(), snapshotSuffix) + stagedSuffix
}

// stage makes a snapshot durable that is to be installed.
func (s *snapshots) stage(snap snapshot) error {
	b, err := encodeSnapshot(snap)
	if err != nil {
		return err
	}
	return sys.WriteFileAtomic(s.fs, filepath.Join(s.dir, stagedName(snap.snapshotID)), b)
}

// adopt gives the staged snapshot its name, durably. Those before it have no log behind them any more and go.
func (s *snapshots) adopt(id snapshotID) error {
	if err := s.fs.Rename(filepath.Join(s.dir, stagedName(id)), filepath.Join(s.dir, id.file())); err != nil {
		return err
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		return err
	}
	s.damaged = append(s.damaged, s.kept...)
	s.kept = []snapshotID{id}
	s.prune()
	return nil
}

// readStaged returns the snapshot whose installation was interrupted, if there is one. What is not whole was never decided on.
func (s *snapshots) readStaged(files []sys.FileInfo) (*snapshot, error) {
	for _, f := range files {
		stem, found := strings.CutSuffix(f.Name, stagedSuffix)
		if !found || f.IsDir {
			continue
		}
		name := filepath.Join(s.dir, f.Name)
		b, err := sys.ReadFile(s.fs, name, snapshotFileMax)
		if err != nil && !errors.Is(err, sys.ErrTooLarge) {
			return nil, err
		}
		if err == nil {
			var snap snapshot
			if snap, err = decodeSnapshot(b); err == nil && snap.file() == stem+snapshotSuffix {
				return &snap, nil
			}
		}
		s.log.Warn("a metadata snapshot that was to be installed is damaged and is dropped", "file", name, "err", err)
		if err := s.fs.Remove(name); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// install puts a snapshot in the place of everything that the directory holds. The vote comes first, as before entries: an observer may not have
// heard of the snapshot's term.
func (a *appender) install(ctx context.Context, snap *snapshot) error {
	if snap.Term > a.vote.Term {
		if err := a.persistVote(ctx, vote{Term: snap.Term}); err != nil {
			return err
		}
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"snapshot", func() error { return a.snapshots.stage(*snap) }},
		{"log", func() error { return a.log.Reset(kafka.Offset(snap.Index + 1)) }},
		// Before the snapshot has its name: a start that finds it staged asks neither the old log nor the old copy.
		{"copy", func() error { return a.copy.restart(a.log, snap.Index+1) }},
		{"snapshot", func() error { return a.snapshots.adopt(snap.snapshotID) }},
	} {
		if err := a.untilSpace(ctx, step.what, step.do); err != nil {
			return fmt.Errorf("install the metadata snapshot at %d: %w", snap.Index, err)
		}
	}
	return nil
}

// installed makes the loop go on from a snapshot that raft has asked for and the disk has.
func (l *loop) installed(snap *snapshot) {
	l.installing = false
	l.follow(snap)
	l.q.log.Info("installed a metadata snapshot of the leader", "index", snap.Index, "term", snap.Term)
}

// follow makes an installed snapshot the state of the loop.
func (l *loop) follow(snap *snapshot) {
	l.image, l.conf, l.term = snap.Image, snap.Conf, snap.Term
	l.entries, l.bytes, l.quiet = 0, 0, 0
	l.log.begin(snap)
	l.last = max(l.last, snap.Index)
	l.q.newest.Store(&snap.snapshotID)
	l.publishImage()
}

// begin lets raft's view of the log begin behind an installed snapshot. The cache may hold entries from there on already: raft went on
// when it had the snapshot in memory.
func (r *raftLog) begin(snap *snapshot) {
	r.snapshot, r.conf = snap.snapshotID, snap.Conf
	if len(r.cache) > 0 && r.cacheFirst() <= snap.Index {
		r.cache, r.cacheBytes = nil, 0
	}
}

// reinstall puts a fetched snapshot in the place of everything this observer has. Raft itself installs only what names it as a member, so
// the core is made anew. Nothing else is on its way meanwhile.
func (l *loop) reinstall(ctx context.Context, snap *snapshot) error {
	if err := l.disk.wait(ctx, job{install: snap}); err != nil {
		return err
	}
	l.last = snap.Index
	l.follow(snap)
	l.q.end.Store(l.last + 1)
	l.q.log.Info("installed a metadata snapshot", "index", snap.Index, "term", snap.Term)
	return l.renew()
}

// retire makes this directory an observer when a change has taken it out of the configuration. Its log then holds only what is committed, which
// is what every later start relies on: the tail that may not be is cut.
func (l *loop) retire(ctx context.Context) error {
	if err := l.disk.wait(ctx, job{cut: l.image.Version() + 1}); err != nil {
		return err
	}
	l.last = l.image.Version()
	l.q.end.Store(l.last + 1)
	l.log.cache, l.log.cacheBytes = nil, 0
	l.q.log.Info("this directory is no member of the metadata quorum any more; it follows as an observer", "index", l.last)
	return l.renew()
}

// renew makes the raft core anew from what the loop and the disk hold. Answers that were on their way to the old one are dropped: they are
// about entries that the new one takes for durable.
func (l *loop) renew() error {
	for _, done := range l.disk.out.take() {
		if done.err != nil {
			return done.err
		}
		if done.snapshot != nil {
			l.snapshotDone(*done.snapshot)
		}
	}
	old := l.node.BasicStatus()
	v := vote{Term: old.GetTerm(), For: old.GetVote()}
	if l.term > v.Term {
		v = vote{Term: l.term} // install has made it durable
	}
	l.log.hard = &raftpb.HardState{Term: proto.Uint64(v.Term), Vote: proto.Uint64(v.For), Commit: proto.Uint64(l.image.Version())}
	l.proposed = 0
	l.diskWatch = diskWatch{}
	node, err := newCore(l.q, l.self, l.log, l.image.Version())
	if err != nil {
		return err
	}
	l.node = node
	l.publishLeadership(nil)
	return nil
}

// newCore makes a raft core over a log of which everything up to applied has been applied.
func newCore(q *Quorum, self uint64, log *raftLog, applied uint64) (*raft.RawNode, error) {
	return raft.NewRawNode(&raft.Config{
		ID:                        self,
		ElectionTick:              electionTicks,
		HeartbeatTick:             heartbeatTicks,
		Storage:                   log,
		Applied:                   applied,
		AsyncStorageWrites:        true,
		MaxSizePerMsg:             messageBytesMax,
		MaxCommittedSizePerReady:  applyBytesMax,
		MaxUncommittedEntriesSize: uncommittedBytesMax,
		MaxInflightMsgs:           inflightMessagesMax,
		MaxInflightBytes:          inflightBytesMax,
		CheckQuorum:               true,
		PreVote:                   true,
		DisableProposalForwarding: true,
		StepDownOnRemoval:         true,
		Logger:                    raftLogger{q.log},
	})
}

// readPiece reads what a piece may hold from a snapshot file.
func readPiece(fsys sys.FS, name string, offset int64) (b []byte, size int64, err error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if offset > info.Size {
		return nil, 0, errPiece
	}
	b = make([]byte, min(int64(pieceBytesMax), info.Size-offset))
	if _, err := f.ReadAt(b, offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	return b, info.Size, nil
}
