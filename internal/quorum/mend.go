package quorum

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"go.etcd.io/raft/v3/raftpb"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

// A start finds the entries behind the newest snapshot twice: in the log and in its copy. Both were synced before anything was
// answered, so after a crash either is a state that this node may be in, and where one is longer the rest was on its way. Only
// damage makes one of them lack what was answered. Damage that shows (a checksum, a byte too few) takes a file out; damage that does
// not show, a file cut between two entries, makes it the shorter one. So the longer one counts. Where they differ the copy counts:
// its checksums cover index and term, the log's do not. They also differ when a crash came between their truncations, one holding
// what another leader wrote instead. That leader's existence proves that what it replaced was never committed, so losing that,
// even a part of it, loses nothing that was answered to anybody who may still rely on it.

// foundCopy is the copy as a start finds it.
type foundCopy struct {
	there  bool
	copied *copied // nil unless it is whole
	damage *CorruptError
}

// readCopy reads the copy. One that cannot be read is no reason to refuse while the log is whole.
func (r *recovered) readCopy() {
	name := filepath.Join(r.dir, copyFileName)
	b, err := sys.ReadFile(r.machine.FS, name, copyFileMax)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	r.found.there = true
	if err == nil {
		r.found.copied, err = decodeCopy(b)
	}
	if err == nil && kafka.Offset(r.found.copied.end()) < r.last.synced {
		err = fmt.Errorf("it ends at %d, although the log was on disk up to %d", r.found.copied.end(), r.last.synced)
	}
	if err != nil {
		r.found.copied, r.found.damage = nil, &CorruptError{File: name, Why: err.Error()}
	}
}

// compare looks for the first entry that differs from the copy's.
func (t *tail) compare(c *copied, entries []*raftpb.Entry) {
	if c == nil || t.differs > 0 {
		return
	}
	for _, e := range entries {
		if other := c.at(e.GetIndex()); other != nil && !sameEntry(e, other) {
			t.differs = e.GetIndex()
			return
		}
	}
}

func sameEntry(a, b *raftpb.Entry) bool {
	return a.GetTerm() == b.GetTerm() && a.GetType() == b.GetType() && bytes.Equal(a.GetData(), b.GetData())
}

// mend gives a log that is sound as far as it goes the entries that only its copy holds.
func (r *recovered) mend() error {
	c := r.found.copied
	if c == nil {
		return nil
	}
	at := uint64(r.log.End())
	if r.tail.differs > 0 {
		at = r.tail.differs
	}
	if at >= c.end() {
		return nil
	}
	if at < c.first {
		return &CorruptError{File: r.newestLogFile(), Why: fmt.Sprintf("the log ends at %d, although its copy begins at %d: its tail was lost", at, c.first)}
	}
	if r.tail.differs > 0 {
		r.lines.Warn("the metadata log differs from its copy, which counts", "dir", r.dir, "index", at)
		if err := r.log.TruncateTo(kafka.Offset(at)); err != nil {
			return fmt.Errorf("cut the metadata log at %d: %w", at, err)
		}
	}
	if err := r.appendToLog(c.from(at)); err != nil {
		return err
	}
	r.lines.Info("the metadata log has got entries back from its copy", "dir", r.dir, "from", at, "to", c.end()-1)
	return r.checkLog()
}

// appendToLog appends entries that follow each other; recoverDirectory syncs the log.
func (r *recovered) appendToLog(entries []*raftpb.Entry) error {
	for len(entries) > 0 {
		chunk, n, err := encodeChunk(nil, entries)
		if err != nil {
			return err
		}
		write := func() error {
			_, err := r.log.AppendReplicated(chunk, r.machine.Wall.Now())
			return err
		}
		if err := r.store.WithReserve(write); err != nil {
			return fmt.Errorf("append to the metadata log at %d: %w", entries[0].GetIndex(), err)
		}
		entries = entries[n:]
	}
	return nil
}

// beginCopy replaces the copy by what the log, which is synced, holds behind the newest snapshot.
func (r *recovered) beginCopy() error {
	switch {
	case r.found.damage != nil:
		r.lines.Warn("the copy of the metadata log was damaged and is written anew", "file", r.found.damage.File, "why", r.found.damage.Why)
	case !r.found.there:
		r.lines.Info("a copy of the newest metadata entries is kept from now on", "file", filepath.Join(r.dir, copyFileName))
	}
	return r.store.WithReserve(func() (err error) {
		r.copy, err = startCopy(r.machine.FS, r.dir, r.log, uint64(r.next()))
		return err
	})
}
