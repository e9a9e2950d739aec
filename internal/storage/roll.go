package storage

import (
	"errors"
	"os"
	"path/filepath"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

// cacheWork is what is to be written to cache files, by the syncer between rounds.
type cacheWork struct {
	queued bool
	epochs bool // the epochs file is out of date
	// indexes are sealed segments without an index file.
	indexes []*segment
	// snapshots are producer snapshots encoded at rolls and not written yet.
	snapshots []producerSnapshot
	// checkpoint asks for the caches of the log's end.
	checkpoint bool
	grown      int64 // bytes appended since the last checkpoint
	// saved are the offsets of the producer snapshots on disk, in order.
	saved []kafka.Offset
	// whole says that the files on disk stand for the log up to wholeAt: while that is its end, a stop writes none of them again.
	whole   bool
	wholeAt kafka.Offset
}

// standFor says that the cache files on disk are those of a log that ends there.
func (c *cacheWork) standFor(end kafka.Offset) bool { return c.whole && c.wholeAt == end }

// agedLocked says that a segment is due by its age.
func (l *Log) agedLocked(s *segment, nowMs int64) bool {
	age := l.mu.opts.SegmentAge
	return age > 0 && s.times.firstAppendMs > 0 && nowMs-s.times.firstAppendMs >= age.Milliseconds()
}

// rollLocked starts a new segment at the log's end. It creates one file; its name, the old segment's bytes and .meta are made
// durable by the next flush, and nothing in the new segment counts as stored before that.
func (l *Log) rollLocked() error {
	if err := l.trimLocked(); err != nil {
		return err
	}
	old := l.activeLocked()
	s, err := l.createSegmentLocked(l.mu.end)
	if err != nil {
		return err
	}
	l.mu.segments = append(l.mu.segments, s)
	l.mu.unsealed = append(l.mu.unsealed, old)
	c := &l.mu.caches
	c.indexes = append(c.indexes, old)
	l.mu.producers.expire(old.times.lastAppendMs, l.mu.opts.ProducerExpiry)
	l.snapshotLocked()
	c.epochs = true
	l.dir.syncer.enqueueCaches(l)
	l.wantFlushLocked()
	return nil
}

// createSegmentLocked makes an empty segment file. A file of that name can only be the leftover of a crash that recovery has
// judged; O_TRUNC makes sure.
func (l *Log) createSegmentLocked(base kafka.Offset) (*segment, error) {
	s := newSegment(l.path, base)
	f, err := l.dir.fs.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, diskError(err)
	}
	s.file, s.timesKnown = f, true
	s.index = newIndex(l.mu.opts.IndexInterval)
	l.dir.openFiles.Add(1)
	l.mu.newNames = true
	return s, nil
}

// writeCaches is writeCachesFor one log.
func (l *Log) writeCaches() {
	var failed cacheFailures
	l.writeCachesFor(&failed)
	failed.tell(l.dir.log)
}

// writeCachesFor writes the cache files that are due. Failures are collected for the log line: recovery rebuilds what is missing, except
// producer state whose batches are gone. So a snapshot that could not be written is written again, as of then, by housekeeping (C048).
func (l *Log) writeCachesFor(failed *cacheFailures) {
	l.lockIO()
	defer l.unlockIO()
	l.mu.Lock()
	l.mu.caches.queued = false
	closed := l.mu.closed
	l.mu.Unlock()
	if !closed {
		_ = l.writeCachesTo(failed)
	}
}

// cacheFile is one file to write.
type cacheFile struct {
	path    string
	content []byte
	done    func()
	// needed: it is written again if this fails.
	needed bool
}

// writeCachesIO is writeCaches for a caller that holds io. Its error says why producer state is not on disk.
func (l *Log) writeCachesIO() error {
	var failed cacheFailures
	defer failed.tell(l.dir.log)
	return l.writeCachesTo(&failed)
}

