package storage

import (
	"errors"
	"fmt"
	"io"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/recordid"
	"strandline.dev/internal/sys"
)

// Append writes one batch at the log's end. The leader's operation (I5): it assigns the offsets, by patching base offset and
// leader epoch in b, both outside the checksum. b must have been validated. at is the append time.
//
// Errors change nothing: ErrNoSpace (retriable; when the log is not Essential also at a disk limit, a *LimitError, or while the reserve is spent), ErrTooLarge,
// ErrInvalidAppend for an older epoch, ErrClosed, ErrSyncFailed, *CorruptError on a damaged log.
func (l *Log) Append(epoch kafka.LeaderEpoch, b record.Batch, at time.Time) (Appended, error) {
	return l.AppendIdentified(epoch, b, nil, at)
}

// AppendIdentified is Append for a batch whose records carry these ids, as JudgeRecordIDs has seen them.
func (l *Log) AppendIdentified(epoch kafka.LeaderEpoch, b record.Batch, ids []recordid.Carried, at time.Time) (Appended, error) {
	done, err := l.append(epoch, b, ids, at)
	if err != nil && l.madeRoom(err) {
		return l.append(epoch, b, ids, at)
	}
	return done, err
}

func (l *Log) append(epoch kafka.LeaderEpoch, b record.Batch, ids []recordid.Carried, at time.Time) (Appended, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.admitsLocked(l.dir.limit.admit, len(b)); err != nil {
		return Appended{}, err
	}
	if int64(len(b)) > l.mu.opts.SegmentBytes {
		return Appended{}, fmt.Errorf("%w: %d bytes, segments have %d", ErrTooLarge, len(b), l.mu.opts.SegmentBytes)
	}
	if latest := l.mu.epochs.latest(); epoch < latest {
		return Appended{}, fmt.Errorf("%w: leader epoch %d after %d", ErrInvalidAppend, epoch, latest)
	}
	b.SetBaseOffset(l.mu.end)
	b.SetLeaderEpoch(epoch)
	h := headerOf(b)
	if h.End <= h.Base {
		return Appended{}, fmt.Errorf("%w: offset overflow at %d", ErrInvalidAppend, h.Base)
	}
	atMs := at.UnixMilli()
	pos, err := l.writeLocked(b, atMs)
	if err != nil {
		return Appended{}, err
	}
	l.noteLocked(h, pos, atMs)
	l.noteIDsLocked(h.Base, ids)
	l.appendedLocked()
	return Appended{Base: h.Base, End: h.End, TimestampMs: stampOf(h)}, nil
}

// AppendReplicated writes batches whose offsets the leader has assigned. The follower's operation (I5): the first batch must
// start at End, the others follow without a gap, epochs never fall, and every checksum must fit (I11). at is the append time
// that the leader gave them. Of a filler that begins below End, because the leader has compacted what this log still has, only the rest
// is taken. It returns the new end. Errors change nothing and are those of Append, or a *CorruptError naming
// the bytes received.
func (l *Log) AppendReplicated(batches []byte, at time.Time) (kafka.Offset, error) {
	ids := l.idsOf(batches)
	end, err := l.appendReplicated(batches, ids, at)
	if err != nil && l.madeRoom(err) {
		return l.appendReplicated(batches, ids, at)
	}
	return end, err
}

func (l *Log) appendReplicated(batches []byte, ids [][]recordid.Carried, at time.Time) (kafka.Offset, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.admitsLocked(l.dir.limit.admitCopy, len(batches)); err != nil {
		return l.mu.end, err
	}
	batches = trimFiller(batches, l.mu.end)
	if err := l.checkReplicatedLocked(batches); err != nil || len(batches) == 0 {
		return l.mu.end, err
	}
	atMs := at.UnixMilli()
	pos, err := l.writeLocked(batches, atMs)
	if err != nil {
		return l.mu.end, err
	}
	for rest := batches; len(rest) > 0; {
		var b record.Batch
		b, rest, _ = record.Split(rest) // checked above
		l.noteLocked(headerOf(b), pos, atMs)
		if len(ids) > 0 {
			l.noteIDsLocked(b.BaseOffset(), ids[0])
			ids = ids[1:]
		}
		pos += int64(len(b))
	}
	l.appendedLocked()
	return l.mu.end, nil
}

// trimFiller cuts a filler at the front down to what lies at and behind end. Only fillers span what were several batches once.
func trimFiller(batches []byte, end kafka.Offset) []byte {
	b, rest, err := record.Split(batches)
	if err != nil || b.BaseOffset() >= end || b.NextOffset() <= end || b.VerifyCRC() != nil || !b.IsFiller() {
		return batches
	}
	return append(record.Filler(end, b.NextOffset(), b.LeaderEpoch()), rest...)
}

func (l *Log) checkReplicatedLocked(batches []byte) error {
	next, epoch := l.mu.end, l.mu.epochs.latest()
	for rest := batches; len(rest) > 0; {
		at := int64(len(batches) - len(rest))
		b, after, err := record.Split(rest)
		if err != nil {
			return &CorruptError{File: "received batches", Pos: at, Why: err.Error()}
		}
		if bad := checkHeader(b, int64(len(b)), next); bad != nil {
			return fmt.Errorf("%w: byte %d: %s", ErrInvalidAppend, at, bad.why)
		}
		if b.LeaderEpoch() < epoch {
			return fmt.Errorf("%w: byte %d: leader epoch %d after %d", ErrInvalidAppend, at, b.LeaderEpoch(), epoch)
		}
		if err := b.VerifyCRC(); err != nil {
			return &CorruptError{File: "received batches", Pos: at, Why: err.Error()}
		}
		next, epoch, rest = b.NextOffset(), b.LeaderEpoch(), after
	}
	return nil
}

