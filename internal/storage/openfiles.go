package storage

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// openFiles counts the open segment files of a directory and keeps them below a bound (C090): a process has only so many descriptors,
// connections need them too, and a log that cannot open its file serves nobody.
//
// A file is opened when it is first needed. A clean one is closed when nobody has used it for a while (Log.closeIdle), and at once when
// its user is done while there are many (crowded). A dirty one stays open until it is synced (I11), so while there are many, what is
// written is synced soon whatever the policy, and while there are too many (full), new appends wait for a sync round.
type openFiles struct {
	atomic.Int64
	max int64

	mu struct {
		sync.Mutex
		freed chan struct{} // closed when the directory is not full any more; nil while nobody waits
	}
	// hurried is closed by HurryFiles.
	hurried chan struct{}
	hurry   sync.Once
}

// crowded: files are closed as soon as they may be.
func (f *openFiles) crowded() bool { return f.Load() > f.max/2 }

// full: appends wait. The last quarter is for the sync round, which opens what an earlier process left unsynced.
func (f *openFiles) full() bool { return f.Load() >= f.max-f.max/4 }

// roundMax is the number of logs in one sync round.
func (f *openFiles) roundMax() int { return int(max(1, f.max/4)) }

// closed counts a file that was closed.
func (f *openFiles) closed() {
	f.Add(-1)
	if f.full() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.freed != nil {
		close(f.mu.freed)
		f.mu.freed = nil
	}
}

// AwaitFiles waits, no longer than filesWaitMax, while too many segment files are open; then it is ErrTooManyFiles. Whoever is about to
// append calls it first, holding no lock.
func (d *Dir) AwaitFiles() error {
	f := &d.openFiles
	if !f.full() {
		return nil
	}
	late := time.NewTimer(filesWaitMax)
	defer late.Stop()
	for {
		f.mu.Lock()
		if f.mu.freed == nil {
			f.mu.freed = make(chan struct{})
		}
		freed := f.mu.freed
		f.mu.Unlock()
		if !f.full() { // looked at after freed is there, or the last close could be missed
			return nil
		}
		select {
		case <-freed:
		case <-f.hurried:
			return fmt.Errorf("%w: %d of at most %d, and the directory is about to be closed", ErrTooManyFiles, f.Load(), f.max)
		case <-late.C:
			return fmt.Errorf("%w: %d of at most %d, for %v", ErrTooManyFiles, f.Load(), f.max, filesWaitMax)
		}
	}
}

// HurryFiles ends the waits of AwaitFiles, now and from now on: a stop is not to wait for room that it will not use.
func (d *Dir) HurryFiles() { d.openFiles.hurry.Do(func() { close(d.openFiles.hurried) }) }

// CloseIdle closes the files that nobody has used for idleSweeps calls. SavePoints does it too; the owner calls this one when there are no
// points to save.
func (d *Dir) CloseIdle() {
	if d.openFiles.Load() == 0 {
		return
	}
	for _, l := range d.openLogs() {
		l.mu.Lock()
		l.closeIdleLocked()
		l.mu.Unlock()
	}
}

// closeIdleLocked is the log's part of CloseIdle. The index of a sealed segment goes with its file.
func (l *Log) closeIdleLocked() {
	if l.mu.closed {
		return
	}
	for i, s := range l.mu.segments {
		if s.idle++; s.idle > idleSweeps {
			l.closeFileLocked(s)
			if s.indexed && i < len(l.mu.segments)-1 && s.pins == 0 {
				s.index = nil
			}
		}
	}
}