func (l *Log) writeCachesTo(failed *cacheFailures) (unsaved error) {
	l.mu.Lock()
	checkpoint, end := l.mu.caches.checkpoint, l.mu.end
	files := l.dueCachesLocked()
	l.mu.Unlock()
	checkpoint = checkpoint && len(files) > 0 // a damaged log writes none
	complete := true
	for _, f := range files {
		if err := sys.WriteFileAtomic(l.dir.fs, f.path, f.content); err != nil {
			complete = false
			failed.add(f.path, err)
			if f.needed {
				unsaved = errors.Join(unsaved, err)
			}
			continue
		}
		l.mu.Lock()
		f.done()
		l.mu.Unlock()
	}
	l.mu.Lock()
	switch c := &l.mu.caches; {
	case !complete:
		c.whole, c.checkpoint = false, c.checkpoint || unsaved != nil
	case checkpoint:
		c.whole, c.wholeAt = true, end
	}
	l.mu.Unlock()
	l.trimSnapshots()
	return unsaved
}

func (l *Log) dueCachesLocked() []cacheFile {
	c := &l.mu.caches
	// A damaged log's files stay as they are, for whoever looks into it.
	if l.refusalLocked() != nil {
		*c = cacheWork{saved: c.saved}
		return nil
	}
	var files []cacheFile
	for _, s := range c.indexes {
		files = appendIndexFile(files, s)
	}
	c.indexes = nil
	if c.checkpoint {
		c.checkpoint, c.grown, c.epochs = false, 0, true
		files = appendIndexFile(files, l.activeLocked())
		l.snapshotLocked()
	}
	for _, s := range c.snapshots {
		files = append(files, l.snapshotFileLocked(s.content, s.at))
	}
	c.snapshots = nil
	if c.epochs {
		c.epochs = false
		files = append(files, cacheFile{filepath.Join(l.path, epochsFile), encodeEpochs(l.mu.epochs, l.mu.end), func() {}, false})
	}
	return files
}

// producerSnapshot is the content of a snapshot file for an offset.
type producerSnapshot struct {
	at      kafka.Offset
	content []byte
}

// snapshotLocked has the producer state at the log's end written.
func (l *Log) snapshotLocked() {
	c := &l.mu.caches
	c.snapshots = append(c.snapshots, producerSnapshot{l.mu.end, encodeProducers(&l.mu.producers, l.mu.end)})
}

func (l *Log) snapshotFileLocked(content []byte, at kafka.Offset) cacheFile {
	return cacheFile{filepath.Join(l.path, offsetName(at, producersSuffix)), content, func() {
		saved := l.mu.caches.saved
		for len(saved) > 0 && saved[len(saved)-1] >= at {
			saved = saved[:len(saved)-1]
		}
		l.mu.caches.saved = append(saved, at)
	}, true}
}

func appendIndexFile(files []cacheFile, s *segment) []cacheFile {
	if s.gone || s.index == nil || s.size == 0 {
		return files
	}
	return append(files, cacheFile{s.beside(indexSuffix), encodeIndex(s.index, s.base, s.end, s.size), func() { s.indexed = true }, false})
}

// trimSnapshots deletes the producer snapshots that nothing falls back to. The one at each segment's beginning stays, so that a
// truncation finds the state of producers whose batches are gone; of the others the newest few.
func (l *Log) trimSnapshots() {
	l.mu.Lock()
	bases := make(map[kafka.Offset]bool, len(l.mu.segments))
	for _, s := range l.mu.segments {
		bases[s.base] = true
	}
	saved := l.mu.caches.saved
	others := 0
	for _, at := range saved {
		if !bases[at] {
			others++
		}
	}
	var old, kept []kafka.Offset
	for _, at := range saved {
		if !bases[at] && others > snapshotsKept {
			others--
			old = append(old, at)
		} else {
			kept = append(kept, at)
		}
	}
	l.mu.caches.saved = kept
	l.mu.Unlock()
	for _, at := range old {
		if err := removeIfThere(l.dir.fs, filepath.Join(l.path, offsetName(at, producersSuffix))); err != nil {
			l.dir.log.Warn("an old producer snapshot could not be removed", "log", l.tp.String(), "error", err)
		}
	}
}

// housekeep is the log's part of SavePoints: lazy syncs, checkpoints, idle file handles.
func (l *Log) housekeep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		return
	}
	l.wantFlushLocked()
	if c := &l.mu.caches; l.refusalLocked() == nil && (c.epochs || c.checkpoint || c.grown > checkpointBytes) {
		c.checkpoint = c.checkpoint || c.grown > checkpointBytes
		l.dir.syncer.enqueueCaches(l)
	}
	l.closeIdleLocked()
}
