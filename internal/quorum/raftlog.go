package quorum

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/storage"
)

// raftLog is raft's view of the metadata log (raft.Storage). FirstIndex and the term before it come from the newest
// snapshot, whatever the log still holds. Entries that were written lately are also in memory: raft asks for each of them
// once more when it is committed, and that must not read the disk.
//
// Only the loop uses it. The append goroutine writes to the same storage.Log meanwhile; raft asks only for indexes that it
// has been told are durable, and those do not change.
type raftLog struct {
	log      *storage.Log
	hard     *raftpb.HardState
	snapshot snapshotID
	conf     *raftpb.ConfState

	// cache holds entries without gaps, newest last: raft's view of the log, durable or not.
	cache      []*raftpb.Entry
	cacheBytes int
	// failed is the first read error. Raft panics on it; the loop turns that panic back into this error.
	failed error
}

// InitialState implements raft.Storage. Commit is not persisted: it starts at the snapshot and rises as soon as there is a
// leader.
func (r *raftLog) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	return r.hard, r.conf, nil
}

// FirstIndex implements raft.Storage.
func (r *raftLog) FirstIndex() (uint64, error) { return r.snapshot.Index + 1, nil }

// LastIndex implements raft.Storage.
func (r *raftLog) LastIndex() (uint64, error) {
	return max(uint64(r.log.End())-1, r.snapshot.Index), nil
}

// Term implements raft.Storage.
func (r *raftLog) Term(i uint64) (uint64, error) {
	if i < r.snapshot.Index {
		return 0, raft.ErrCompacted
	}
	if i == r.snapshot.Index {
		return r.snapshot.Term, nil
	}
	if first := r.cacheFirst(); len(r.cache) > 0 && i >= first && i-first < uint64(len(r.cache)) {
		return r.cache[i-first].GetTerm(), nil
	}
	if i >= uint64(r.log.End()) {
		return 0, raft.ErrUnavailable
	}
	epoch := r.log.EpochAt(kafka.Offset(i))
	if epoch == kafka.NoEpoch {
		r.failed = fmt.Errorf("the metadata log knows no term of index %d", i)
		return 0, r.failed
	}
	return uint64(epoch), nil
}

// Entries implements raft.Storage.
func (r *raftLog) Entries(lo, hi, maxSize uint64) ([]*raftpb.Entry, error) {
	if lo <= r.snapshot.Index {
		return nil, raft.ErrCompacted
	}
	if first := r.cacheFirst(); len(r.cache) > 0 && lo >= first {
		if hi > first+uint64(len(r.cache)) {
			return nil, raft.ErrUnavailable
		}
		return limitSize(r.cache[lo-first:hi-first], maxSize), nil
	}
	if hi > uint64(r.log.End()) {
		return nil, raft.ErrUnavailable
	}
	entries, err := readEntries(r.log, lo, hi, int(min(maxSize, readChunk)))
	if err != nil {
		r.failed = err
		return nil, err
	}
	return limitSize(entries, maxSize), nil
}

// Snapshot implements raft.Storage: which snapshot there is to send. Its content does not go through raft (pieces.go).
func (r *raftLog) Snapshot() (*raftpb.Snapshot, error) {
	if r.snapshot.Index == 0 {
		// Raft takes index 0 for no snapshot. Nobody needs it: the log goes on from it.
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{
		ConfState: r.conf, Index: proto.Uint64(r.snapshot.Index), Term: proto.Uint64(r.snapshot.Term),
	}}, nil
}

// remember adds entries that raft has appended. They replace what the cache held from their first index on.
func (r *raftLog) remember(entries []*raftpb.Entry) {
	if len(entries) == 0 {
		return
	}
	first, from := r.cacheFirst(), entries[0].GetIndex()
	switch {
	case len(r.cache) == 0 || from < first || from > first+uint64(len(r.cache)):
		r.cache, r.cacheBytes = nil, 0
	default:
		for _, e := range r.cache[from-first:] {
			r.cacheBytes -= entrySize(e)
		}
		// Clipped: raft may still hold the tail that is replaced, and must not see it change.
		r.cache = slices.Clip(r.cache[:from-first])
	}
	for _, e := range entries {
		r.cache = append(r.cache, e)
		r.cacheBytes += entrySize(e)
	}
	for r.cacheBytes > cacheBytesMax && len(r.cache) > 1 {
		r.cacheBytes -= entrySize(r.cache[0])
		r.cache = r.cache[1:]
	}
}

// forget drops cached entries up to and including index: they have been applied.
func (r *raftLog) forget(index uint64) {
	n := 0
	for n < len(r.cache) && r.cache[n].GetIndex() <= index {
		r.cacheBytes -= entrySize(r.cache[n])
		n++
	}
	if r.cache = r.cache[n:]; len(r.cache) == 0 {
		r.cache = nil
	}
}

func (r *raftLog) cacheFirst() uint64 {
	if len(r.cache) == 0 {
		return 0
	}
	return r.cache[0].GetIndex()
}

func entrySize(e *raftpb.Entry) int { return proto.Size(e) }

// limitSize returns the longest prefix of at most maxSize bytes, at least one entry, in a slice that the caller may append
// to.
func limitSize(entries []*raftpb.Entry, maxSize uint64) []*raftpb.Entry {
	size := uint64(0)
	for i, e := range entries {
		size += uint64(entrySize(e))
		if i > 0 && size > maxSize {
			return entries[:i:i]
		}
	}
	return entries[:len(entries):len(entries)]
}

// readEntries reads entries from lo, and no further than hi (exclusive) or about maxBytes of batches, at least one.
func readEntries(log *storage.Log, lo, hi uint64, maxBytes int) ([]*raftpb.Entry, error) {
	b, err := log.Read(kafka.Offset(lo), kafka.Offset(hi), storage.ReadLimits{MaxBytes: maxBytes, AtLeastOne: true}, nil)
	if err != nil {
		return nil, fmt.Errorf("read the metadata log at %d: %w", lo, err)
	}
	entries, err := decodeEntries(b)
	if err != nil {
		return nil, fmt.Errorf("read the metadata log at %d: %w", lo, err)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("read the metadata log at %d: %w: nothing is there", lo, errEntry)
	}
	for i, e := range entries {
		if e.GetIndex() != lo+uint64(i) {
			return nil, fmt.Errorf("read the metadata log at %d: %w: found index %d", lo+uint64(i), errEntry, e.GetIndex())
		}
	}
	return entries, nil
}
