package storage

import (
	"errors"
	"path/filepath"
	"slices"

	"strandline.dev/internal/sys"
)

// A rewritten segment takes the place of its sources in this order, so that a crash at any moment leaves the old segments or the new one:
//
//  1. the new file is written and synced under a name of its own (<base>.cleaned);
//  2. the intent is on disk: the extent and times of the new segment;
//  3. the new file is renamed over the first source, and the sync of the directory comes with the new .meta;
//  4. the first source's index and the files of the other sources go, and the directory is synced;
//  5. the intent goes.
//
// From 2 on the next start finishes it. The intent has the fields of a .meta.
const (
	compactingFile    = "compacting"
	compactingMagic   = "SLCI"
	compactingVersion = 1
)

func encodeCompacting(m segmentMeta) []byte {
	return appendFrame(nil, compactingMagic, compactingVersion, m.append)
}

func decodeCompacting(b []byte) (segmentMeta, error) {
	return decodeMetaAs(b, compactingMagic, compactingVersion)
}

func (g *rewritten) meta() segmentMeta {
	return segmentMeta{base: g.base, end: g.end, size: g.size, times: g.times}
}

// replace puts a rewritten segment in the place of its sources, if those are still what they were.
func (c *compaction) replace(g *rewritten) error {
	l := c.log
	if !g.changed() {
		return removeIfThere(l.dir.fs, g.path)
	}
	l.lockIO()
	defer l.unlockIO()
	if c.interrupted() || !l.holds(g.sources) || g.end != g.sources[len(g.sources)-1].end {
		return errors.Join(removeIfThere(l.dir.fs, g.path), errInterrupted)
	}
	intent := filepath.Join(l.path, compactingFile)
	if err := sys.WriteFileAtomic(l.dir.fs, intent, encodeCompacting(g.meta())); err != nil {
		return l.giveUpIO(intent, g.path, err)
	}
	if err := l.adoptRewritten(g); err != nil {
		return l.giveUpIO(intent, g.path, err)
	}
	if err := l.finishSwap(g.meta()); err != nil {
		// Half done: memory and disk differ, and the intent speaks of offsets that may come to mean something else.
		l.fail(err)
		return err
	}
	c.done.Before, c.done.After = c.done.Before+g.before, c.done.After+g.size
	c.done.Records, c.done.Tombstones = c.done.Records+g.records, c.done.Tombstones+g.purged
	return nil
}

// giveUpIO takes an intent back that nothing was done for.
func (l *Log) giveUpIO(intent, cleaned string, err error) error {
	if left := l.withdraw(intent); left != nil {
		l.fail(left) // the next start may carry it out
		return errors.Join(err, left)
	}
	return diskError(errors.Join(err, removeIfThere(l.dir.fs, cleaned)))
}

// holds says whether the segments are in the log, next to each other.
func (l *Log) holds(segments []*segment) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.mu.segments, segments[0])
	return i >= 0 && i+len(segments) < len(l.mu.segments) && slices.Equal(l.mu.segments[i:i+len(segments)], segments)
}

// adoptRewritten renames the file and changes the log in memory, under the lock: nobody opens the new file as the old segment. Who reads an
// old one goes on with its file.
func (l *Log) adoptRewritten(g *rewritten) error {
	s := newSegment(l.path, g.base)
	s.end, s.size, s.times, s.timesKnown, s.sealed, s.index = g.end, g.size, g.times, true, true, g.index
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.dir.fs.Rename(g.path, s.path); err != nil {
		return err
	}
	i := slices.Index(l.mu.segments, g.sources[0])
	l.mu.segments = slices.Replace(slices.Clone(l.mu.segments), i, i+len(g.sources), s)
	l.mu.size += s.size
	for _, old := range g.sources {
		l.mu.size -= old.size
		l.dropFromListsLocked(old)
		l.discardLocked(old)
	}
	l.mu.cuts++ // a read that goes from an old segment to the new one would see offsets twice
	l.mu.caches.indexes = append(l.mu.caches.indexes, s)
	l.dir.syncer.enqueueCaches(l)
	return nil
}

// finishSwap does what follows the rename. It may be repeated.
func (l *Log) finishSwap(m segmentMeta) error {
	s := newSegment(l.path, m.base)
	if err := l.dir.WithReserve(func() error { return writeSegmentMeta(l.dir.fs, s, m) }); err != nil {
		return err
	}
	if err := removeIfThere(l.dir.fs, s.beside(indexSuffix)); err != nil {
		return err
	}
	ls, err := l.list()
	if err != nil {
		return err
	}
	for _, old := range ls.segments {
		if old.base > m.base && old.base < m.end {
			if err := removeFiles(l.dir.fs, old); err != nil {
				return err
			}
		}
	}
	if err := l.dir.fs.SyncDir(l.path); err != nil {
		return err
	}
	if err := removeIfThere(l.dir.fs, filepath.Join(l.path, compactingFile)); err != nil {
		return err
	}
	return l.dir.fs.SyncDir(l.path)
}

// resumeSwap finishes, at open, what a crash cut short. An intent that cannot be read, or that fits neither file, says nothing and goes: the
// segments are then judged as they are.
func (l *Log) resumeSwap() error {
	intent := filepath.Join(l.path, compactingFile)
	b, err := sys.ReadFile(l.dir.fs, intent, stateFileMax)
	if err != nil && !errors.Is(err, sys.ErrTooLarge) {
		return err
	}
	m, err := decodeCompacting(b)
	if err == nil {
		var there bool
		if there, err = l.renameCleaned(m); err != nil {
			return err
		}
		if there {
			return l.finishSwap(m)
		}
	}
	return errors.Join(removeIfThere(l.dir.fs, intent), l.dir.fs.SyncDir(l.path))
}

// renameCleaned does the rename if it was not done or did not last; false means that the new file is nowhere.
func (l *Log) renameCleaned(m segmentMeta) (there bool, err error) {
	s := newSegment(l.path, m.base)
	names, err := l.dir.fs.ReadDir(l.path)
	if err != nil {
		return false, err
	}
	for _, e := range names {
		switch filepath.Join(l.path, e.Name) {
		case s.beside(cleanedSuffix):
			if e.Size == m.size {
				return true, l.dir.fs.Rename(s.beside(cleanedSuffix), s.path)
			}
		case s.path:
			there = e.Size == m.size
		}
	}
	return there, nil
}
