package storage

import (
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
)

// TestI9_AppendedByIsNeverEarlierThanTheAppend: in the active segment, in sealed ones, and after a restart.
func TestI9_AppendedByIsNeverEarlierThanTheAppend(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, smallLog)
	at := func(n int) time.Time { return testDay.Add(time.Duration(n) * time.Second) }
	const batches = 30
	for n := range batches {
		if _, err := l.Append(0, testBatch(uint64(n), 1, 100, 0), at(n)); err != nil {
			t.Fatal(err)
		}
	}
	check := func() {
		t.Helper()
		for n := range batches {
			if got := l.AppendedBy(kafka.Offset(n + 1)); got.Before(at(n)) || got.After(at(n+6)) {
				t.Errorf("the record at %d was appended by %v, in truth at %v", n, got, at(n))
			}
		}
		if got := l.AppendedBy(batches); !got.Equal(at(batches - 1)) {
			t.Errorf("at the end: %v", got)
		}
	}
	check()
	closeClean(t, d)
	l = openTestLog(t, newTestDir(t, fsys), smallLog)
	check()
}
