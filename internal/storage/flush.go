package storage

import (
	"errors"
	"path/filepath"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

// flushJob makes one log durable up to the end it had when the job began. It holds the log's io from begin to end.
type flushJob struct {
	log      *Log
	segments []*segment // pinned
	files    []sys.File // of segments
	seals    []*segment // rolled segments whose .meta is due
	metas    []segmentMeta
	target   durableEnd
	newNames bool
	newDir   bool
}

// beginFlush takes the log's io and collects what to sync. It returns nil, without io, when there is nothing to do.
func (l *Log) beginFlush() *flushJob {
	l.lockIO()
	l.mu.Lock()
	j, err := l.collectLocked()
	l.mu.Unlock()
	if err != nil {
		// A dirty file stays open, so this cannot be; if it is, nothing vouches for its bytes.
		l.fail(err)
		l.unlockIO()
		return nil
	}
	if j == nil {
		l.unlockIO()
	}
	return j
}

func (l *Log) collectLocked() (*flushJob, error) {
	if l.mu.closed || !l.flushableLocked() {
		return nil, nil
	}
	active := l.activeLocked()
	j := &flushJob{log: l, newNames: l.mu.newNames, newDir: l.mu.newDir}
	j.target = durableEnd{end: l.mu.end, segment: active.base, pos: active.size, times: active.times}
	for _, s := range l.mu.dirty {
		f, err := l.pinLocked(s)
		if err != nil {
			j.releaseLocked()
			return nil, err
		}
		s.dirty = false
		j.segments, j.files = append(j.segments, s), append(j.files, f)
	}
	l.mu.dirty = l.mu.dirty[:0]
	for _, s := range l.mu.unsealed {
		j.seals = append(j.seals, s)
		j.metas = append(j.metas, segmentMeta{base: s.base, end: s.end, size: s.size, times: s.times})
	}
	l.mu.newNames, l.mu.newDir = false, false
	return j, nil
}

func (j *flushJob) releaseLocked() {
	for _, s := range j.segments {
		j.log.unpinLocked(s)
	}
}

// end finishes the job: err is what syncing the files said. Order matters: the bytes, then the names of their files, then the
// .meta of a rolled segment, and only then does anything behind it count as stored. A failed sync of bytes or names is final
// (I11), also one that says that the disk is full: file systems that give out blocks late do, and drop the pages. Only a .meta,
// which is written whole again, may wait for room.
func (j *flushJob) end(err error) {
	l := j.log
	if err == nil && j.newNames {
		err = l.dir.fs.SyncDir(l.path)
	}
	sealed, short := 0, false
	if err == nil {
		sealed, err = j.seal()
		short = isNoSpace(err)
	}
	l.mu.Lock()
	j.releaseLocked()
	for _, s := range j.seals[:sealed] {
		s.sealed = true
	}
	l.mu.unsealed = append(l.mu.unsealed[:0:0], l.mu.unsealed[sealed:]...)
	switch {
	case err == nil:
		l.mu.durable, l.mu.recovering = j.target, false
	case short:
		// What lies before that .meta is on disk, and so are the names.
		if s, m := j.seals[sealed], j.metas[sealed]; s.end > l.mu.durable.end {
			l.mu.durable = durableEnd{end: m.end, segment: m.base, pos: m.size, times: m.times}
		}
	}
	l.mu.Unlock()
	if err != nil && !short {
		l.fail(err)
	}
	l.unlockIO()
}

// seal writes the .meta files and returns how many segments were sealed.
func (j *flushJob) seal() (int, error) {
	l := j.log
	for i, s := range j.seals {
		seal := func() error { return writeSegmentMeta(l.dir.fs, s, j.metas[i]) }
		err := seal()
		if err != nil && l.madeRoom(err) {
			err = seal()
		}
		if err != nil {
			return i, err
		}
	}
	return len(j.seals), nil
}

// syncParent makes a new log's directory itself durable.
func (d *Dir) syncParent(tp kafka.TopicPartition) error {
	if tp == kafka.MetadataPartition {
		return d.fs.SyncDir(d.path)
	}
	return d.fs.SyncDir(filepath.Join(d.path, topicsDir))
}

// Sync makes the log durable up to its end, on the caller's goroutine. Errors: ErrSyncFailed, final (I11); ErrNoSpace when a
// full disk kept a rolled segment from being sealed; ErrClosed; *CorruptError on a damaged log.
func (l *Log) Sync() error {
	if j := l.beginFlush(); j != nil {
		began := time.Now()
		var err error
		if j.newDir {
			err = l.dir.syncParent(l.tp)
		}
		for _, f := range j.files {
			err = errors.Join(err, f.Sync())
		}
		l.dir.metrics.Fsync.Observe(time.Since(began).Seconds())
		j.end(err)
		if !l.grouped {
			l.tellStored()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grouped && l.storedLocked() != l.mu.notified {
		l.notifyLocked()
	}
	if err := l.writableLocked(); err != nil {
		return err
	}
	if len(l.mu.unsealed) > 0 && l.mu.durable.end <= l.mu.unsealed[0].end {
		return ErrNoSpace
	}
	return nil
}
