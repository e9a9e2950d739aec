package storage

import (
	"errors"
	"fmt"
	"io"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys"
)

// loadIndex brings a sealed segment's index into memory: from its file if that fits, else by walking the segment.
func (l *Log) loadIndex(s *segment) error {
	l.mu.Lock()
	if s.index != nil || s.gone {
		l.mu.Unlock()
		return nil
	}
	f, err := l.pinLocked(s)
	size, end, interval, cuts := s.size, s.end, l.mu.opts.IndexInterval, l.mu.cuts
	times := l.timesLocked(s)
	l.mu.Unlock()
	if isMissing(err) {
		return &CorruptError{File: s.path, Why: "the segment's file is missing"}
	}
	if err != nil {
		return err
	}
	x, fromFile := l.readIndex(s, size, end)
	if !fromFile {
		x = newIndex(interval)
		_, err = walkInto(x, f, 0, size, times.lastAppendMs)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unpinLocked(s)
	if err != nil {
		return asCorrupt(s.path, err)
	}
	if s.index == nil && cuts == l.mu.cuts {
		s.index, s.fromFile, s.indexed = x, fromFile, fromFile
		if !fromFile && !s.gone {
			l.mu.caches.indexes = append(l.mu.caches.indexes, s)
			l.dir.syncer.enqueueCaches(l)
		}
	}
	return nil
}

// readIndex reads the index file of a segment of this extent.
func (l *Log) readIndex(s *segment, size int64, end kafka.Offset) (*index, bool) {
	b, err := sys.ReadFile(l.dir.fs, s.beside(indexSuffix), cacheFileMax)
	if err != nil {
		return nil, false
	}
	x, ext, err := decodeIndex(b)
	if err != nil || ext.base != s.base || ext.size != size || ext.end != end {
		l.dir.log.Warn("an index does not fit its segment and is rebuilt", "file", s.beside(indexSuffix), "error", err)
		return nil, false
	}
	return x, true
}

// walkInto adds the batches of a file range to an index and returns the offset behind them, or NoOffset if there are none.
func walkInto(x *index, f io.ReaderAt, from, to, atMs int64) (kafka.Offset, error) {
	w := newWalker(f, from, to, kafka.NoOffset)
	defer w.release()
	end := kafka.NoOffset
	for {
		h, pos, err := w.next()
		if errors.Is(err, io.EOF) {
			return end, nil
		}
		if err != nil {
			return end, err
		}
		x.add(h.Base, pos, atMs, h.newest())
		end = h.End
	}
}

// dropIndex forgets the index of a sealed segment if it came from a file, so that the next lookup walks the segment.
func (l *Log) dropIndex(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.mu.segments[:len(l.mu.segments)-1] {
		if s.path == path && s.fromFile {
			l.mu.segments[i].index, s.fromFile, s.indexed = nil, false, false
			if err := removeIfThere(l.dir.fs, s.beside(indexSuffix)); err != nil {
				l.dir.log.Warn("an index could not be removed", "file", s.beside(indexSuffix), "error", err)
			}
		}
	}
	l.mu.hints = [readHints]readHint{}
}

// timesLocked are the times of a segment; for a sealed one they are read from .meta at the first use. A lost .meta is replaced by
// the file's modification time, which is never earlier than the last append: a record may live longer, never shorter (I9).
func (l *Log) timesLocked(s *segment) segmentTimes {
	if s.timesKnown {
		return s.times
	}
	if m, ok := readSegmentMeta(l.dir.fs, s); ok && m.proves(s) {
		s.times, s.timesKnown = m.times, true
		return s.times
	}
	f, err := l.pinLocked(s)
	if err != nil {
		return segmentTimes{firstAppendMs: maxMs, lastAppendMs: maxMs, maxTimestamp: maxMs}
	}
	defer l.unpinLocked(s)
	st, err := f.Stat()
	if err != nil {
		return segmentTimes{firstAppendMs: maxMs, lastAppendMs: maxMs, maxTimestamp: maxMs}
	}
	ms := st.ModTime.UnixMilli()
	// The largest record timestamp is unknown: the largest possible makes lookups search the segment.
	s.times, s.timesKnown = segmentTimes{firstAppendMs: ms, lastAppendMs: ms, maxTimestamp: maxMs}, true
	return s.times
}

// maxMs is a time that is never reached: what is unknown is never old.
const maxMs = 1<<63 - 1

// place is a batch of a segment.
type place struct {
	segment *segment
	pos     int64
}

// OffsetForTime finds the first record below upper, in offset order, whose timestamp is at least ts (milliseconds since the Unix
// epoch); ok is false when there is none. Errors are those of Read.
func (l *Log) OffsetForTime(ts int64, upper kafka.Offset) (found TimestampOffset, ok bool, err error) {
	return l.steadily(func() (TimestampOffset, bool, error) { return l.offsetForTime(ts, upper) })
}

// steadily repeats a lookup that met a segment which left the log meanwhile.
func (l *Log) steadily(lookup func() (TimestampOffset, bool, error)) (found TimestampOffset, ok bool, err error) {
	for range readAttempts {
		if found, ok, err = lookup(); !errors.Is(err, errSegmentGone) {
			return found, ok, err
		}
	}
	return TimestampOffset{}, false, fmt.Errorf("lookup by time: %w: the log was cut %d times meanwhile", ErrOutOfRange, readAttempts)
}

// errSegmentGone: a segment was removed or written anew since it was found.
var errSegmentGone = errors.New("the segment left the log")

func (l *Log) offsetForTime(ts int64, upper kafka.Offset) (found TimestampOffset, ok bool, err error) {
	err = l.overSegments(upper, func(s *segment, start, upper kafka.Offset) (bool, error) {
		pos, may, err := l.locateTime(s, ts)
		if err != nil || !may {
			return false, err
		}
		err = l.walkSegment(s, pos, func(h BatchHeader, f io.ReaderAt, pos int64) (bool, error) {
			if h.Base >= upper {
				return true, nil
			}
			if h.newest() < ts || h.Count == 0 || h.End <= start {
				return false, nil
			}
			found, ok, err = recordInBatch(f, s.path, h, pos, func(o kafka.Offset, t int64) bool { return t >= ts && o >= start && o < upper })
			return ok, err
		})
		return ok, err
	})
	return found, ok, err
}

// MaxTimestamp finds the record with the largest timestamp below upper, the first of several; ok is false when the log is empty.
func (l *Log) MaxTimestamp(upper kafka.Offset) (found TimestampOffset, ok bool, err error) {
	return l.steadily(func() (TimestampOffset, bool, error) { return l.maxTimestamp(upper) })
}

func (l *Log) maxTimestamp(upper kafka.Offset) (found TimestampOffset, ok bool, err error) {
	best := int64(-1)
	var at place
	err = l.overSegments(upper, func(s *segment, start, upper kafka.Offset) (bool, error) {
		l.mu.Lock()
		times := l.timesLocked(s)
		l.mu.Unlock()
		if times.maxTimestamp <= best && ok {
			return false, nil
		}
		pos, err := l.locateMax(s, upper)
		if err != nil {
			return false, err
		}
		return false, l.walkSegment(s, pos, func(h BatchHeader, _ io.ReaderAt, pos int64) (bool, error) {
			if h.Base >= upper {
				return true, nil
			}
			if h.End > start && h.Count > 0 && (!ok || h.MaxTimestamp > best) {
				best, at, ok = h.MaxTimestamp, place{s, pos}, true
			}
			return false, nil
		})
	})
	if err != nil || !ok {
		return found, false, err
	}
	err = l.walkSegment(at.segment, at.pos, func(h BatchHeader, f io.ReaderAt, pos int64) (bool, error) {
		found, ok, err = recordInBatch(f, at.segment.path, h, pos, func(_ kafka.Offset, t int64) bool { return t == best })
		return true, err
	})
	return found, ok, err
}

// overSegments calls visit for each segment with offsets in [start, upper), oldest first, until it says stop.
func (l *Log) overSegments(upper kafka.Offset, visit func(s *segment, start, upper kafka.Offset) (stop bool, err error)) error {
	l.mu.Lock()
	if l.mu.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	start := l.mu.start
	upper = min(upper, l.mu.end)
	var segments []*segment
	for _, s := range l.mu.segments {
		if s.end > start && s.base < upper {
			segments = append(segments, s)
		}
	}
	l.mu.Unlock()
	for _, s := range segments {
		stop, err := visit(s, start, upper)
		if stop || err != nil {
			return err
		}
	}
	return nil
}

// locateTime finds where in a segment to begin the search for a timestamp; may is false when the segment has none.
func (l *Log) locateTime(s *segment, ts int64) (pos int64, may bool, err error) {
	l.mu.Lock()
	times := l.timesLocked(s)
	l.mu.Unlock()
	if times.maxTimestamp < ts {
		return 0, false, nil
	}
	if err := l.loadIndex(s); err != nil {
		return 0, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.index == nil {
		return 0, true, nil
	}
	pos, may = s.index.atTime(ts)
	return pos, may, nil
}

// locateMax finds where to begin the search for the largest timestamp: at the entry that first reaches the largest one that lies
// wholly below upper, or at the entry that holds upper if that may reach more.
func (l *Log) locateMax(s *segment, upper kafka.Offset) (int64, error) {
	if err := l.loadIndex(s); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.index == nil {
		return 0, nil
	}
	below, last := s.index.maxBelow(upper)
	if pos, ok := s.index.atTime(below); ok && below >= 0 {
		return min(pos, last), nil
	}
	return last, nil
}

// walkSegment calls visit for the batches of a segment from pos on, until it says stop.
func (l *Log) walkSegment(s *segment, pos int64, visit func(h BatchHeader, f io.ReaderAt, pos int64) (stop bool, err error)) error {
	l.mu.Lock()
	if s.gone {
		l.mu.Unlock()
		return errSegmentGone
	}
	f, err := l.pinLocked(s)
	size := s.size
	l.mu.Unlock()
	if err != nil {
		return err
	}
	defer func() {
		l.mu.Lock()
		l.unpinLocked(s)
		l.mu.Unlock()
	}()
	w := newWalker(f, pos, size, kafka.NoOffset)
	defer w.release()
	for {
		h, at, err := w.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return asCorrupt(s.path, err)
		}
		if stop, err := visit(h, f, at); stop || err != nil {
			return err
		}
	}
}

// recordInBatch reads one batch and finds its first record that fits.
func recordInBatch(f io.ReaderAt, path string, h BatchHeader, pos int64, fits func(kafka.Offset, int64) bool) (TimestampOffset, bool, error) {
	b := make(record.Batch, h.Bytes)
	if _, err := f.ReadAt(b, pos); err != nil && !errors.Is(err, io.EOF) {
		return TimestampOffset{}, false, err
	}
	if err := b.VerifyCRC(); err != nil {
		return TimestampOffset{}, false, &CorruptError{File: path, Pos: pos, Why: err.Error()}
	}
	for r, err := range b.Records(decompressMax) {
		if err != nil {
			return TimestampOffset{}, false, &CorruptError{File: path, Pos: pos, Why: fmt.Sprintf("records: %v", err)}
		}
		ts := h.BaseTimestamp + r.TimestampDelta
		if h.Attributes&attrAppendTime != 0 {
			ts = h.MaxTimestamp
		}
		if o := h.Base + kafka.Offset(r.OffsetDelta); fits(o, ts) {
			return TimestampOffset{TimestampMs: ts, Offset: o, Epoch: h.Epoch}, true, nil
		}
	}
	return TimestampOffset{}, false, nil
}

// SizeBetween estimates the bytes of the records in [a, b), from what is in memory; it is at least 1 when there are any.
func (l *Log) SizeBetween(a, b kafka.Offset) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, b = max(a, l.mu.start), min(b, l.mu.end)
	if a >= b {
		return 0
	}
	var n int64
	for i := l.findLocked(a); i < len(l.mu.segments) && l.mu.segments[i].base < b; i++ {
		s := l.mu.segments[i]
		n += l.positionLocked(s, b) - l.positionLocked(s, a)
	}
	return max(n, 1)
}

// positionLocked estimates the file position of an offset in or outside a segment.
func (l *Log) positionLocked(s *segment, off kafka.Offset) int64 {
	switch {
	case off <= s.base:
		return 0
	case off >= s.end:
		return s.size
	}
	if pos, exact := l.hintedLocked(s, off); exact {
		return pos
	}
	if s.index != nil {
		return s.index.floor(off)
	}
	return int64(float64(s.size) * float64(off-s.base) / float64(s.end-s.base))
}
