package storage

import (
	"errors"
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// A directory that is removed under a running node acknowledges nothing more: files that are still open would take records for nobody
// to find. One missing copy of the identity is not absence.
func TestI1_NothingIsStoredInADirectoryThatIsGone(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, LogOptions{})
	stored := func(want kafka.Offset) {
		t.Helper()
		fill(t, l, 1)
		d.syncer.runAll()
		if got := l.StoredEnd(); got != want {
			t.Fatalf("stored %d, want %d", got, want)
		}
	}
	stored(1)
	if err := fsys.Remove(dirFile(identityFile)); err != nil {
		t.Fatal(err)
	}
	if err := d.Present(); err != nil {
		t.Fatalf("one copy of the identity is left: %v", err)
	}
	stored(2)
	if err := sys.RemoveAll(fsys, testRoot); err != nil {
		t.Fatal(err)
	}
	if err := d.Present(); !errors.Is(err, ErrGone) {
		t.Fatalf("the directory is gone: %v", err)
	}
	stored(2)
	if _, err := d.OpenLog(kafka.TopicPartition{Topic: kafka.TopicID{9}}, LogOptions{}); !errors.Is(err, ErrGone) {
		t.Errorf("a log was made in a directory that is gone: %v", err)
	}
}
