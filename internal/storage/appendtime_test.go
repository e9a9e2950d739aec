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

// TestR176_AppendTimeAt: it is the time of the record where the client's clock is right; one that is wrong moves it within the bounds that the
// broker knows, also after a restart, which has to guess the times of the active segment.
func TestR176_AppendTimeAt(t *testing.T) {
	const batches = 30
	at := func(n int) time.Time { return testDay.Add(time.Duration(n) * time.Minute) }
	for name, stamp := range map[string]func(n int) int64{
		"right":  func(n int) int64 { return at(n).UnixMilli() },
		"future": func(int) int64 { return testDay.AddDate(1, 0, 0).UnixMilli() },
		"past":   func(int) int64 { return 5 },
	} {
		t.Run(name, func(t *testing.T) {
			fsys := systest.NewFS(1)
			d := newTestDir(t, fsys)
			l := openTestLog(t, d, smallLog)
			for n := range batches {
				if _, err := l.Append(0, testBatch(uint64(n), 1, 100, stamp(n)), at(n)); err != nil {
					t.Fatal(err)
				}
			}
			check := func() {
				t.Helper()
				for n := range batches {
					got, ok, err := l.AppendTimeAt(kafka.Offset(n), l.End())
					if !ok || err != nil {
						t.Fatalf("offset %d: %v %v", n, ok, err)
					}
					if off := got.Sub(at(n)).Abs(); name == "right" && off != 0 || off > 8*time.Minute {
						t.Errorf("offset %d: appended at %v, said %v", n, at(n), got)
					}
				}
				if _, ok, err := l.AppendTimeAt(batches, l.End()); ok || err != nil {
					t.Errorf("at the end: %v %v", ok, err)
				}
				if _, ok, err := l.AppendTimeAt(4, 4); ok || err != nil {
					t.Errorf("above what may be seen: %v %v", ok, err)
				}
			}
			check()
			closeClean(t, d)
			l = openTestLog(t, newTestDir(t, fsys), smallLog)
			check()
		})
	}
}
