package storage

import (
	"fmt"
	"slices"

	"strandline.dev/internal/kafka"
)

// AdvanceStart raises the log start, durably, and removes whole segments below it. A start that is not higher changes nothing;
// one above End is ErrOutOfRange (that is what Reset is for). The caller keeps it at or below the high watermark.
func (l *Log) AdvanceStart(start kafka.Offset) error {
	l.lockIO()
	defer l.unlockIO()
	return l.advanceIO(start)
}

// advanceIO is AdvanceStart for a caller that holds io. The order is what makes it safe: the new start is on disk before anybody is
// told of it (P19) and before a segment goes, and the producer state before the batches it came from (I12, C048). After an error the
// start is what it was, unless somebody else's write of the sync-point file took the new one along.
func (l *Log) advanceIO(start kafka.Offset) error {
	l.mu.Lock()
	if err := l.writableLocked(); err != nil {
		l.mu.Unlock()
		return err
	}
	if start > l.mu.end {
		end := l.mu.end
		l.mu.Unlock()
		return fmt.Errorf("%w: start %d above the end %d", ErrOutOfRange, start, end)
	}
	l.mu.raising = max(start, l.mu.start)
	doomed := l.belowStartLocked()
	unsaved := l.mu.startSaved < l.mu.raising
	l.mu.Unlock()
	var err error
	if unsaved || len(doomed) > 0 {
		err = l.saveStartIO(doomed)
	}
	l.mu.Lock()
	if err == nil || l.mu.startSaved >= l.mu.raising {
		l.mu.start = l.mu.raising
		l.mu.hw = max(l.mu.hw, l.mu.start)
		l.startIDsLocked()
	}
	l.mu.raising = 0
	if err == nil {
		l.detachLocked(doomed)
		// Not before the save: the epochs file could be written in between, and after a crash the old start would miss its epochs.
		l.mu.epochs, l.mu.caches.epochs = l.mu.epochs.advance(l.mu.start), true
	}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return l.unlinkIO(doomed)
}

// saveStartIO makes the start that is being raised durable, and what the doomed segments' producers need.
func (l *Log) saveStartIO(doomed []*segment) error {
	if len(doomed) > 0 {
		l.keepProducersIO()
		// Their indexes first: that needs no room and makes some, should the disk be full.
		for _, s := range doomed {
			if err := removeIfThere(l.dir.fs, s.beside(indexSuffix)); err != nil {
				return err
			}
			l.mu.Lock()
			s.indexed = false // the segment stays in use if the save fails
			l.mu.Unlock()
		}
	}
	return diskError(l.dir.mustSave())
}

// belowStartLocked lists the segments that lie wholly below the start, and those left over from an earlier attempt to remove
// them. The active segment stays.
func (l *Log) belowStartLocked() []*segment {
	n := 0
	for n < len(l.mu.segments)-1 && l.mu.segments[n+1].base <= l.startLocked() {
		n++
	}
	return append(slices.Clone(l.mu.leftover), l.mu.segments[:n]...)
}

// detachLocked takes segments at the front out of the log. They stay in leftover until their files are gone.
func (l *Log) detachLocked(doomed []*segment) {
	for _, s := range doomed {
		if s.gone {
			continue
		}
		l.mu.size -= s.size
		l.dropFromListsLocked(s)
		l.discardLocked(s)
	}
	l.mu.segments = slices.DeleteFunc(slices.Clone(l.mu.segments), func(s *segment) bool { return s.gone })
	l.mu.leftover = doomed
	if first := l.mu.segments[0]; l.mu.durable.segment < first.base {
		// What was known to be on disk is gone; nothing below the first segment matters any more.
		l.mu.durable = durableEnd{end: first.base, segment: first.base, times: noTimes}
	}
}

// dropFromListsLocked forgets pending work on a segment.
func (l *Log) dropFromListsLocked(s *segment) {
	is := func(o *segment) bool { return o == s }
	l.mu.dirty = slices.DeleteFunc(l.mu.dirty, is)
	l.mu.unsealed = slices.DeleteFunc(l.mu.unsealed, is)
	l.mu.caches.indexes = slices.DeleteFunc(l.mu.caches.indexes, is)
	for i := range l.mu.hints {
		if l.mu.hints[i].segment == s {
			l.mu.hints[i] = readHint{}
		}
	}
}

func (l *Log) unlinkIO(doomed []*segment) error {
	for _, s := range doomed {
		if err := removeFiles(l.dir.fs, s); err != nil {
			return err
		}
		l.dir.metrics.SegmentsDeleted.Inc()
	}
	l.mu.Lock()
	l.mu.leftover = nil
	uncovered := len(doomed) > 0 && l.mu.caches.checkpoint
	l.mu.Unlock()
	if uncovered {
		_ = l.writeCachesIO() // there is room now
	}
	return nil
}

// keepProducersIO makes sure that a producer snapshot on disk covers what the segments to be removed held. Where not even the reserve has
// room for it the removal goes on without: it is what makes room, and the snapshot is written behind it.
func (l *Log) keepProducersIO() {
	_ = l.writeCachesIO()
	l.mu.Lock()
	saved := l.mu.caches.saved
	covered := len(saved) > 0 && l.coversRemovalLocked(saved[len(saved)-1])
	if !covered {
		l.mu.caches.checkpoint = true
	}
	l.mu.Unlock()
	if !covered {
		_ = l.dir.WithReserve(l.writeCachesIO) // a failure has left checkpoint set, so it can be repeated
	}
}

// coversRemovalLocked says that replay from a snapshot at offset needs none of the segments below the start.
func (l *Log) coversRemovalLocked(at kafka.Offset) bool {
	n := len(l.belowStartLocked()) - len(l.mu.leftover)
	return at >= l.mu.segments[n].base
}
