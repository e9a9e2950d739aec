package storage

import "strandline.dev/internal/kafka"

// MetadataSynced is the offset up to which the sync-point file of the previous run knows the metadata log to be on disk: its true
// end if that run stopped in order. known is false when the file has no entry or could not be read. It answers for the previous
// run only until the log is opened.
func (d *Dir) MetadataSynced() (end kafka.Offset, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, known := d.mu.points[kafka.MetadataPartition]
	return p.end, known
}

// GiveUp closes a log that its owner refuses as it was found. Nothing is synced or written, and its entry in the sync-point file
// stays as the previous run left it: an entry for what is left of the log would let the next start take that for the whole.
func (l *Log) GiveUp() {
	l.abandon()
	l.dir.mu.Lock()
	defer l.dir.mu.Unlock()
	if l.dir.mu.logs[l.tp] == l {
		delete(l.dir.mu.logs, l.tp)
	}
}
