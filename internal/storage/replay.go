package storage

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

// caches brings producer state, epochs and the last segment's index to the log's end, from their files where those are good and
// by walking headers for the rest. After a clean stop the files reach the end, and no segment is read.
func (r *recovery) caches() error {
	l := r.l
	first, end := r.segments[0].base, r.at
	if len(r.below) > 0 {
		first = r.below[0].base
	}
	snapshots := sortOffsets(r.ls.snapshots)
	p, producersAt, unusable := l.loadProducers(snapshots, first, end)
	es, epochsAt, ahead := l.loadEpochs(first, end)
	last := r.segments[len(r.segments)-1]
	x, indexPos, indexAt := r.loadActiveIndex(last)

	err := r.replay(min(producersAt, epochsAt), func(h BatchHeader, atMs int64) string {
		if h.Base >= producersAt {
			p.note(h, atMs)
		}
		known := es.at(h.Base)
		switch {
		case h.Base >= epochsAt && h.Epoch >= known:
			es = es.note(h.Epoch, h.Base)
		case known != kafka.NoEpoch && h.Epoch != known:
			return fmt.Sprintf("leader epoch %d, want %d", h.Epoch, known)
		}
		return ""
	})
	if err == nil && indexAt < end && last.size > indexPos {
		err = r.meet(l.indexRest(last, x, indexPos))
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.producers, l.mu.epochs = p, es.advance(l.mu.start)
	last.index = x
	if len(x.entries) > 0 {
		last.times.maxTimestamp = x.entries[len(x.entries)-1].maxTimestamp
	}
	for _, at := range snapshots {
		if at <= end && !slices.Contains(unusable, at) {
			l.mu.caches.saved = append(l.mu.caches.saved, at)
		}
	}
	l.mu.caches.epochs = ahead // else it may lag behind until the next checkpoint
	l.mu.caches.whole = producersAt == end && epochsAt == end && indexAt == end && !ahead && !r.staleIndex && len(unusable) == 0
	l.mu.caches.wholeAt = end
	return r.dropCaches(snapshots, unusable, ahead)
}

// replay is Log.replay up to the end. What is wrong in a segment below the start costs producer state only, and the replay goes on
// behind it: a power cut may take bytes that a start was raised past.
func (r *recovery) replay(from kafka.Offset, visit func(h BatchHeader, atMs int64) string) error {
	err := r.l.replay(from, r.at, visit)
	var corrupt *CorruptError
	if errors.As(err, &corrupt) && slices.ContainsFunc(r.below, func(s *segment) bool { return s.path == corrupt.File }) {
		r.l.dir.log.Warn("producer state below the log start is lost", "log", r.l.tp.String(), "error", err)
		err = r.l.replay(r.segments[0].base, r.at, visit)
	}
	return r.meet(err)
}

// meet turns damage found while caches were rebuilt into the log's state: it lies below the sync point, or the scan would have met
// it. Other errors pass.
func (r *recovery) meet(err error) error {
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) {
		return err
	}
	if r.damaged == nil {
		r.damaged = corrupt
	}
	return nil
}

// dropCaches deletes caches that cannot be used, and those that speak of more than the log holds: appends would make them look valid again.
func (r *recovery) dropCaches(snapshots, unusable []kafka.Offset, epochsAhead bool) error {
	if r.damaged != nil {
		return nil
	}
	var names []string
	for _, at := range snapshots {
		if at > r.at || slices.Contains(unusable, at) {
			names = append(names, offsetName(at, producersSuffix))
		}
	}
	if epochsAhead {
		names = append(names, epochsFile)
	}
	if r.staleIndex {
		names = append(names, offsetName(r.segments[len(r.segments)-1].base, indexSuffix))
	}
	for _, name := range names {
		if err := removeIfThere(r.l.dir.fs, filepath.Join(r.l.path, name)); err != nil {
			return err
		}
	}
	if len(names) > 0 {
		return r.l.dir.fs.SyncDir(r.l.path)
	}
	return nil
}

// loadActiveIndex reads the last segment's index file; it may stand for a part of the segment only.
func (r *recovery) loadActiveIndex(s *segment) (x *index, pos int64, at kafka.Offset) {
	if r.ls.indexed[s.base] {
		b, err := sys.ReadFile(r.l.dir.fs, s.beside(indexSuffix), cacheFileMax)
		if err == nil {
			x, ext, bad := decodeIndex(b)
			if bad == nil && ext.base == s.base && ext.size <= s.size && ext.end <= s.end && (ext.size == s.size) == (ext.end == s.end) {
				return x, ext.size, ext.end
			}
			if bad == nil {
				bad = fmt.Errorf("it is for offsets %d to %d in %d bytes, the segment has %d to %d in %d", ext.base, ext.end, ext.size, s.base, s.end, s.size)
			}
			r.staleIndex = true
			r.l.dir.log.Warn("an index does not fit its segment and is rebuilt", "file", s.beside(indexSuffix), "error", bad)
		}
	}
	return newIndex(r.l.mu.opts.IndexInterval), 0, s.base
}

// indexRest walks the rest of the last segment into its index.
func (l *Log) indexRest(s *segment, x *index, from int64) error {
	l.mu.Lock()
	f, err := l.pinLocked(s)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = walkInto(x, f, from, s.size, s.times.lastAppendMs)
	l.mu.Lock()
	l.unpinLocked(s)
	l.mu.Unlock()
	return asCorrupt(s.path, err)
}

// replay calls visit for the batches of [from, to), headers only, with an append time that is never too early. A batch that visit has
// something against is damage.
func (l *Log) replay(from, to kafka.Offset, visit func(h BatchHeader, atMs int64) (wrong string)) error {
	for from < to {
		l.mu.Lock()
		s := l.mu.segments[l.findLocked(from)]
		f, err := l.pinLocked(s)
		size, end := s.size, s.end
		times := l.timesLocked(s)
		l.mu.Unlock()
		if isMissing(err) {
			return &CorruptError{File: s.path, Why: "the segment's file is missing"}
		}
		if err != nil {
			return err
		}
		err = walkRange(f, size, from, to, func(h BatchHeader) string { return visit(h, times.lastAppendMs) })
		l.mu.Lock()
		l.unpinLocked(s)
		l.mu.Unlock()
		if err != nil {
			return asCorrupt(s.path, err)
		}
		if end <= from {
			return &CorruptError{File: s.path, Pos: size, Why: fmt.Sprintf("the segment ends at offset %d, want more than %d", end, from)}
		}
		from = end
	}
	return nil
}

// walkRange visits the batches of a segment that begin in [from, to).
func walkRange(f io.ReaderAt, size int64, from, to kafka.Offset, visit func(BatchHeader) (wrong string)) error {
	w := newWalker(f, 0, size, kafka.NoOffset)
	defer w.release()
	for {
		h, pos, err := w.next()
		if errors.Is(err, io.EOF) || (err == nil && h.Base >= to) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Base < from {
			continue
		}
		if wrong := visit(h); wrong != "" {
			return &badBatch{pos: pos, kind: badInvalid, why: wrong}
		}
	}
}
