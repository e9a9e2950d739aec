package quorum

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/raft/v3/raftpb"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys"
)

// What the files of a log hold behind a snapshot, whatever their state. storage serves what lies below the first damage; here
// it counts what lies behind it too, because the snapshot stands in for what is damaged. Entries are numbered without gaps and
// there is one to a batch, so an entry's index follows from its place, also where its own header is damaged: a checksum does
// not cover index, length and term.

const (
	logSuffix = ".log"
	// lengthAt and lengthOverhead: where a batch's length field is, and what it does not count (docs/formats/segment.md).
	lengthAt, lengthOverhead = 8, 12
)

// logFile is one segment of the log.
type logFile struct {
	path string
	base uint64
}

func logFiles(fsys sys.FS, dir string) ([]logFile, error) {
	names, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []logFile
	for _, n := range names {
		stem, isLog := strings.CutSuffix(n.Name, logSuffix)
		if base, err := strconv.ParseUint(stem, 10, 63); isLog && err == nil && len(stem) == indexDigits {
			files = append(files, logFile{path: filepath.Join(dir, n.Name), base: base})
		}
	}
	slices.SortFunc(files, func(a, b logFile) int { return cmp.Compare(a.base, b.base) })
	return files, nil
}

// newestLogFile is the file that a lost tail was in, for messages.
func (r *recovered) newestLogFile() string {
	files, err := logFiles(r.machine.FS, r.dir)
	if err != nil || len(files) == 0 {
		return r.dir
	}
	return files[len(files)-1].path
}

// readTail reads the entries behind the newest snapshot from the log's files. It returns errHole unless it is sure that they
// are all there.
func (r *recovered) readTail() ([]*raftpb.Entry, error) {
	files, err := logFiles(r.machine.FS, r.dir)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: the log's files are gone: %w", r.dir, errHole)
	}
	t := tailScan{next: uint64(r.next()), at: files[0].base}
	for i, f := range files {
		if i+1 < len(files) && files[i+1].base <= t.next {
			t.at, t.seen = files[i+1].base, true // all of it is in the snapshot
			continue
		}
		if f.base != t.at || f.base > t.next && i == 0 {
			return nil, fmt.Errorf("%s: entries before %d are missing: %w", f.path, f.base, errHole)
		}
		b, err := sys.ReadFile(r.machine.FS, f.path, tailFileMax)
		if err != nil {
			return nil, err
		}
		if err := t.scan(f.path, b); err != nil {
			return nil, err
		}
	}
	switch {
	case t.at < t.next, kafka.Offset(t.at) < r.last.synced:
		err = fmt.Errorf("%s: the log ends at %d: %w", r.newestLogFile(), t.at, errHole)
	case !t.seen && r.voted:
		// Only a log that no vote precedes can be known to have been empty: the vote comes before the first entry.
		err = fmt.Errorf("%s: the log is empty: %w", r.newestLogFile(), errHole)
	}
	return t.entries, err
}

// tailScan is a walk through a log.
type tailScan struct {
	next    uint64 // the first index that matters
	at      uint64 // the index at the current position
	seen    bool   // there was an entry, readable or not
	entries []*raftpb.Entry
}

// scan walks through one file.
func (t *tailScan) scan(file string, b []byte) error {
	for rest := b; len(rest) > 0; {
		pos := len(b) - len(rest)
		t.seen = true
		batch, whole := wholeBatch(rest)
		if !whole {
			at, behind, ok := t.skip(rest)
			if !ok {
				return fmt.Errorf("%s: byte %d: %w", file, pos, errHole)
			}
			t.at, rest = at, behind
			continue
		}
		if t.at >= t.next {
			if uint64(batch.BaseOffset()) != t.at {
				return fmt.Errorf("%s: byte %d: index %d where %d should be: %w", file, pos, batch.BaseOffset(), t.at, errHole)
			}
			e, err := decodeEntry(batch)
			if err != nil {
				return err
			}
			t.entries = append(t.entries, e)
		}
		t.at++
		rest = rest[len(batch):]
	}
	return nil
}

// wholeBatch returns the batch of one entry that b seems to begin with, and whether its checksum is right.
func wholeBatch(b []byte) (batch record.Batch, whole bool) {
	batch, _, err := record.Split(b)
	if err != nil || batch.Count() != 1 || batch.LastOffsetDelta() != 0 {
		return nil, false
	}
	return batch, batch.VerifyCRC() == nil
}

// skip passes over damaged bytes, if what was in them is in the snapshot: up to the next good batch whose index says so, or, at
// the end of a file, over exactly one batch.
func (t *tailScan) skip(b []byte) (at uint64, behind []byte, ok bool) {
	if t.at >= t.next {
		return 0, nil, false
	}
	work := 0
	for i := 1; i+record.HeaderSize <= len(b) && work <= tailSearchBytes; i++ {
		batch, whole := wholeBatch(b[i:])
		if whole && uint64(batch.BaseOffset()) > t.at {
			at = uint64(batch.BaseOffset())
			return at, b[i:], at <= t.next
		}
		work += len(batch)
	}
	return t.at + 1, nil, work <= tailSearchBytes && lone(b)
}

// lone says that b is one batch and no more: its length says so, or its checksum fits once the length is set right.
func lone(b []byte) bool {
	if len(b) < record.HeaderSize || len(b) > segmentBytes {
		return false
	}
	length := uint32(len(b) - lengthOverhead)
	if binary.BigEndian.Uint32(b[lengthAt:]) == length {
		return true
	}
	c := bytes.Clone(b)
	binary.BigEndian.PutUint32(c[lengthAt:], length)
	_, whole := wholeBatch(c)
	return whole
}
