package storage

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

// listing is what a log's directory holds.
type listing struct {
	segments  []*segment // in order; size and modification time from the directory, end unset
	modified  map[*segment]time.Time
	snapshots []kafka.Offset // of producer snapshots, in order
	resetting bool
	// compacting: a compacted segment was taking the place of others.
	compacting bool
	stale      []string // unfinished writes, and caches without a segment
	indexed    map[kafka.Offset]bool
	bare       bool // there is no file of a log
}

// open brings the log back. p is its entry in the sync-point file, if known. Only the file system's errors are returned, and then
// nothing of the log is left open: damage is a state of the log.
func (l *Log) open(p point, known bool) error {
	if err := l.find(p, known); err != nil {
		l.abandon()
		return err
	}
	l.keepJudgement()
	return nil
}

// find is open without keeping what it found.
func (l *Log) find(p point, known bool) error {
	if err := l.dir.gone(); err != nil {
		return err // or MkdirAll would make the whole directory anew
	}
	if err := l.dir.fs.MkdirAll(l.path, 0o700); err != nil {
		return err
	}
	ls, err := l.list()
	if err != nil {
		return err
	}
	if ls.resetting {
		// A reset was under way: nothing of the old log counts.
		start, err := l.finishReset(p.policy)
		if err != nil {
			return err
		}
		if start >= 0 {
			p, known = point{policy: p.policy, start: start, hw: start, end: start, segment: start, firstBase: start}, true
			l.mu.opts.Start = start
		}
		if ls, err = l.list(); err != nil {
			return err
		}
	}
	if ls.compacting {
		if err := l.resumeSwap(); err != nil {
			return err
		}
		if ls, err = l.list(); err != nil {
			return err
		}
	}
	for _, name := range ls.stale {
		if err := removeIfThere(l.dir.fs, filepath.Join(l.path, name)); err != nil {
			return err
		}
	}
	marker, err := readDamage(l.dir.fs, l.path)
	if err != nil {
		return err
	}
	if len(ls.segments) == 0 {
		l.mu.caches.whole = ls.bare // else what is there is replaced
		return l.openEmpty(p, known, marker)
	}
	r := newRecovery(l, ls, p, known)
	if err := r.run(marker); err != nil {
		return err
	}
	if known && p.start > r.at && r.damaged == nil {
		// The start was raised past bytes that a power cut took: nothing is left, and a start never moves back (P19).
		if err := r.keepProducers(p.start); err != nil {
			return err
		}
		if err := sys.WriteFileAtomic(l.dir.fs, filepath.Join(l.path, resettingFile), encodeResetting(p.start)); err != nil {
			return err
		}
		return l.find(p, known)
	}
	return r.finish()
}

func (l *Log) list() (*listing, error) {
	names, err := l.dir.fs.ReadDir(l.path)
	if err != nil {
		return nil, err
	}
	ls := &listing{modified: map[*segment]time.Time{}, indexed: map[kafka.Offset]bool{}, bare: true}
	bases := map[kafka.Offset]bool{}
	kept := false
	for _, e := range names {
		if base, ok := parseOffsetName(e.Name, logSuffix); ok {
			s := newSegment(l.path, base)
			s.size = e.Size
			ls.segments, ls.modified[s], bases[base] = append(ls.segments, s), e.ModTime, true
		}
	}
	for _, e := range names {
		ls.bare = ls.bare && !isLogFile(strings.TrimSuffix(e.Name, tempSuffix))
		if temp, ok := strings.CutSuffix(e.Name, tempSuffix); ok && isLogFile(temp) {
			ls.stale = append(ls.stale, e.Name)
			continue
		}
		if base, ok := parseOffsetName(e.Name, metaSuffix); ok && !bases[base] {
			ls.stale = append(ls.stale, e.Name)
		}
		if base, ok := parseOffsetName(e.Name, indexSuffix); ok {
			if ls.indexed[base] = bases[base]; !bases[base] {
				ls.stale = append(ls.stale, e.Name)
			}
		}
		if at, ok := parseOffsetName(e.Name, producersSuffix); ok {
			ls.snapshots = append(ls.snapshots, at)
		}
		if _, ok := parseOffsetName(e.Name, cleanedSuffix); ok {
			ls.stale = append(ls.stale, e.Name)
		}
		ls.resetting = ls.resetting || e.Name == resettingFile
		ls.compacting = ls.compacting || e.Name == compactingFile
		kept = kept || e.Name == keptFile
	}
	if kept && !ls.resetting {
		ls.stale = append(ls.stale, keptFile)
	}
	return ls, nil
}

