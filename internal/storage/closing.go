package storage

import (
	"errors"
	"path/filepath"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

// closing is a log on its way out: synced and closed, its caches written but not in place yet. It stays in the directory's table until
// they are, so that nobody opens it meanwhile.
type closing struct {
	log     *Log
	files   []cacheFile
	point   point
	flushed bool
}

// CloseLogs closes logs of this directory together. Each is synced by itself; then the caches of all that changed since theirs were written
// are made durable at once, so a log that nobody wrote to costs nothing (A5). The result has one error for each log, as Log.Close.
//
// hw, which may be nil, gives the high watermark known for a partition, or NoOffset.
func (d *Dir) CloseLogs(logs []*Log, hw func(kafka.TopicPartition) kafka.Offset) []error {
	for _, l := range logs {
		if hw != nil {
			l.raiseHighWatermark(hw(l.tp))
		}
		l.mu.Lock()
		l.wantFlushLocked() // the syncer takes those that are dirty together
		l.mu.Unlock()
	}
	errs := make([]error, len(logs))
	// A descriptor of its own: the kernel tells each error once a descriptor, and the syncer must hear of those of log bytes (I11).
	batch := sys.NewFileBatch(d.fs, filepath.Join(d.path, topicsDir))
	var failed cacheFailures
	ends := make([]*closing, 0, len(logs))
	for i, l := range logs {
		var c *closing
		if c, errs[i] = l.beginClose(batch, &failed); c != nil {
			ends = append(ends, c)
		}
	}
	missing := map[string]bool{}
	batch.Commit(func(name string, err error) {
		missing[name] = true
		failed.add(name, err)
	})
	failed.tell(d.log)
	for _, c := range ends {
		c.end(missing)
	}
	return errs
}

// beginClose syncs the log, writes the caches that are due to the batch and gives up the log's files. It returns nil when the log was
// closed before; otherwise the log is closed, whatever the error says.
func (l *Log) beginClose(batch *sys.FileBatch, failed *cacheFailures) (*closing, error) {
	syncErr := l.Sync()
	if errors.Is(syncErr, ErrClosed) {
		return nil, ErrClosed
	}
	l.lockIO()
	defer l.unlockIO()
	l.remarkIO()
	l.mu.Lock()
	if l.mu.closed {
		l.mu.Unlock()
		return nil, ErrClosed
	}
	c := &l.mu.caches
	c.checkpoint = c.checkpoint || !c.standFor(l.mu.end)
	files := l.dueCachesLocked()
	l.mu.Unlock()
	out := &closing{log: l, files: make([]cacheFile, 0, len(files))}
	for _, f := range files {
		if err := batch.Write(f.path, f.content); err != nil {
			failed.add(f.path, err)
			continue
		}
		f.content = nil
		out.files = append(out.files, f)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out.flushed = syncErr == nil && l.refusalLocked() == nil && l.mu.durable.end == l.mu.end && len(l.mu.unsealed) == 0
	out.point = l.pointLocked()
	l.closeLocked()
	return out, syncErr
}

// end finishes the closing once the batch is on disk, but for the files that are missing there.
func (c *closing) end(missing map[string]bool) {
	l := c.log
	l.mu.Lock()
	for _, f := range c.files {
		if !missing[f.path] {
			f.done()
		}
	}
	l.mu.Unlock()
	if len(c.files) > 0 {
		l.trimSnapshots()
	}
	l.dir.forget(l, c.point, c.flushed)
}

// Close syncs the log, writes its caches, and gives up its files. It returns ErrSyncFailed or *CorruptError when not everything
// is on disk; the log is closed anyway.
func (l *Log) Close() error { return l.dir.CloseLogs([]*Log{l}, nil)[0] }
