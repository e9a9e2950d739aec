package quorum

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
)

// logCopy is the second copy of the log's newest entries. Whatever is answered is in both files, so one that is damaged after a
// kill is made whole from the other (mend.go). It holds at least every entry behind the newest snapshot.
//
// Only the append goroutine uses it, but for sync, which runs beside the log's own.
type logCopy struct {
	fs   sys.FS
	name string
	file sys.File
	// first is the index of the first entry that can be in the file, end that of the next one.
	first, end uint64
	// size is where the next entry goes. There may be bytes of a refused write behind it: ragged says so.
	size   int64
	ragged bool
	buf    []byte
}

// startCopy puts the entries of a log from first on under the copy's name, whatever was there: its last sync may have failed in an
// earlier process, and then nobody knows what is on the disk (I11).
func startCopy(fsys sys.FS, dir string, log *storage.Log, first uint64) (*logCopy, error) {
	c := &logCopy{fs: fsys, name: filepath.Join(dir, copyFileName)}
	return c, c.restart(log, first)
}

// restart lets the copy begin at first, with what the log holds from there on. The old file or the new one is in place at any
// moment, and either holds every entry from first on. After an error for which noSpace is true the old one goes on being used; any
// other is final.
func (c *logCopy) restart(log *storage.Log, first uint64) error {
	b, end, err := copyOf(log, first)
	if err != nil {
		return err
	}
	if err := c.writeTemporary(b); err != nil {
		_ = c.fs.Remove(c.temporary()) // it would hold room that is missing; the next write replaces it anyway
		return err
	}
	// Closed before the name changes, because not every system renames onto an open file. All of it is synced: this is between appends.
	inUse := c.file != nil
	if err := c.close(); err != nil {
		return err
	}
	renamed := c.fs.Rename(c.temporary(), c.name)
	if renamed == nil {
		if err := c.fs.SyncDir(filepath.Dir(c.name)); err != nil {
			return fmt.Errorf("%w: %w", storage.ErrSyncFailed, err)
		}
		c.first, c.end, c.size, c.ragged = first, end, int64(len(b)), false
	} else if !inUse {
		return renamed
	}
	if c.file, err = c.fs.OpenFile(c.name, os.O_RDWR, 0); err != nil {
		return fmt.Errorf("open %s again: %w", c.name, err)
	}
	return renamed
}

func (c *logCopy) temporary() string { return c.name + ".tmp" }

func (c *logCopy) writeTemporary(b []byte) error {
	f, err := c.fs.OpenFile(c.temporary(), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(b, 0); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// copyOf returns a copy's bytes for the entries [first, end) of a log.
func copyOf(log *storage.Log, first uint64) (b []byte, end uint64, err error) {
	b, end = appendCopyHeader(nil, first), uint64(log.End())
	for at := first; at < end; {
		batches, err := log.Read(kafka.Offset(at), kafka.Offset(end), storage.ReadLimits{MaxBytes: readChunk, AtLeastOne: true}, nil)
		if err != nil {
			return nil, 0, err
		}
		var n uint64
		if b, n, err = appendCopyEntries(b, batches); err != nil {
			return nil, 0, err
		}
		if n == 0 {
			return nil, 0, fmt.Errorf("read the metadata log at %d: %w: nothing is there", at, errEntry)
		}
		at += n
	}
	return b, max(first, end), nil
}

// appendCopyEntries appends the batches that lie back to back in batches, one an entry, and counts them.
func appendCopyEntries(dst, batches []byte) (b []byte, n uint64, err error) {
	for len(batches) > 0 {
		var batch record.Batch
		if batch, batches, err = record.Split(batches); err != nil {
			return dst, n, err
		}
		dst = appendCopyEntry(dst, batch)
		n++
	}
	return dst, n, nil
}

// stage writes batches behind the copy's end, which moves only by a call of the function that it returns: when the log has refused
// them the next stage takes their place. So a full disk cannot keep an entry from one file only.
func (c *logCopy) stage(batches []byte) (keep func(), err error) {
	if c.ragged {
		if err := c.file.Truncate(c.size); err != nil {
			return nil, err
		}
		c.ragged = false
	}
	var n uint64
	if c.buf, n, err = appendCopyEntries(c.buf[:0], batches); err != nil {
		return nil, err
	}
	size := int64(len(c.buf))
	c.ragged = true
	_, err = c.file.WriteAt(c.buf, c.size)
	if cap(c.buf) > appendChunk {
		c.buf = nil
	}
	if err != nil {
		return nil, err
	}
	return func() { c.size, c.end, c.ragged = c.size+size, c.end+n, false }, nil
}

// sync makes the copy durable; an error is final (I11).
func (c *logCopy) sync() error {
	if err := c.file.Sync(); err != nil {
		return fmt.Errorf("%s: %w: %w", c.name, storage.ErrSyncFailed, err)
	}
	return nil
}

// truncateTo drops the entries from end on, durably, as the log does. The cut is on disk before other entries are written there:
// a power cut could else leave old bytes behind new ones.
func (c *logCopy) truncateTo(end uint64) error {
	if end >= c.end {
		return nil
	}
	if end < c.first {
		return fmt.Errorf("%s: cut at %d, below its first index %d", c.name, end, c.first)
	}
	size, err := c.position(end)
	if err != nil {
		return err
	}
	if err := c.file.Truncate(size); err != nil {
		return err
	}
	c.size, c.end, c.ragged = size, end, false
	return c.sync()
}

// position is where an index begins in the file. Cuts are rare, so it reads the file.
func (c *logCopy) position(index uint64) (int64, error) {
	b := make([]byte, c.size)
	if _, err := c.file.ReadAt(b, 0); err != nil {
		return 0, fmt.Errorf("read %s: %w", c.name, err)
	}
	rest := b[copyHeaderSize:]
	for at := c.first; at < index; at++ {
		var err error
		if _, rest, err = splitCopyEntry(rest); err != nil {
			return 0, fmt.Errorf("%s at index %d: %w", c.name, at, err)
		}
	}
	return c.size - int64(len(rest)), nil
}

// close closes the file; the copy can be closed again.
func (c *logCopy) close() error {
	f := c.file
	c.file = nil
	if f == nil {
		return nil
	}
	return f.Close()
}