// finishReset repeats what Reset does after its intent. An intent that cannot be read says nothing and is removed: what a half
// done reset left is then found as damage. It returns the new start, or -1.
func (l *Log) finishReset(policy FlushPolicy) (kafka.Offset, error) {
	intent := filepath.Join(l.path, resettingFile)
	start := kafka.NoOffset
	if b, err := sys.ReadFile(l.dir.fs, intent, stateFileMax); err == nil {
		if at, err := decodeResetting(b); err == nil {
			start = at
		}
	}
	if start >= 0 {
		if err := errors.Join(l.wipe(), l.restoreState(start)); err != nil {
			return start, err
		}
		if err := removeIfThere(l.dir.fs, filepath.Join(l.path, damagedFile)); err != nil {
			return start, err
		}
		l.mu.Lock()
		s, err := l.createSegmentLocked(start)
		if err == nil {
			err = s.file.Close()
			l.dir.openFiles.closed()
		}
		l.mu.Unlock()
		if err := errors.Join(err, l.dir.fs.SyncDir(l.path)); err != nil {
			return start, err
		}
		// The entry of before the reset must not be believed once the intent is gone.
		l.dir.setPoint(l.tp, point{policy: policy, start: start, hw: start, end: start, segment: start, firstBase: start})
		if err := l.dir.save(); err != nil {
			return start, err
		}
	}
	if err := errors.Join(removeIfThere(l.dir.fs, intent), l.dir.fs.SyncDir(l.path)); err != nil {
		return start, err
	}
	return start, removeIfThere(l.dir.fs, filepath.Join(l.path, keptFile))
}

// setPoint replaces the entry of a log that is being opened.
func (d *Dir) setPoint(tp kafka.TopicPartition, p point) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.points[tp] = p
}

// openEmpty opens a directory without segments: a new log, one whose first file a crash took along, or one whose files are gone. What was
// promised, or damaged, does not come back empty (I4).
func (l *Log) openEmpty(p point, known bool, marker *CorruptError) error {
	start, hw := l.mu.opts.Start, l.mu.opts.Start
	policy := l.dir.policyOf(p, known)
	if known {
		start, hw = max(p.start, p.end), max(p.start, min(p.hw, p.end))
		switch {
		case marker != nil:
		case p.end > p.start:
			marker = &CorruptError{File: l.path, Why: "all segments are missing"}
		case p.damaged:
			marker = &CorruptError{File: l.path, Why: damagedBefore}
		}
	}
	if marker != nil && known {
		start = p.start // nothing of it can be served
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := newSegment(l.path, start)
	s.timesKnown, s.index = true, newIndex(l.mu.opts.IndexInterval)
	if marker == nil {
		var err error
		if s, err = l.createSegmentLocked(start); err != nil {
			return err
		}
		l.closeFileLocked(s) // opened again by the first append: thousands of idle partitions hold no file
	}
	l.mu.segments = []*segment{s}
	l.mu.start, l.mu.end, l.mu.hw = start, start, min(hw, start)
	l.mu.caches.wholeAt = start
	l.mu.durable = durableEnd{end: start, segment: start, times: noTimes}
	l.mu.startSaved, l.mu.notified = start, start
	// Also a directory that was there may never have been synced by the process that made it.
	l.mu.newDir, l.mu.newNames = true, true
	l.mu.marked = known && policy == Replicated && l.mu.opts.Policy == Replicated
	l.mu.damaged = marker
	l.recovered = Recovery{SyncPointPolicy: policy, HighWatermark: l.mu.hw, Unclean: marker != nil || l.dir.mayHaveLost(policy)}
	if marker != nil {
		l.recovered.Damaged = marker
		l.dir.log.Error("log is damaged and takes no records until it is rebuilt", "log", l.tp.String(), "error", marker)
	}
	return nil
}

// mayHaveLost says whether the previous run may have lost bytes that it reported as stored under this policy (I4).
func (d *Dir) mayHaveLost(p FlushPolicy) bool { return p == Replicated && !d.isClean && !d.sameBoot() }

func (l *Log) closeLocked() {
	l.mu.closed = true
	l.beginIDsLocked(identities{})
	for _, s := range l.mu.segments {
		l.discardLocked(s)
	}
}

// abandon closes a log whose files are about to be deleted.
func (l *Log) abandon() {
	l.lockIO()
	defer l.unlockIO()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closeLocked()
}

// sortOffsets sorts and removes doubles.
func sortOffsets(os []kafka.Offset) []kafka.Offset {
	slices.Sort(os)
	return slices.Compact(os)
}
