package storage

import (
	"path/filepath"

	"strandline.dev/internal/sys"
)

// The sync-point file is the only place that holds a log start raised inside a segment, so it has a copy: the same bytes, of the same
// moment or of an earlier one. An earlier one is as good as long as nothing in it has become wrong: ends that have risen since only make
// a start scan more. So the copy is not written every five seconds, but when an entry comes or goes, a start or a policy changes, damage is
// found, or an end falls (truncation, reset); and with the true ends at the end. It is written after the file and before anybody may rely on
// what changed. So the file is never older than the copy, and counts if it is whole.
const syncPointCopy = "sync-point.copy"

// copyPoints writes the copy if the one on disk may not stand in for b. The caller is the one writer of both.
func (d *Dir) copyPoints(b []byte, last bool) error {
	if !last && standsIn(d.copied, b) {
		return nil
	}
	d.copied = nil // unknown while it is written
	if err := sys.WriteFileAtomic(d.fs, filepath.Join(d.path, syncPointCopy), b); err != nil {
		return err
	}
	d.copied = b
	return nil
}

// standsIn says that an older sync-point file may be used in place of a newer one.
func standsIn(older, newer []byte) bool {
	o, err := openFile(older, syncPointMagic, syncPointVersion)
	if err != nil || len(older) != len(newer) {
		return false
	}
	n, err := openFile(newer, syncPointMagic, syncPointVersion)
	if err != nil || o.u64() != n.u64() || o.u32() != n.u32() { // start number and count
		return false
	}
	for len(n.b) > 0 {
		otp, op := readPoint(o)
		ntp, np := readPoint(n)
		if otp != ntp || !op.standsInFor(np) {
			return false
		}
	}
	return true
}

// standsInFor says that a start may go by p although the log's entry is newer by now.
func (p point) standsInFor(newer point) bool {
	return p.start == newer.start && p.policy == newer.policy && p.damaged == newer.damaged && p.firstBase == newer.firstBase &&
		p.end <= newer.end && p.hw <= newer.hw && p.segment <= newer.segment && p.before <= newer.before &&
		(p.segment < newer.segment || p.pos <= newer.pos)
}