// admitsLocked says why the log takes no n bytes of records, or nil; limit is what their kind may take of the disk.
func (l *Log) admitsLocked(limit func(int) error, n int) error {
	if err := l.writableLocked(); err != nil || l.mu.opts.Essential {
		return err
	}
	if err := limit(n); err != nil {
		return err
	}
	return l.dir.reserve.admit()
}

// madeRoom spends the reserve for an append to an essential log that met a full disk, and says whether it is worth another try. The log's
// lock is not held.
func (l *Log) madeRoom(err error) bool {
	if !wantsRoom(err) {
		return false
	}
	l.mu.Lock()
	essential := l.mu.opts.Essential
	l.mu.Unlock()
	if !essential || l.dir.reserve.size == 0 {
		return false
	}
	l.dir.reserve.spend()
	return true
}

// writeLocked is the one write of an append; it rolls first if the bytes do not fit. A failure is undone (I11).
func (l *Log) writeLocked(b []byte, atMs int64) (pos int64, err error) {
	if s := l.activeLocked(); s.size > 0 && (s.size+int64(len(b)) > l.mu.opts.SegmentBytes || l.agedLocked(s, atMs)) {
		if err := l.rollLocked(); err != nil {
			return 0, err
		}
	}
	s := l.activeLocked()
	f, err := l.pinLocked(s)
	if err != nil {
		return 0, diskError(err)
	}
	defer l.unpinLocked(s)
	if err := l.trimLocked(); err != nil {
		return 0, err
	}
	n, err := f.WriteAt(b, s.size)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	l.dirtyLocked(s)
	if err != nil {
		// Undo: what is behind the end must not be found at the next start. If that fails too, the next append tries again.
		l.mu.needTrim = f.Truncate(s.size) != nil
		return 0, diskError(err)
	}
	l.dir.limit.written.Add(int64(len(b)))
	return s.size, nil
}

// trimLocked removes what an append that could not be undone left behind the end of the active segment. Bytes that stayed there
// would be damage as soon as the segment is rolled.
func (l *Log) trimLocked() error {
	if !l.mu.needTrim {
		return nil
	}
	s := l.activeLocked()
	f, err := l.pinLocked(s)
	if err != nil {
		return diskError(err)
	}
	defer l.unpinLocked(s)
	l.dirtyLocked(s) // a sync may have put those bytes on disk
	if err := f.Truncate(s.size); err != nil {
		return diskError(err)
	}
	l.mu.needTrim = false
	return nil
}

// diskError names a full disk; other errors pass.
func diskError(err error) error {
	if sys.IsNoSpace(err) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}

// noteLocked takes a batch that was just written at pos into the log's extent and caches. It allocates nothing per batch but
// index entries, one per interval.
func (l *Log) noteLocked(h BatchHeader, pos, atMs int64) {
	s := l.activeLocked()
	s.times.note(atMs, h.newest())
	s.index.add(h.Base, pos, atMs, h.newest())
	l.hintLocked(readHint{s, h.Base, pos})
	l.mu.producers.note(h, atMs)
	if h.Epoch > l.mu.epochs.latest() {
		// The epochs file waits for the next checkpoint, as producer state does: recovery finds the epochs of records by itself, and after
		// a start the first record of each of thousands of logs would write one.
		l.mu.epochs = l.mu.epochs.note(h.Epoch, h.Base)
	}
	s.size, s.end = pos+h.Bytes, h.End
	l.mu.size += h.Bytes
	l.mu.end = h.End
	l.mu.caches.grown += h.Bytes
}

// hintLocked remembers a position for the next reads. The tail keeps slot 0, because every append renews it.
func (l *Log) hintLocked(h readHint) { l.mu.hints[0] = h }

// appendedLocked has the new end made durable, and told where it counts as stored already.
func (l *Log) appendedLocked() {
	if l.mu.opts.Policy == Replicated && l.mu.marked && !l.mu.recovering {
		l.noticeLocked()
		if !l.dir.openFiles.crowded() {
			return // synced by housekeeping
		}
	}
	l.wantFlushLocked()
}

// dirtyLocked notes that a segment holds bytes that no sync covered.
func (l *Log) dirtyLocked(s *segment) {
	s.inherited = false
	if !s.dirty {
		s.dirty = true
		l.mu.dirty = append(l.mu.dirty, s)
	}
}

// inheritLocked is dirtyLocked for bytes that an earlier process wrote, or may have written.
func (l *Log) inheritLocked(s *segment) {
	l.dirtyLocked(s)
	s.inherited = true
}

// wantFlushLocked puts the log in the syncer's queue if there is something to make durable.
func (l *Log) wantFlushLocked() {
	if !l.grouped || l.mu.queued || l.mu.closed || !l.flushableLocked() {
		return
	}
	l.mu.queued = true
	l.dir.syncer.enqueue(l)
}

func (l *Log) flushableLocked() bool {
	return l.refusalLocked() == nil && (len(l.mu.dirty) > 0 || len(l.mu.unsealed) > 0 || l.mu.newNames || l.mu.newDir || l.mu.recovering)
}

// isNoSpace says that an operation failed for want of space and may be repeated. A sync that failed never may (I11).
func isNoSpace(err error) bool {
	return (errors.Is(err, ErrNoSpace) || sys.IsNoSpace(err)) && !errors.Is(err, ErrSyncFailed)
}
