package storage

import (
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
)

// A power cut in the middle of a sync keeps later pages and loses an earlier one: the file shows zeros to a page boundary, and whole
// batches behind them. The log is cut at the hole, everything that was stored is there, and the partition goes on by itself.
// While the page cache lives, or for other damage at the same place, nothing is cut.
func TestC021_HoleOfAPowerCutIsCut(t *testing.T) {
	name := logFile("00000000000000000000.log")
	firstPage := func(size int64) int64 { return (size/pageBytes + 1) * pageBytes }
	for _, c := range []struct {
		name string
		mode systest.CrashMode
		harm func(t *testing.T, fsys *systest.FS, size int64) error
		cut  bool
	}{
		{"the tail of the page with the stored end", systest.KeepAll, func(_ *testing.T, f *systest.FS, size int64) error {
			return f.Zero(name, size, firstPage(size)-size)
		}, true},
		{"a whole page further on", systest.KeepAll, func(_ *testing.T, f *systest.FS, size int64) error {
			return f.Zero(name, firstPage(size)+pageBytes, pageBytes)
		}, true},
		{"three pages", systest.KeepAll, func(_ *testing.T, f *systest.FS, size int64) error {
			return f.Zero(name, firstPage(size), 3*pageBytes)
		}, true},
		{"a page, but the page cache lived", systest.KillProcess, func(_ *testing.T, f *systest.FS, size int64) error {
			return f.Zero(name, firstPage(size), pageBytes)
		}, false},
		{"a flipped bit", systest.KeepAll, func(_ *testing.T, f *systest.FS, size int64) error {
			return f.FlipBit(name, firstPage(size)+100, 3)
		}, false},
		{"half a page", systest.KeepAll, func(_ *testing.T, f *systest.FS, size int64) error {
			return f.Zero(name, firstPage(size), pageBytes/2)
		}, false},
		{"a page below the sync point", systest.KeepAll, func(_ *testing.T, f *systest.FS, size int64) error {
			return f.Zero(name, 0, pageBytes)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys, stored, size := writtenAndStored(t)
			fsys = fsys.Crash(c.mode)
			if err := c.harm(t, fsys, size); err != nil {
				t.Fatal(err)
			}
			d := newTestDir(t, fsys)
			l := openTestLog(t, d, LogOptions{})
			damaged := l.Recovered().Damaged
			if c.cut != (damaged == nil) {
				t.Fatalf("damage: %v", damaged)
			}
			if !c.cut {
				return
			}
			if end := l.End(); end < stored || end >= 260 {
				t.Fatalf("the log ends at %d: stored were %d of 260", end, stored)
			}
			if _, err := readAll(l, l.End(), 1<<20); err != nil {
				t.Fatal(err)
			}
			fill(t, l, 1)
			d.syncer.runAll()
			if l.StoredEnd() != l.End() {
				t.Errorf("stored %d of %d after the cut", l.StoredEnd(), l.End())
			}
		})
	}
}

// writtenAndStored returns a log with 60 records that are stored and 200 behind them that are only written, and its size up to the stored
// ones.
func writtenAndStored(t *testing.T) (*systest.FS, kafka.Offset, int64) {
	t.Helper()
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, LogOptions{})
	fill(t, l, 60)
	d.syncer.runAll()
	stored := l.StoredEnd()
	if err := d.SavePoints(func(kafka.TopicPartition) kafka.Offset { return stored }); err != nil {
		t.Fatal(err)
	}
	size := l.Size()
	fill(t, l, 200) // written, not synced
	return fsys, stored, size
}
