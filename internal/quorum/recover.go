package quorum

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
)

// recovered is what a metadata directory holds, verified.
type recovered struct {
	machine sys.Machine
	dir     string
	lines   *slog.Logger

	self            uint64 // raft id
	vote            vote
	voted           bool // there is a vote file
	snapshots       *snapshots
	snapshot        snapshot
	log             *storage.Log
	snapshotEntries int
}

// recoverDirectory reads vote, snapshots and log, forms a cluster in an empty directory, and refuses by name what it would have
// to guess.
func recoverDirectory(c Config) (r *recovered, err error) {
	address, err := controllerAddress(c)
	if err != nil {
		return nil, err
	}
	r = &recovered{machine: c.Machine, dir: c.Dir.MetadataDir(), lines: c.Log, snapshotEntries: c.SnapshotEntries}
	if r.snapshotEntries <= 0 {
		r.snapshotEntries = snapshotEntries
	}
	if r.self, err = raftID(c.Dir.Identity().DirectoryID); err != nil {
		return nil, err
	}
	r.log, err = c.Dir.OpenMetadataLog(storage.LogOptions{Policy: storage.Synced, SegmentBytes: segmentBytes, Start: 1})
	if err != nil {
		return nil, err
	}
	defer func(log *storage.Log) {
		if err != nil {
			_ = log.Close()
		}
	}(r.log)
	if r.vote, r.voted, err = readVote(c.Machine.FS, r.dir); err != nil {
		return nil, err
	}
	var found bool
	if r.snapshots, r.snapshot, found, err = openSnapshots(c.Machine.FS, r.dir, c.Log); err != nil {
		return nil, err
	}
	if !found {
		if err := r.checkEmpty(c); err != nil {
			return nil, err
		}
		if err := r.form(c, address); err != nil {
			return nil, err
		}
	}
	if err := r.checkIdentity(c); err != nil {
		return nil, err
	}
	if d := r.log.Recovered().Damaged; d != nil {
		if err := r.repair(d); err != nil {
			return nil, err
		}
	}
	if err := r.checkLog(); err != nil {
		return nil, err
	}
	if err := r.adopt(c); err != nil {
		return nil, err
	}
	return r, nil
}

// checkLog refuses a log that does not continue the snapshot, or that a vote is missing for. Raft takes everything in the
// log for durable, so the recovered tail is synced before raft sees it.
func (r *recovered) checkLog() error {
	next := kafka.Offset(r.snapshot.Index + 1)
	if r.log.Start() > next {
		return &CorruptError{File: r.dir, Why: fmt.Sprintf("the log begins at %d, but the newest readable snapshot ends with %d%s", r.log.Start(), next-1, r.damagedNames())}
	}
	if r.log.End() < next {
		return &CorruptError{File: r.dir, Why: fmt.Sprintf("the log ends before %d, although the snapshot %s holds more: its tail was lost", r.log.End(), r.snapshot.file())}
	}
	last := r.snapshot.Term
	for at := next; at < r.log.End(); {
		entries, err := readEntries(r.log, uint64(at), uint64(r.log.End()), readChunk)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.GetTerm() < last {
				return &CorruptError{File: r.dir, Why: fmt.Sprintf("entry %d has term %d after term %d", e.GetIndex(), e.GetTerm(), last)}
			}
			last = e.GetTerm()
		}
		at += kafka.Offset(len(entries))
	}
	if r.vote.Term < last {
		why := fmt.Sprintf("the vote is of term %d, but the log has term %d: an older vote file was put back", r.vote.Term, last)
		if !r.voted {
			why = fmt.Sprintf("the vote file is missing, but the log has term %d", last)
		}
		return &CorruptError{File: filepath.Join(r.dir, voteFileName), Why: why}
	}
	if err := r.log.Sync(); err != nil {
		return fmt.Errorf("sync the metadata log after recovery: %w", err)
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

// raftLog is raft's view of what was recovered. Commit starts at the snapshot: it is not persisted.
func (r *recovered) raftLog() *raftLog {
	return &raftLog{
		log: r.log,
		hard: &raftpb.HardState{
			Term:   proto.Uint64(r.vote.Term),
			Vote:   proto.Uint64(r.vote.For),
			Commit: proto.Uint64(r.snapshot.Index),
		},
		snapshot: r.snapshot.snapshotID,
		conf:     r.snapshot.Conf,
	}
}
