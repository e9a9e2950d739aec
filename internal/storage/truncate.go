package storage

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"strandline.dev/internal/kafka"
)

// TruncateTo cuts the log's end back to `end`, durably: the follower's answer to a divergence that its leader named (I5), and
// Raft's. If end lies inside a batch the whole batch goes, so End() may then be lower. An end at or above the log's cuts nothing,
// one below the start is ErrOutOfRange. Producer state and epochs move back with the log; an epoch that was assigned at its end
// and has no record goes too, or the log would refuse the records of the leader that it follows now (C015).
func (l *Log) TruncateTo(end kafka.Offset) error {
	l.lockIO()
	defer l.unlockIO()
	c, err := l.planCut(end)
	if corrupt := (*CorruptError)(nil); errors.As(err, &corrupt) && l.Damaged() == nil {
		l.damage(corrupt)
	}
	if c == nil {
		if err == nil {
			err = l.dropEmptyEpochs(end)
		}
		return err
	}
	if start := l.Start(); c.end < start {
		return l.emptyAt(c, start)
	}
	if err = l.forgetCleanIO(c.end); err == nil {
		err = l.lowerPoint(c)
	}
	if err == nil {
		doomed := l.applyCut(c)
		if err = l.cutFiles(c, doomed); err != nil {
			// Half cut: memory and disk differ, and nobody may append to that.
			l.fail(err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unpinLocked(c.segment)
	l.dirtyLocked(l.activeLocked()) // also when nothing was cut: the durable end was lowered, and rises again with a sync
	l.wantFlushLocked()
	return err
}

// dropEmptyEpochs forgets the epochs that begin at end, where the log ends too. The file goes first: after a crash it would call the
// records that are appended next damaged.
func (l *Log) dropEmptyEpochs(end kafka.Offset) error {
	l.mu.Lock()
	es := l.mu.epochs
	l.mu.Unlock()
	if len(es) == 0 || es[len(es)-1].start < end {
		return nil
	}
	if err := removeIfThere(l.dir.fs, filepath.Join(l.path, epochsFile)); err != nil {
		return err
	}
	if err := l.dir.fs.SyncDir(l.path); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.epochs, l.mu.caches.epochs = l.mu.epochs.truncate(end), true
	return nil
}

// emptyAt is the cut through a batch that the log start lies in: nothing is left, and the log goes on, empty, at its start. Its
// next batch would not continue the old segment, so that goes; producer state stays, on disk too: it may know batches that were
// acknowledged and whose records were deleted since.
func (l *Log) emptyAt(c *cut, start kafka.Offset) error {
	l.mu.Lock()
	l.unpinLocked(c.segment)
	l.mu.Unlock()
	return l.resetIO(start, &c.producers)
}

// cut is where a log will end.
type cut struct {
	segment   *segment
	file      io.ReaderAt
	pos       int64
	end       kafka.Offset
	index     *index
	producers producers
}

// planCut finds the place and computes the caches as they will be; it changes nothing. The segment is pinned.
func (l *Log) planCut(end kafka.Offset) (*cut, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writableLocked(); err != nil {
		return nil, err
	}
	if end >= l.mu.end {
		return nil, nil
	}
	if end < l.mu.start {
		return nil, fmt.Errorf("%w: truncation to %d below the start %d", ErrOutOfRange, end, l.mu.start)
	}
	s := l.mu.segments[l.findLocked(end)]
	f, err := l.pinLocked(s)
	if err != nil {
		return nil, err
	}
	c := &cut{segment: s, file: f, end: s.base, index: newIndex(l.mu.opts.IndexInterval)}
	size, saved := s.size, slices.Clone(l.mu.caches.saved)
	from := l.mu.segments[0].base
	atMs := s.times.lastAppendMs
	// The walks below read bytes that stay; the caller is the only one who could change them.
	l.mu.Unlock()
	err = c.locate(end, size, atMs)
	if err == nil {
		err = l.producersAt(c, saved, from)
	}
	l.mu.Lock()
	if err != nil {
		l.unpinLocked(s)
		return nil, asCorrupt(s.path, err)
	}
	return c, nil
}

// locate walks to the first batch that reaches beyond end, indexing what stays.
func (c *cut) locate(end kafka.Offset, size, atMs int64) error {
	w := newWalker(c.file, 0, size, kafka.NoOffset)
	defer w.release()
	for {
		h, pos, err := w.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.End > end {
			return nil
		}
		c.index.add(h.Base, pos, atMs, h.newest())
		c.pos, c.end = pos+h.Bytes, h.End
	}
}

// producersAt rebuilds the producer state at the cut.
func (l *Log) producersAt(c *cut, saved []kafka.Offset, from kafka.Offset) error {
	p, at, unusable := l.loadProducers(saved, from, c.end)
	if err := l.forgetSnapshots(unusable); err != nil {
		return err
	}
	c.producers = p
	return l.replay(at, c.end, func(h BatchHeader, atMs int64) string {
		c.producers.note(h, atMs)
		return ""
	})
}

// lowerPoint makes sure, before anything is cut, that the sync-point file promises nothing behind the cut.
func (l *Log) lowerPoint(c *cut) error {
	l.mu.Lock()
	if l.mu.durable.end > c.end {
		l.mu.durable = durableEnd{end: c.end, segment: c.segment.base, pos: c.pos, times: c.segment.times}
	}
	l.mu.replicatedEnd = min(l.mu.replicatedEnd, c.end)
	l.mu.hw = min(l.mu.hw, c.end)
	promised := l.mu.pointEnd > c.end
	l.mu.Unlock()
	if !promised {
		return nil
	}
	return diskError(l.dir.mustSave())
}

// applyCut cuts the log in memory and returns the segments whose files go.
func (l *Log) applyCut(c *cut) []*segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.mu.segments, c.segment)
	doomed := slices.Clone(l.mu.segments[i+1:])
	l.mu.segments = slices.Clone(l.mu.segments[:i+1])
	for _, s := range doomed {
		l.mu.size -= s.size
		l.dropFromListsLocked(s)
		l.discardLocked(s)
	}
	s := c.segment
	l.mu.unsealed = slices.DeleteFunc(l.mu.unsealed, func(o *segment) bool { return o == s })
	l.mu.caches.indexes = slices.DeleteFunc(l.mu.caches.indexes, func(o *segment) bool { return o == s })
	l.mu.size -= s.size - c.pos
	s.size, s.end, s.index, s.sealed, s.indexed, s.fromFile = c.pos, c.end, c.index, false, false, false
	if !s.timesKnown {
		l.timesLocked(s)
	}
	if c.pos == 0 {
		s.times = noTimes
	}
	l.mu.end = c.end
	l.mu.replicatedEnd = min(l.mu.replicatedEnd, c.end) // a reader may have noted the old end since lowerPoint
	l.mu.cuts++
	l.mu.resets++
	l.mu.hints = [readHints]readHint{}
	l.mu.producers = c.producers
	l.cutIDsLocked(c.end)
	l.mu.epochs = l.mu.epochs.truncate(c.end)
	l.mu.notified = min(l.mu.notified, l.storedLocked())
	l.mu.needTrim = false
	k := &l.mu.caches
	k.snapshots = slices.DeleteFunc(k.snapshots, func(s producerSnapshot) bool { return s.at > c.end })
	k.epochs, k.whole = true, false
	return doomed
}

// cutFiles makes the cut durable: first the caches that speak of what goes (an old index or epoch file must not come back and be
// believed), then later segments, then the bytes.
func (l *Log) cutFiles(c *cut, doomed []*segment) error {
	names := []string{filepath.Join(l.path, epochsFile), c.segment.beside(metaSuffix), c.segment.beside(indexSuffix)}
	l.mu.Lock()
	saved := l.mu.caches.saved
	for len(saved) > 0 && saved[len(saved)-1] > c.end {
		names = append(names, filepath.Join(l.path, offsetName(saved[len(saved)-1], producersSuffix)))
		saved = saved[:len(saved)-1]
	}
	l.mu.caches.saved = slices.Clone(saved)
	f := c.segment.file
	l.mu.Unlock()
	for _, name := range names {
		if err := removeIfThere(l.dir.fs, name); err != nil {
			return err
		}
	}
	for _, s := range slices.Backward(doomed) {
		if err := removeFiles(l.dir.fs, s); err != nil {
			return err
		}
	}
	if err := l.dir.fs.SyncDir(l.path); err != nil {
		return err
	}
	if err := f.Truncate(c.pos); err != nil {
		return err
	}
	return f.Sync()
}
