package storage

import (
	"errors"
	"fmt"
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
	bytes    int64 // what is to be synced
	newNames bool
	newDir   bool
}

// beginFlush takes the log's io and collects what to sync. It returns nil, without io, when there is nothing to do.
func (l *Log) beginFlush() *flushJob {
	l.lockIO()
	l.mu.Lock()
	j, err := l.collectLocked()
	l.mu.Unlock()
	if err != nil && !l.postpone(err) {
		// A file that this process has written stays open until it is synced. The bytes of an earlier one cannot be vouched for.
		l.fail(err)
	}
	if err != nil {
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
		j.segments, j.files, j.bytes = append(j.segments, s), append(j.files, f), j.bytes+s.size
		if s.base == l.mu.durable.segment {
			j.bytes -= l.mu.durable.pos
		}
	}
	for _, s := range j.segments { // not before all are there: a clean file may be closed
		s.dirty = false
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
// which is written whole again, may wait for room, and a sync that was not begun, for want of a descriptor, is none that failed.
// The result is that error which is not final.
func (j *flushJob) end(err error) (notYet error) {
	l := j.log
	if err == nil && j.newNames {
		err = l.dir.fs.SyncDir(l.path)
	}
	sealed, short := 0, false
	if err == nil {
		sealed, err = j.seal()
		short = isNoSpace(err)
	}
	notBegun := sys.IsTooManyFiles(err)
	l.mu.Lock()
	j.releaseLocked()
	for _, s := range j.seals[:sealed] {
		s.sealed = true
	}
	l.mu.unsealed = append(l.mu.unsealed[:0:0], l.mu.unsealed[sealed:]...)
	switch {
	case err == nil:
		l.mu.durable, l.mu.recovering = j.target, false
	case notBegun:
		// The files are synced. The job that follows has their names and .meta before it, whatever it finds dirty.
		l.mu.newNames, l.mu.newDir = l.mu.newNames || j.newNames, l.mu.newDir || j.newDir
	case short:
		// What lies before that .meta is on disk, and so are the names.
		if s, m := j.seals[sealed], j.metas[sealed]; s.end > l.mu.durable.end {
			l.mu.durable = durableEnd{end: m.end, segment: m.base, pos: m.size, times: m.times}
		}
	}
	l.mu.Unlock()
	switch {
	case l.postpone(err), short:
		notYet = err
	case err != nil:
		l.fail(err)
	}
	l.unlockIO()
	return notYet
}

// postpone has a sync tried again in a while, if it could not be begun for want of a file descriptor: nothing was lost by that, as by a
// sync that failed. It says whether that is so.
func (l *Log) postpone(err error) bool {
	if !sys.IsTooManyFiles(err) {
		return false
	}
	l.dir.log.Warn("a sync waits for a file descriptor", "log", l.tp.String(), "error", err)
	time.AfterFunc(postponedPause, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wantFlushLocked()
	})
	return true
}

// decisive is the error that decides: of two, the one that is not merely a want of file descriptors.
func decisive(a, b error) error {
	switch {
	case a == nil, b != nil && sys.IsTooManyFiles(a) && !sys.IsTooManyFiles(b):
		return b
	case b == nil, sys.IsTooManyFiles(b):
		return a
	}
	return errors.Join(a, b)
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
	var notYet error
	if j := l.beginFlush(); j != nil {
		began := time.Now()
		var err error
		for _, f := range j.files {
			err = errors.Join(err, f.Sync())
		}
		if j.newDir {
			err = decisive(err, l.dir.syncParent(l.tp))
		}
		l.dir.metrics.Fsync.Observe(time.Since(began).Seconds())
		notYet = j.end(err)
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
	if sys.IsTooManyFiles(notYet) {
		return fmt.Errorf("sync of %s: %w", l.path, notYet)
	}
	if len(l.mu.unsealed) > 0 && l.mu.durable.end <= l.mu.unsealed[0].end {
		return ErrNoSpace
	}
	return nil
}
