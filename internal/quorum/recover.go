package quorum

import (
	"fmt"
	"log/slog"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/record"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
)

// recovered is what a metadata directory holds, verified.
type recovered struct {
	machine sys.Machine
	store   *storage.Dir
	dir     string
	lines   *slog.Logger

	self uint64 // raft id
	// minted says that this process has formed the cluster.
	minted bool
	vote   vote
	// voted says that there is a vote file, readable or not; voteDamage, that it is not what was written.
	voted           bool
	voteDamage      *CorruptError
	snapshots       *snapshots
	snapshot        snapshot
	log             *storage.Log
	snapshotEntries int
	last            lastRun
	tail            tail
	found           foundCopy
	copy            *logCopy // as it is from now on
	// copyKeep is copyKeepBytes, or less in tests.
	copyKeep int64
}

// lastRun is what storage knows about how the last run left the log, whatever its files hold now.
type lastRun struct {
	// clean says that it ended in order, with everything on disk.
	clean bool
	// synced is the end of the log that it knew to be on disk: the true end when clean, NoOffset when unknown.
	synced kafka.Offset
}

// tail is what the log holds behind the newest snapshot.
type tail struct {
	// entries and err are what its files hold, read before storage opens them and perhaps cuts them. They are not read when
	// nothing can be there (nothingBehind).
	entries []*raftpb.Entry
	err     error
	// term is the newest in snapshot and log, and changes says that a membership change is behind the snapshot.
	term    uint64
	changes bool
	// differs is the first index at which log and copy hold different entries, 0 if there is none.
	differs uint64
}

// recoverDirectory reads vote, snapshots and log, forms a cluster in an empty directory whose node is alone, and refuses by name what it
// would have to guess. A directory that is still empty has an empty Image.
func recoverDirectory(c Config, conf configured) (r *recovered, err error) {
	r = &recovered{machine: c.Machine, store: c.Dir, dir: c.Dir.MetadataDir(), lines: c.Log, snapshotEntries: c.SnapshotEntries, copyKeep: copyKeepBytes}
	if r.snapshotEntries <= 0 {
		r.snapshotEntries = snapshotEntries
	}
	if r.self, err = raftID(c.Dir.Identity().DirectoryID); err != nil {
		return nil, err
	}
	if err := r.readVote(); err != nil {
		return nil, err
	}
	var formed bool
	if r.snapshots, r.snapshot, formed, err = openSnapshots(c.Machine.FS, r.dir, c.Log); err != nil {
		return nil, err
	}
	r.askStorage(c.Dir)
	r.readCopy()
	if !r.nothingBehind() && r.snapshots.staged == nil {
		r.tail.entries, r.tail.err = r.readTail()
	}
	r.log, err = c.Dir.OpenMetadataLog(storage.LogOptions{Policy: storage.Synced, SegmentBytes: segmentBytes, Start: 1})
	if err != nil {
		return nil, err
	}
	defer func(log *storage.Log) {
		if err != nil {
			log.GiveUp()
		}
	}(r.log)
	if !formed {
		if err := r.checkEmpty(c); err != nil {
			return nil, err
		}
		if !conf.alone() || c.rescue {
			r.snapshot = snapshot{Conf: &raftpb.ConfState{}, Image: metadata.Empty()}
			return r, nil
		}
		if err := r.mint(conf, nil); err != nil {
			return nil, err
		}
	}
	if err := r.checkIdentity(c, conf); err != nil {
		return nil, err
	}
	if err := r.settle(); err != nil {
		return nil, err
	}
	if err := r.adopt(c.Node); err != nil {
		return nil, err
	}
	return r, r.beginCopy()
}

// settle brings log and vote into a state that continues the snapshot, or refuses by name.
func (r *recovered) settle() error {
	if r.snapshots.staged != nil {
		if err := r.finishInstall(); err != nil {
			return fmt.Errorf("finish installing the metadata snapshot at %d: %w", r.snapshot.Index, err)
		}
	}
	if err := r.settleLog(); err != nil {
		return err
	}
	if !r.member() {
		if err := r.settleObserver(); err != nil {
			return err
		}
	}
	if err := r.settleVote(); err != nil {
		return err
	}
	// Raft takes everything in the log for durable.
	if err := r.log.Sync(); err != nil {
		return fmt.Errorf("sync the metadata log after recovery: %w", err)
	}
	return nil
}

func (r *recovered) askStorage(dir *storage.Dir) {
	_, r.last.clean = dir.CleanShutdown()
	r.last.synced = kafka.NoOffset
	if end, known := dir.MetadataSynced(); known {
		r.last.synced = end
	}
}

