package storage

import (
	"testing"

	"strandline.dev/internal/sys/systest"
)

// TestEpochs_ANewEpochAloneWritesNothing: each start assigns an epoch to each log, and thousands of files would be written for it.
// Neither for the first record of an epoch: recovery finds it.
func TestEpochs_ANewEpochAloneWritesNothing(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, LogOptions{})
	if err := l.AssignEpoch(3); err != nil {
		t.Fatal(err)
	}
	housekeep := func() {
		t.Helper()
		d.syncer.runAll()
		if err := d.SavePoints(nil); err != nil {
			t.Fatal(err)
		}
		d.syncer.runAll()
	}
	hasFile := func() bool {
		for name := range fsys.Files() {
			if hasSuffix(name, "/"+epochsFile) {
				return true
			}
		}
		return false
	}
	housekeep()
	if hasFile() {
		t.Error("an epoch without records was written to the epochs file")
	}
	if l.LatestEpoch() != 3 || l.EpochEndFor(3).Epoch != 3 {
		t.Errorf("the newest epoch is %d, its end %v", l.LatestEpoch(), l.EpochEndFor(3))
	}
	mustAppend(t, l, 3, testBatch(1, 1, 100, 0))
	housekeep()
	if hasFile() {
		t.Error("the first record of an epoch wrote the epochs file")
	}
	fsys = fsys.Crash(systest.KillProcess)
	d = newTestDir(t, fsys)
	l = openTestLog(t, d, LogOptions{})
	if l.LatestEpoch() != 3 {
		t.Errorf("after a kill the newest epoch is %d", l.LatestEpoch())
	}
	closeClean(t, d)
	if !hasFile() {
		t.Error("the epoch of a record is not in the file after a clean stop")
	}
}
