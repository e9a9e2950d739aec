package storage

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

// The names in a log's directory. Segment files are named by their base offset, 20 digits.
const (
	logSuffix       = ".log"
	metaSuffix      = ".meta"
	indexSuffix     = ".index"
	producersSuffix = ".producers"
	epochsFile      = "epochs"
	damagedFile     = "damaged"
	resettingFile   = "resetting"
	tempSuffix      = ".tmp" // of sys.WriteFileAtomic

	offsetDigits = 20
)

// segment is one file of batches. All fields are guarded by the log's mu; bytes are read outside it through a pin.
type segment struct {
	base kafka.Offset
	path string
	// end is the offset behind the last batch, size the file position behind it.
	end  kafka.Offset
	size int64

	file sys.File // nil while closed
	pins int      // users of file; it is not closed under them
	idle int      // sweeps since the last use
	gone bool     // removed or log closed: the last unpin closes the file

	// dirty says that the file may hold bytes that no sync covered.
	dirty bool
	// inherited: those bytes are an earlier process's, so that closing the file here loses no error.
	inherited bool
	// sealed says that .meta is on disk, which also proves that the whole segment was synced (see segmentmeta.go).
	sealed bool
	// index is nil when it is not in memory. indexed says that the index file is on disk, fromFile that index came from it.
	index    *index
	indexed  bool
	fromFile bool

	// times are the append times and the largest record timestamp; timesKnown is false for a sealed segment whose .meta has not
	// been read yet.
	times      segmentTimes
	timesKnown bool
}

// segmentTimes are in milliseconds since the Unix epoch.
type segmentTimes struct {
	firstAppendMs, lastAppendMs int64
	maxTimestamp                int64
}

// noTimes is an empty segment's.
var noTimes = segmentTimes{maxTimestamp: -1}

// note adds a batch. Append times never step back inside a segment: an age counts from the latest time seen (I9).
func (t *segmentTimes) note(atMs, maxTimestamp int64) {
	if t.firstAppendMs == 0 {
		t.firstAppendMs = atMs
	}
	t.lastAppendMs = max(t.lastAppendMs, atMs)
	t.maxTimestamp = max(t.maxTimestamp, maxTimestamp)
}

func offsetName(o kafka.Offset, suffix string) string {
	return fmt.Sprintf("%0*d%s", offsetDigits, int64(o), suffix)
}

// parseOffsetName reads "<20 digits><suffix>".
func parseOffsetName(name, suffix string) (kafka.Offset, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != offsetDigits {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	return kafka.Offset(n), err == nil
}

func newSegment(dir string, base kafka.Offset) *segment {
	return &segment{base: base, end: base, path: filepath.Join(dir, offsetName(base, logSuffix)), times: noTimes}
}

// beside is the path of a file that belongs to the segment.
func (s *segment) beside(suffix string) string { return strings.TrimSuffix(s.path, logSuffix) + suffix }

// pinLocked opens the segment's file if it is closed and keeps it open until unpinLocked.
func (l *Log) pinLocked(s *segment) (sys.File, error) {
	if s.file == nil {
		f, err := l.dir.fs.OpenFile(s.path, os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		s.file = f
		l.dir.openFiles.Add(1)
	}
	s.pins++
	s.idle = 0
	return s.file, nil
}

func (l *Log) unpinLocked(s *segment) {
	s.pins--
	if s.gone || l.dir.openFiles.crowded() {
		l.closeFileLocked(s)
	}
}

// closeFileLocked closes the file unless somebody uses it or it holds bytes of this process that no sync covered: a write error that
// the kernel has to tell would be lost with the last open file. A log that is out of service is synced no more.
func (l *Log) closeFileLocked(s *segment) {
	if s.file == nil || s.pins > 0 || (s.dirty && !s.inherited && !s.gone && l.refusalLocked() == nil) {
		return
	}
	if err := s.file.Close(); err != nil {
		l.dir.log.Warn("closing a segment failed", "file", s.path, "error", err)
	}
	s.file = nil
	l.dir.openFiles.closed()
}

// discardLocked ends the use of a segment that left the log.
func (l *Log) discardLocked(s *segment) {
	s.gone = true
	l.closeFileLocked(s)
}

// removeFiles deletes the files of a segment. The segment itself goes first: caches without a segment are swept at the next
// open, a segment without caches is rebuilt.
func removeFiles(fsys sys.FS, s *segment) error {
	for _, suffix := range []string{logSuffix, metaSuffix, indexSuffix} {
		if err := removeIfThere(fsys, s.beside(suffix)); err != nil {
			return err
		}
	}
	return nil
}

func removeIfThere(fsys sys.FS, name string) error {
	if err := fsys.Remove(name); err != nil && !isMissing(err) {
		return err
	}
	return nil
}