// next is the index of the first entry that is not in the newest snapshot.
func (r *recovered) next() kafka.Offset { return kafka.Offset(r.snapshot.Index + 1) }

// settleLog brings the log into a state that continues the snapshot, or refuses by name.
func (r *recovered) settleLog() error {
	damage := r.log.Recovered().Damaged
	if damage == nil {
		damage = r.checkLog()
	}
	if damage == nil {
		damage = r.mend()
	}
	if damage != nil {
		if err := r.repair(damage); err != nil && r.member() {
			return err
		} else if err != nil {
			return r.refetch(err)
		}
	}
	r.tail.entries, r.found.copied = nil, nil
	return nil
}

// checkLog refuses a log that does not continue the snapshot.
func (r *recovered) checkLog() error {
	next := r.next()
	if r.log.Start() > next {
		return &CorruptError{File: r.dir, Why: fmt.Sprintf("the log begins at %d, but the newest readable snapshot ends with %d%s", r.log.Start(), next-1, r.damagedNames())}
	}
	if r.log.End() < next {
		return &CorruptError{File: r.newestLogFile(), Why: fmt.Sprintf("the log ends at %d, although the snapshot %s holds entry %d: its tail was lost", r.log.End(), r.snapshot.file(), next-1)}
	}
	if err := r.readUpTo(next); err != nil {
		return err
	}
	r.tail.term, r.tail.changes, r.tail.differs = r.snapshot.Term, false, 0
	for at := next; at < r.log.End(); {
		entries, err := readEntries(r.log, uint64(at), uint64(r.log.End()), readChunk)
		if err == nil {
			err = r.tail.judge(r.dir, entries)
		}
		if err != nil {
			return err
		}
		r.tail.compare(r.found.copied, entries)
		at += kafka.Offset(len(entries))
	}
	if latest := r.log.LatestEpoch(); latest > kafka.LeaderEpoch(r.tail.term) {
		// No checksum covers the term of an entry. It lies in the snapshot, but storage would refuse what comes after it.
		return &CorruptError{File: r.newestLogFile(), Why: fmt.Sprintf("an entry before %d has term %d, which there never was", next, latest)}
	}
	return nil
}

// readUpTo reads the part of the log that the snapshot holds too. Storage trusts what its sync point covers; damage there would show
// only when a later read passes over it on its way to an entry behind it, and would then stop a node that runs.
func (r *recovered) readUpTo(next kafka.Offset) error {
	var b []byte
	for at := r.log.Start(); at < next; {
		var err error
		if b, err = r.log.Read(at, next, storage.ReadLimits{MaxBytes: readChunk, AtLeastOne: true}, b[:0]); err != nil {
			return fmt.Errorf("read the metadata log at %d: %w", at, err)
		}
		last := kafka.NoOffset
		for rest := b; len(rest) > 0; {
			var batch record.Batch
			if batch, rest, err = record.Split(rest); err != nil {
				return fmt.Errorf("read the metadata log at %d: %w", at, err)
			}
			last = batch.LastOffset()
		}
		if last < at {
			return fmt.Errorf("read the metadata log at %d: %w: nothing is there", at, errEntry)
		}
		at = last + 1
	}
	return nil
}

// judge takes note of the next entries behind the snapshot. Terms never fall.
func (t *tail) judge(dir string, entries []*raftpb.Entry) error {
	for _, e := range entries {
		if e.GetTerm() < t.term {
			return &CorruptError{File: dir, Why: fmt.Sprintf("entry %d has term %d after term %d", e.GetIndex(), e.GetTerm(), t.term)}
		}
		t.term = e.GetTerm()
		t.changes = t.changes || e.GetType() != raftpb.EntryNormal
	}
	return nil
}

func (r *recovered) damagedNames() string {
	names := ""
	for _, id := range r.snapshots.damaged {
		names += "; damaged: " + id.file()
	}
	return names
}

// raftLog is raft's view of what was recovered. Commit is not persisted: a member's starts at the snapshot, and an observer's log holds
// committed entries only.
func (r *recovered) raftLog() *raftLog {
	commit := r.snapshot.Index
	if !r.member() {
		commit = uint64(r.log.End()) - 1
	}
	return &raftLog{
		log: r.log,
		hard: &raftpb.HardState{
			Term:   proto.Uint64(r.vote.Term),
			Vote:   proto.Uint64(r.vote.For),
			Commit: proto.Uint64(commit),
		},
		snapshot: r.snapshot.snapshotID,
		conf:     r.snapshot.Conf,
	}
}
