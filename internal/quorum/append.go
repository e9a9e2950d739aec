package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
)

// appender is the append goroutine: it makes durable what raft wants durable, in the order raft wants it, and only then
// gives back the answers that depend on it.
type appender struct {
	machine   sys.Machine
	store     *storage.Dir
	dir       string
	log       *storage.Log
	copy      *logCopy
	copyKeep  int64
	lines     *slog.Logger
	snapshots *snapshots
	// vote is what the vote file holds.
	vote vote
	buf  []byte

	in  *mailbox[job]
	out *mailbox[outcome]
}

// job is one of: a MsgStorageAppend of raft, with the snapshot to install before its entries, if any; a snapshot to install; a snapshot
// to write; an index from which on the log is cut.
type job struct {
	message  *raftpb.Message
	install  *snapshot
	snapshot *snapshot
	cut      uint64
	// written, when set, is told when the job is durable, instead of the loop's mailbox.
	written chan<- error
}

// outcome is what a job led to. After one with err nothing more comes.
type outcome struct {
	responses []*raftpb.Message
	snapshot  *snapshotDone
	installed *snapshot
	err       error
}

type snapshotDone struct {
	id      snapshotID
	conf    *raftpb.ConfState
	durable bool
}

func newAppender(start *recovered) *appender {
	return &appender{
		machine:   start.machine,
		store:     start.store,
		dir:       start.dir,
		log:       start.log,
		copy:      start.copy,
		copyKeep:  start.copyKeep,
		lines:     start.lines,
		snapshots: start.snapshots,
		vote:      start.vote,
		in:        newMailbox[job](),
		out:       newMailbox[outcome](),
	}
}

// run works until ctx ends or something fails. A failure is final: after a failed sync nobody knows what the disk holds, and
// a later success would prove nothing (I11).
func (a *appender) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.in.ready:
		}
		if err := a.process(ctx, a.in.take()); err != nil {
			a.out.push(outcome{err: err})
			return
		}
	}
}

// process takes everything that came in while the disk was busy: neighbouring appends share one sync.
func (a *appender) process(ctx context.Context, jobs []job) error {
	for len(jobs) > 0 {
		n := 0
		for n < len(jobs) && jobs[n].message != nil && (n == 0 || jobs[n].install == nil) {
			n++
		}
		var err error
		if n > 0 {
			err = a.persist(ctx, jobs[:n])
		} else {
			n, err = 1, a.single(ctx, jobs[0])
		}
		if err != nil {
			return err
		}
		jobs = jobs[n:]
	}
	return nil
}

// single does a job that is no append.
func (a *appender) single(ctx context.Context, j job) error {
	if j.snapshot != nil {
		return a.writeSnapshot(ctx, j)
	}
	var err error
	if j.install != nil {
		err = a.install(ctx, j.install)
	} else if err = a.cut(j.cut); err == nil {
		err = a.sync(ctx)
	}
	j.written <- err
	return err
}

