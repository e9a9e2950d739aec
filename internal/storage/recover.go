package storage

import (
	"errors"
	"fmt"
	"io"
	"os"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

// recovery brings a log with segments back. What the sync-point entry covers is trusted without reading it, as is a rolled
// segment with a fitting .meta, which is written only after the segment was synced; all else is scanned with checksums.
//
// The scan ends well, or at bytes that cannot be a batch. Those are a torn tail, which is cut, if nothing that counts lies behind
// them and a crash can have made them: a batch that is shorter than its length field says, always; anything else, only if the
// system was booted again since. They are damage in all other cases: below the sync point, with a valid batch behind, when all of them
// are one batch whose header is wrong where no checksum covers it, or in a page cache that survived. Damage is never cut: the log serves
// what lies below and waits to be rebuilt (I11).
type recovery struct {
	l     *Log
	ls    *listing
	p     point
	known bool

	below    []*segment // wholly below the start
	segments []*segment // that count
	at       kafka.Offset
	cutAt    int64 // size of the last segment that counts, when torn
	torn     bool
	doomed   []*segment // segments behind a torn one
	damaged  *CorruptError
	// staleIndex says that the last segment's index file does not fit it.
	staleIndex bool
	scanned    int // index of the first segment that was scanned, or len(segments)
}

// damagedBefore is the reason when only the sync-point file knows of damage.
const damagedBefore = "the sync-point file says that the log was damaged"

func newRecovery(l *Log, ls *listing, p point, known bool) *recovery {
	return &recovery{l: l, ls: ls, p: p, known: known}
}

// run finds the log's extent.
func (r *recovery) run(marker *CorruptError) error {
	r.splitBelowStart()
	r.segments, r.scanned = r.ls.segments, len(r.ls.segments)
	r.at = r.segments[0].base
	if err := r.checkTrusted(); err != nil {
		return err
	}
	for i := 0; i < len(r.segments) && r.damaged == nil && !r.torn; i++ {
		if err := r.segment(i); err != nil {
			return err
		}
	}
	if marker != nil {
		r.damaged = marker
	} else if r.damaged == nil && r.known && r.p.damaged {
		r.damaged = &CorruptError{File: r.l.path, Why: damagedBefore}
	}
	return nil
}

// splitBelowStart sets aside the segments that the log start had passed when the process ended. They are removed at the end of
// recovery: the producer state of their batches may not be in a snapshot yet (C048).
func (r *recovery) splitBelowStart() {
	for r.known && len(r.ls.segments) > 1 && r.ls.segments[1].base <= r.p.start {
		s := r.ls.segments[0]
		s.end, s.sealed = r.ls.segments[1].base, true
		r.below, r.ls.segments = append(r.below, s), r.ls.segments[1:]
	}
}

// checkTrusted compares what the sync-point entry says about the segments below it with their sizes: a segment that is missing
// or has another size is found without reading anything.
func (r *recovery) checkTrusted() error {
	if !r.known {
		return nil
	}
	var before int64
	found := false
	for _, s := range r.segments {
		if s.base < r.p.segment {
			before += s.size
		}
		found = found || s.base == r.p.segment
	}
	if r.p.end <= r.p.start {
		return nil // nothing that may still be read was promised
	}
	if found && before == r.p.before && r.segments[0].base == r.p.firstBase {
		return nil
	}
	return r.locateDamage(found)
}

// locateDamage walks the segments that were trusted until it finds what is wrong.
func (r *recovery) locateDamage(found bool) error {
	at := r.p.firstBase
	for i, s := range r.segments {
		if s.base != at {
			r.damageAt(i, 0, fmt.Sprintf("a segment is missing: offsets %d to %d", at, s.base-1))
			return nil
		}
		if s.base >= r.p.segment {
			break
		}
		end, size, err := r.scan(s, 0, s.base, false)
		var bad *badBatch
		if err != nil && !errors.As(err, &bad) {
			return err
		}
		next := r.p.segment
		if i+1 < len(r.segments) {
			next = r.segments[i+1].base
		}
		if bad != nil || end != next {
			s.end, s.size = end, size
			r.segments, r.at = r.segments[:i+1], end
			r.damaged = &CorruptError{File: s.path, Pos: size, Why: fmt.Sprintf("below the sync point the segment ends at offset %d, want %d", end, next)}
			return nil
		}
		s.end, s.sealed = end, true
		at = end
	}
	if !found && r.p.end > r.p.segment {
		r.damageAt(len(r.segments), 0, fmt.Sprintf("the segment of offset %d is missing", r.p.segment))
	}
	return nil
}

// damageAt ends the log before segment i.
func (r *recovery) damageAt(i int, pos int64, why string) {
	file := r.l.path
	if i < len(r.segments) {
		file = r.segments[i].path
	}
	r.damaged = &CorruptError{File: file, Pos: pos, Why: why}
	if i == 0 {
		// Nothing can be served. The files stay; an empty segment stands for them.
		r.at = max(r.p.start, 0)
		empty := newSegment(r.l.path, r.at)
		empty.timesKnown = true
		r.segments = []*segment{empty}
		return
	}
	r.segments = r.segments[:i]
	r.at = r.segments[i-1].end
}

// segment takes segment i up, scanning as much of it as is not known to be good.
func (r *recovery) segment(i int) error {
	s := r.segments[i]
	if s.base != r.at {
		return r.gap(i)
	}
	last := i == len(r.segments)-1
	if r.known && s.base < r.p.segment && !last {
		s.end, s.sealed = r.segments[i+1].base, true
		r.at = s.end
		return nil
	}
	from, expect := int64(0), s.base
	if r.known && s.base == r.p.segment {
		from, expect = r.p.pos, r.p.end
		if s.size < from {
			return r.shortened(i)
		}
	}
	if m, ok := readSegmentMeta(r.l.dir.fs, s); ok && m.proves(s) && (last || m.end == r.segments[i+1].base) {
		s.end, s.sealed, s.times, s.timesKnown = m.end, true, m.times, true
		r.at = s.end
		return nil
	}
	r.scanned = min(r.scanned, i)
	end, size, err := r.scan(s, from, expect, true)
	var bad *badBatch
	if errors.As(err, &bad) {
		return r.judge(i, end, size, bad)
	}
	if err != nil {
		return err
	}
	s.end, r.at = end, end
	return nil
}

// shortened: the segment lost bytes that were synced. What is left of it is served.
func (r *recovery) shortened(i int) error {
	s := r.segments[i]
	end, size, err := r.scan(s, 0, s.base, true)
	var bad *badBatch
	if err != nil && !errors.As(err, &bad) {
		return err
	}
	r.damaged = &CorruptError{File: s.path, Pos: s.size, Why: fmt.Sprintf("the file has %d bytes, %d were synced", s.size, r.p.pos)}
	s.end, s.size, r.at = end, size, end
	r.segments = r.segments[:i+1]
	return nil
}

// scan walks a segment from a position with a known offset, and returns the offset and position behind the last good batch.
func (r *recovery) scan(s *segment, from int64, expect kafka.Offset, verify bool) (kafka.Offset, int64, error) {
	f, err := r.l.dir.fs.OpenFile(s.path, os.O_RDONLY, 0)
	if err != nil {
		return expect, from, err
	}
	defer f.Close()
	w := newWalker(f, from, s.size, expect)
	defer w.release()
	w.verify = verify
	for {
		if _, _, err := w.next(); errors.Is(err, io.EOF) {
			return w.expect, w.pos, nil
		} else if err != nil {
			return w.expect, w.pos, err
		}
	}
}

// judge decides between torn and damaged for bad bytes at the end of what could be read of segment i.
func (r *recovery) judge(i int, end kafka.Offset, size int64, bad *badBatch) error {
	s := r.segments[i]
	canBeTorn := bad.kind == badShort || !r.l.dir.sameBoot()
	if canBeTorn && !r.countsBehind(i) {
		f, err := r.l.dir.fs.OpenFile(s.path, os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		at, found, err := validBatchBehind(f, bad.pos, s.size, end)
		if err != nil {
			return err
		}
		whole, err := spansRest(f, bad.pos, s.size)
		if err != nil {
			return err
		}
		hole, err := r.hole(f, bad.pos, s.size)
		if err != nil {
			return err
		}
		switch {
		case found && hole:
			r.l.dir.log.Warn("a page of this segment never reached the disk before the power cut; it was never synced, and the log is cut there",
				"file", s.path, "pos", bad.pos)
			r.tear(i, end, size)
			return nil
		case found:
			bad.why += fmt.Sprintf("; a valid batch lies behind it, at byte %d", at)
		case whole:
			bad.why += "; the rest of the file is one whole batch with a wrong header"
		default:
			r.tear(i, end, size)
			return nil
		}
	}
	r.damaged = asCorrupt(s.path, bad).(*CorruptError)
	s.end, s.size, r.at = end, size, end
	r.segments = r.segments[:i+1]
	return nil
}

// hole says whether the bad bytes at pos are a page that a power cut kept from the disk (hole.go).
func (r *recovery) hole(f sys.File, pos, size int64) (bool, error) {
	if r.l.dir.sameBoot() {
		return false, nil // the page cache lives: no page can be missing
	}
	return neverWritten(f, pos, size)
}

// countsBehind says whether what lies behind segment i can have been reported as stored. Nothing behind a rolled segment is, until
// its .meta is on disk; and while the page cache lives, no roll can have left a gap.
func (r *recovery) countsBehind(i int) bool {
	if i == len(r.segments)-1 {
		return false
	}
	if r.l.dir.sameBoot() || (r.known && r.segments[i].base < r.p.segment) {
		return true
	}
	for _, s := range r.segments[i:] {
		if _, ok := readSegmentMeta(r.l.dir.fs, s); ok {
			return true
		}
	}
	return false
}

// gap: segment i does not continue the one before it. After a power cut in the middle of a roll that is the old segment's lost
// tail; else it is damage.
func (r *recovery) gap(i int) error {
	s := r.segments[i]
	if i > 0 && s.base > r.at && !r.countsBehind(i-1) {
		r.tear(i-1, r.at, r.segments[i-1].size)
		return nil
	}
	r.damageAt(i, 0, fmt.Sprintf("the segment begins at offset %d, want %d", s.base, r.at))
	return nil
}

// tear ends the log in segment i at this offset and size.
func (r *recovery) tear(i int, end kafka.Offset, size int64) {
	r.torn, r.cutAt = true, size
	r.doomed = r.segments[i+1:]
	r.segments = r.segments[:i+1]
	r.segments[i].end, r.at = end, end
}
