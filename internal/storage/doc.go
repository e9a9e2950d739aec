// Package storage keeps partition logs on disk: it decides what is on disk, what is known to be on disk, and what is read back.
//
// Knows: the data directory and its state files, segments, indexes, append times, producer state and leader epochs of a log,
// recovery after a crash, truncation, retention, compaction, and group sync. Does not know: who leads, what the high watermark is (callers
// pass it in), topics' names, the network.
//
// One Log serves partition data, the progress store and the metadata log: there is one format and one recovery procedure.
// The formats are specified byte by byte in docs/formats/ (segment.md, offset-index.md, producer-snapshot.md, layout.md).
//
// Invariants kept here:
//   - I5: Append (this node assigns offsets) and AppendReplicated (offsets given) are different operations; TruncateTo cuts a
//     suffix, AdvanceStart a prefix, and neither guesses.
//   - I9: retention never removes a segment that may hold a record younger than the minimum retention; ages are counted from
//     the broker's append time, never from client timestamps and never from an index.
//   - I10: a directory is deleted only by DropLog; everything unknown is left alone or quarantined.
//   - I11: every batch is checked when it is read; ENOSPC and short writes are undone by truncation; the first failed sync of a
//     file is final for its log, also across restarts (the `damaged` marker).
//   - I12: producer state lives as long as its own expiry, not as long as the segments its batches were in, and
//     survives compaction. Record ids live for their window,
//     and while their records are in the log.
//   - I14: every allocation made because of a length on disk is checked against the bytes that are there (limits.go).
//
// Written, synced, stored: a log has a written end (End) and a synced end; StoredEnd is the synced end under the policy Synced
// and the written end under Replicated, but only once the sync-point file on disk says `replicated` for this log.
//
// Concurrency: one goroutine at a time may call Append, AppendReplicated, AssignEpoch, TruncateTo and Reset of one Log (the
// partition lock sees to that). Everything else may be called from any goroutine. Log.mu is held over page-cache writes and
// segment creation, never over a sync; reads happen outside it on pinned file handles. Lock order inside the package:
// Log.mu, then Dir.mu or Syncer.mu, which are leaves. Callbacks (OnStored) run on the syncer's goroutine, the metadata log's on that of
// Sync, without any lock held.
//
// A full disk: what must go on (metadata, internal topics, raising a log's start) may spend the reserve; records of user topics are then
// refused until it can be written again (reserve.go).
//
// Files: dir.go, foreign.go, identity.go, startfile.go, clean.go, syncpoint.go, syncpointcopy.go, quarantine.go and reserve.go are the data directory; log.go, append.go,
// read.go, lookup.go, appendtime.go, truncate.go, prefix.go, reset.go, keptproducers.go, retention.go and roll.go are the operations of a log; open.go,
// recover.go, adopt.go, scan.go, promised.go and
// replay.go bring one back; compact*.go are compaction; marker.go keeps what is wrong with it; segment.go, segmentmeta.go and index.go are the files of a segment;
// producer.go, producersnap.go and epochs.go are the caches, recordids.go and recordids_load.go one that is in memory only, cachefailures.go what is said when they cannot be written; closing.go closes
// many logs together; openfiles.go bounds the open segment files; syncer.go and flush.go make bytes durable; dump.go
// reads a log offline; frame.go is the envelope of all small files.
package storage