// wait has a job done and waits for it.
func (a *appender) wait(ctx context.Context, j job) error {
	written := make(chan error, 1)
	j.written = written
	a.in.push(j)
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// persist makes the vote and the entries of some jobs durable, then releases their answers. The vote comes first: a log
// must not hold a term that the vote file does not know.
func (a *appender) persist(ctx context.Context, jobs []job) error {
	v := a.vote
	for _, j := range jobs {
		// Term, vote and commit are all set or none. The commit index is not kept: it is found again.
		if m := j.message; m.GetTerm() != 0 {
			v = vote{Term: m.GetTerm(), For: m.GetVote()}
		}
	}
	if v != a.vote {
		if err := a.persistVote(ctx, v); err != nil {
			return err
		}
	}
	if snap := jobs[0].install; snap != nil {
		if err := a.install(ctx, snap); err != nil {
			return err
		}
		a.out.push(outcome{installed: snap})
	}
	if err := a.appendAll(ctx, jobs); err != nil {
		return err
	}
	for _, j := range jobs {
		if r := j.message.GetResponses(); len(r) > 0 {
			a.out.push(outcome{responses: r})
		}
	}
	return nil
}

func (a *appender) persistVote(ctx context.Context, v vote) error {
	write := func() error { return writeVote(a.machine.FS, a.dir, v) }
	if err := a.untilSpace(ctx, "vote", write); err != nil {
		return fmt.Errorf("the vote of term %d: %w", v.Term, err)
	}
	a.vote = v
	return nil
}

func (a *appender) appendAll(ctx context.Context, jobs []job) error {
	var entries []*raftpb.Entry
	dirty := false
	for _, j := range jobs {
		more := j.message.GetEntries()
		if len(more) == 0 {
			continue
		}
		if len(entries) > 0 && more[0].GetIndex() != entries[len(entries)-1].GetIndex()+1 {
			if err := a.append(ctx, entries); err != nil {
				return err
			}
			entries = nil
		}
		entries = append(entries, more...)
		dirty = true
	}
	if !dirty {
		return nil
	}
	if err := a.append(ctx, entries); err != nil {
		return err
	}
	return a.sync(ctx)
}

// sync makes log and copy durable, both at once: an answer waits for the slower of the two, which costs a third more than one sync, not twice.
func (a *appender) sync(ctx context.Context) error {
	copied := make(chan error, 1)
	go func() { copied <- a.copy.sync() }()
	err := a.untilSpace(ctx, "sync", a.log.Sync) // a full disk can keep a segment from being sealed; nothing failed then
	if err := errors.Join(err, <-copied); err != nil {
		return fmt.Errorf("sync the metadata log: %w", err)
	}
	return nil
}

// append writes entries that follow each other to copy and log. Those that start below the end of the log replace its tail in
// both: another leader has decided otherwise.
func (a *appender) append(ctx context.Context, entries []*raftpb.Entry) error {
	if err := a.cut(entries[0].GetIndex()); err != nil {
		return err
	}
	for len(entries) > 0 {
		var n int
		var err error
		if a.buf, n, err = encodeChunk(a.buf[:0], entries); err != nil {
			return err
		}
		write := func() error {
			keep, err := a.copy.stage(a.buf)
			if err == nil {
				_, err = a.log.AppendReplicated(a.buf, a.machine.Wall.Now())
			}
			if err == nil {
				keep()
			}
			return err
		}
		if err := a.untilSpace(ctx, "entries", write); err != nil {
			return fmt.Errorf("append to the metadata log at %d: %w", entries[0].GetIndex(), err)
		}
		entries = entries[n:]
	}
	if cap(a.buf) > appendChunk {
		a.buf = nil
	}
	return nil
}

// cut drops the entries from first on, in both.
func (a *appender) cut(first uint64) error {
	if first >= uint64(a.log.End()) {
		return nil
	}
	if err := a.copy.truncateTo(first); err != nil {
		return fmt.Errorf("cut the copy of the metadata log at %d: %w", first, err)
	}
	if err := a.log.TruncateTo(kafka.Offset(first)); err != nil {
		return fmt.Errorf("cut the metadata log at %d: %w", first, err)
	}
	return nil
}

// untilSpace does a write, with the reserve of the data directory if there is no other room, and repeats it while the disk is full even
// so. Raft cannot take an entry back, and a full disk heals; meanwhile nothing is answered, and proposals end as ErrBusy.
func (a *appender) untilSpace(ctx context.Context, what string, write func() error) error {
	for said := false; ; said = true {
		err := a.store.WithReserve(write)
		if err == nil || !noSpace(err) {
			return err
		}
		if !said {
			a.lines.Error("the disk is full: metadata waits for space", "dir", a.store.Path(), "what", what, "err", err)
		}
		pause := time.NewTimer(noSpaceRetry)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
}

// noSpace says that repeating helps once there is room. A sync that failed is final, whatever it failed with (I11).
func noSpace(err error) bool {
	return (errors.Is(err, storage.ErrNoSpace) || sys.IsNoSpace(err)) && !errors.Is(err, storage.ErrSyncFailed)
}

// writeSnapshot makes a snapshot durable and drops what it makes superfluous. Without space a snapshot that was due by
// count is left out: the log holds everything. Not so when the copy of the log waits for a snapshot to become smaller (I14).
func (a *appender) writeSnapshot(ctx context.Context, j job) error {
	write := func() error { return a.snapshots.write(*j.snapshot) }
	var err error
	if j.written != nil || a.copy.size > copyWaitBytes {
		err = a.untilSpace(ctx, "snapshot", write)
	} else {
		err = a.store.WithReserve(write)
	}
	full := err != nil && noSpace(err)
	if err != nil && (!full || j.written != nil) {
		err = fmt.Errorf("metadata snapshot at %d: %w", j.snapshot.Index, err)
		if j.written != nil {
			j.written <- err
		}
		return err
	}
	if full {
		a.lines.Warn("no metadata snapshot: the disk is full", "index", j.snapshot.Index, "err", err)
	} else if err := errors.Join(a.trim(), a.shorten(ctx, j.snapshot.Index+1)); err != nil {
		return err
	}
	if j.written != nil {
		j.written <- nil
		return nil
	}
	a.out.push(outcome{snapshot: &snapshotDone{id: j.snapshot.snapshotID, conf: j.snapshot.Conf, durable: !full}})
	return nil
}

// trim drops the prefix of the log that two durable snapshots hold, then older snapshots. Raft's first index is behind the
// older of the two, so raft never asks for what is dropped here.
func (a *appender) trim() error {
	start := kafka.Offset(a.snapshots.covered() + 1)
	if start > a.log.Start() {
		if err := a.log.AdvanceStart(start); err != nil {
			if noSpace(err) {
				a.lines.Warn("the metadata log keeps its old entries: the disk is full", "err", err)
				return nil
			}
			return fmt.Errorf("drop the metadata log below %d: %w", start, err)
		}
	}
	a.snapshots.prune()
	return nil
}

// shorten lets the copy of the log begin behind a snapshot that is durable, once it has grown: entries that a snapshot holds do no harm
// in it.
func (a *appender) shorten(ctx context.Context, first uint64) error {
	if a.copy.size < a.copyKeep || first <= a.copy.first {
		return nil
	}
	write := func() error { return a.copy.restart(a.log, first) }
	var err error
	if a.copy.size > copyWaitBytes {
		err = a.untilSpace(ctx, "copy", write)
	} else {
		err = a.store.WithReserve(write)
	}
	if err != nil && noSpace(err) {
		a.lines.Warn("the copy of the metadata log keeps its old entries: the disk is full", "err", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("begin the copy of the metadata log at %d: %w", first, err)
	}
	return nil
}
