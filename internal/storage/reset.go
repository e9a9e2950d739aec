package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

const (
	resettingMagic   = "SLRS"
	resettingVersion = 1
)

func encodeResetting(start kafka.Offset) []byte {
	return appendFrame(nil, resettingMagic, resettingVersion, func(b []byte) []byte { return appendI64(b, int64(start)) })
}

func decodeResetting(b []byte) (kafka.Offset, error) {
	f, err := openFile(b, resettingMagic, resettingVersion)
	if err != nil {
		return 0, err
	}
	start := kafka.Offset(f.i64())
	if !f.done() || start < 0 {
		return 0, errBadFrame
	}
	return start, nil
}

// Reset drops everything and begins the log anew at start, in new files: after a snapshot was installed, when the leader's start
// lies above our end, or to rebuild a damaged log from a peer (I11). It clears damage and failed syncs. A crash in between is
// finished at the next open: the intent is on disk before the first file goes.
func (l *Log) Reset(start kafka.Offset) error {
	if start < 0 {
		return fmt.Errorf("%w: reset to %d", ErrOutOfRange, start)
	}
	l.lockIO()
	defer l.unlockIO()
	return l.resetIO(start, nil)
}

// resetIO is Reset for a caller that holds io. keep, if set, is the producer state that the log goes on with; it is on disk before what
// it came from goes, and stays there (I12).
func (l *Log) resetIO(start kafka.Offset, keep *producers) error {
	l.mu.Lock()
	closed := l.mu.closed
	l.mu.Unlock()
	if closed {
		return ErrClosed
	}
	if err := l.keepState(start, keep); err != nil {
		return diskError(err)
	}
	intent := filepath.Join(l.path, resettingFile)
	write := func() error { return sys.WriteFileAtomic(l.dir.fs, intent, encodeResetting(start)) }
	if err := l.dir.WithReserve(write); err != nil {
		if left := l.withdraw(intent); left != nil {
			l.fail(left) // the next start may carry the reset out, so nothing may be acknowledged before
		}
		return diskError(err)
	}
	l.forgetAll(start)
	err := l.wipe()
	if err == nil {
		err = l.restoreState(start)
	}
	if err == nil {
		err = l.beginAnew(start)
	}
	if err == nil {
		err = l.dir.mustSave()
	}
	if err == nil {
		err = removeIfThere(l.dir.fs, intent)
	}
	if err == nil {
		err = l.dir.fs.SyncDir(l.path)
	}
	if err == nil {
		err = removeIfThere(l.dir.fs, filepath.Join(l.path, keptFile))
	}
	if err != nil {
		l.fail(err)
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if keep != nil {
		l.mu.producers, l.mu.caches.saved = *keep, []kafka.Offset{start}
	}
	l.wantFlushLocked()
	return nil
}

// withdraw takes back an intent that was refused: its last step may have failed with the name in place, and the log goes on.
func (l *Log) withdraw(intent string) error {
	if there, err := sys.Exists(l.dir.fs, intent); err != nil || !there {
		return err
	}
	return errors.Join(removeIfThere(l.dir.fs, intent), l.dir.fs.SyncDir(l.path))
}

// forgetAll empties the log in memory; the one segment it leaves has no file yet.
func (l *Log) forgetAll(start kafka.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.mu.segments {
		l.discardLocked(s)
	}
	s := newSegment(l.path, start)
	s.timesKnown, s.index = true, newIndex(l.mu.opts.IndexInterval)
	l.mu.segments = []*segment{s}
	l.mu.start, l.mu.end, l.mu.hw, l.mu.size = start, start, start, 0
	l.mu.cuts++
	l.mu.resets++
	l.mu.clean = &cleanState{}
	l.mu.hints = [readHints]readHint{}
	l.mu.dirty, l.mu.unsealed, l.mu.leftover = nil, nil, nil
	l.mu.durable = durableEnd{end: start, segment: start, times: noTimes}
	l.mu.replicatedEnd = min(l.mu.replicatedEnd, start)
	l.mu.needTrim, l.mu.recovering = false, false
	l.mu.producers, l.mu.epochs = newProducers(), nil
	l.forgetIDsLocked()
	l.mu.caches = cacheWork{queued: l.mu.caches.queued, epochs: true}
	l.mu.notified = min(l.mu.notified, start)
}

// wipe deletes the log's files, also those that a damaged log did not take up, but not the intent and not the damage marker.
func (l *Log) wipe() error {
	list, err := l.dir.fs.ReadDir(l.path)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.Name == damagedFile || e.Name == resettingFile || !isLogFile(strings.TrimSuffix(e.Name, tempSuffix)) {
			continue
		}
		if err := removeIfThere(l.dir.fs, filepath.Join(l.path, e.Name)); err != nil {
			return err
		}
	}
	return l.dir.fs.SyncDir(l.path)
}

// beginAnew creates the first segment and takes the damage marker away, now that nothing damaged is left.
func (l *Log) beginAnew(start kafka.Offset) error {
	l.mu.Lock()
	s, err := l.createSegmentLocked(start)
	if err == nil {
		l.mu.segments = []*segment{s}
		l.mu.newNames = false
	}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if err := l.dir.fs.SyncDir(l.path); err != nil {
		return err
	}
	if err := removeIfThere(l.dir.fs, filepath.Join(l.path, damagedFile)); err != nil {
		return err
	}
	l.mu.Lock()
	l.mu.failed, l.mu.damaged, l.mu.failureTold = nil, nil, false
	l.mu.judged, l.mu.unmarked = nil, false
	l.mu.Unlock()
	return nil
}

// isLogFile says whether a name in the directory belongs to the log. The metadata log shares its directory with the quorum's
// files, and foreign files are left alone.
func isLogFile(name string) bool {
	switch name {
	case epochsFile, damagedFile, resettingFile, compactedFile, compactingFile:
		return true
	}
	for _, suffix := range []string{logSuffix, metaSuffix, indexSuffix, producersSuffix, cleanedSuffix} {
		if _, ok := parseOffsetName(name, suffix); ok {
			return true
		}
	}
	return false
}
