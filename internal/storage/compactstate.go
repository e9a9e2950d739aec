package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

const (
	compactedFile    = "compacted"
	compactedMagic   = "SLCP"
	compactedVersion = 1
)

// cleanMark says that at a time no record below an offset had a newer one of the same key below that offset.
type cleanMark struct {
	upTo kafka.Offset
	atMs int64
}

// cleanState is how far a log is compacted. It is a cache: a log without it is compacted from its start again, and tombstones stay longer.
//
// A tombstone goes when it has been clean for the topic's delete.retention.ms: the time is that of a mark above it, of this node's clock,
// never a timestamp of a record (C044).
type cleanState struct {
	upTo       kafka.Offset
	tombstones int64        // left below upTo by the last pass
	purged     kafka.Offset // the last pass removed the tombstones below
	marks      []cleanMark  // in order
}

// mark notes the time at which everything below upTo was clean, unless the last mark is almost as new: then a later call does.
func (c *cleanState) mark(nowMs int64, retention time.Duration) (noted bool) {
	if n := len(c.marks); c.upTo == 0 || (n > 0 && (c.marks[n-1].upTo >= c.upTo || nowMs-c.marks[n-1].atMs < retention.Milliseconds()/cleanMarksPerRetention)) {
		return false
	}
	if len(c.marks) >= cleanMarksMax {
		// Without a mark in the middle some tombstones wait for the next one.
		middle := len(c.marks) / 2
		c.marks = append(c.marks[:middle], c.marks[middle+1:]...)
	}
	c.marks = append(c.marks, cleanMark{c.upTo, nowMs})
	return true
}

// horizon is the offset below which tombstones have been clean for long enough. Marks older than the newest such say nothing more, and go.
func (c *cleanState) horizon(nowMs int64, retention time.Duration) kafka.Offset {
	old := 0
	for old < len(c.marks) && nowMs-c.marks[old].atMs >= retention.Milliseconds() {
		old++
	}
	if old == 0 {
		return 0
	}
	c.marks = c.marks[old-1:]
	return c.marks[0].upTo
}

func encodeCleanState(c cleanState) []byte {
	return appendFrame(nil, compactedMagic, compactedVersion, func(b []byte) []byte {
		b = appendI64(b, int64(c.upTo))
		b = appendI64(b, c.tombstones)
		b = appendI64(b, int64(c.purged))
		b = binary.BigEndian.AppendUint32(b, uint32(len(c.marks)))
		for _, m := range c.marks {
			b = appendI64(b, int64(m.upTo))
			b = appendI64(b, m.atMs)
		}
		return b
	})
}

func decodeCleanState(b []byte) (cleanState, error) {
	f, err := openFile(b, compactedMagic, compactedVersion)
	if err != nil {
		return cleanState{}, err
	}
	c := cleanState{upTo: kafka.Offset(f.i64()), tombstones: f.i64(), purged: kafka.Offset(f.i64())}
	count := int64(f.u32())
	if f.bad || count > cleanMarksMax || count*16 != int64(len(f.b)) || c.upTo < 0 || c.tombstones < 0 || c.purged < 0 || c.purged > c.upTo {
		return cleanState{}, fmt.Errorf("%w: a compaction state that contradicts itself", errBadFrame)
	}
	for i := range count {
		m := cleanMark{kafka.Offset(f.i64()), f.i64()}
		if m.upTo > c.upTo || (i > 0 && m.upTo <= c.marks[i-1].upTo) {
			return cleanState{}, fmt.Errorf("%w: mark %d of a compaction state is out of order", errBadFrame, i)
		}
		c.marks = append(c.marks, m)
	}
	return c, nil
}

// loadCleanIO reads the state at the log's first compaction since it was opened. The caller holds io.
func (l *Log) loadCleanIO() error {
	l.mu.Lock()
	known, end := l.mu.clean != nil, l.mu.end
	l.mu.Unlock()
	if known {
		return nil
	}
	var c cleanState
	b, err := sys.ReadFile(l.dir.fs, filepath.Join(l.path, compactedFile), stateFileMax)
	switch {
	case err == nil:
		if c, err = decodeCleanState(b); err != nil || c.upTo > end {
			l.dir.log.Warn("the state of a log's compaction cannot be used; it begins anew", "log", l.tp.String(), "error", err)
			c = cleanState{}
		}
	case !isMissing(err) && !errors.Is(err, sys.ErrTooLarge):
		return err
	}
	l.mu.Lock()
	l.mu.clean = &c
	l.mu.Unlock()
	return nil
}

// saveCleanIO writes the state; after an error the file on disk says less than is true.
func (l *Log) saveCleanIO(c cleanState) error {
	l.mu.Lock()
	l.mu.clean = &c
	l.mu.Unlock()
	return diskError(sys.WriteFileAtomic(l.dir.fs, filepath.Join(l.path, compactedFile), encodeCleanState(c)))
}

// forgetCleanIO makes sure that the state on disk says nothing about offsets from end on: others may be appended there.
func (l *Log) forgetCleanIO(end kafka.Offset) error {
	if err := l.loadCleanIO(); err != nil {
		return err
	}
	l.mu.Lock()
	c := *l.mu.clean
	l.mu.Unlock()
	if c.upTo <= end {
		return nil
	}
	if err := removeIfThere(l.dir.fs, filepath.Join(l.path, compactedFile)); err != nil {
		return err
	}
	if err := l.dir.fs.SyncDir(l.path); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.clean = &cleanState{}
	return nil
}
