package storage

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/recordid"
	"strandline.dev/internal/sys/systest"
)

const (
	testIDHeader = "record-id"
	testIDWindow = 2 * time.Minute
)

// idBatch has one record for each id.
func idBatch(codec record.Codec, ids ...string) record.Batch {
	bu := record.NewBuilder(codec)
	for _, id := range ids {
		bu.Add(1, nil, []byte("value of "+id), []record.Header{{Key: testIDHeader, Value: []byte(id)}})
	}
	return bu.Build()
}

func appendIDs(t testing.TB, l *Log, at time.Time, ids ...string) Appended {
	t.Helper()
	b := idBatch(record.None, ids...)
	carried, err := recordid.Read(b, testIDHeader, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.AppendIdentified(1, b, carried, at)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// whereIs is the offset that a repeat of the id would be answered with, or NoOffset.
func whereIs(t testing.TB, l *Log, id string) kafka.Offset {
	t.Helper()
	v, err := l.JudgeRecordIDs([]recordid.Carried{{ID: recordid.Hash([]byte(id))}}, 1)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return v.Base
}

func wantIDs(t testing.TB, l *Log, want map[string]kafka.Offset) {
	t.Helper()
	for id, offset := range want {
		if got := whereIs(t, l, id); got != offset {
			t.Errorf("id %s: offset %d, want %d", id, got, offset)
		}
	}
}

func loadIDs(t testing.TB, l *Log) {
	t.Helper()
	if err := l.LoadRecordIDs(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func openIDLog(t testing.TB, d *Dir, fsys *systest.FS) *Log {
	t.Helper()
	l := openTestLog(t, d, smallLog)
	if l.KeepRecordIDs(testIDWindow, testIDHeader) {
		loadIDs(t, l)
	}
	return l
}

// TestI12_RecordIDsAreReadBack: after a restart, clean or not, the log knows the ids of one window counted from its newest append time, whatever
// this node's clock says and however long it was down, and forgets them one window later.
func TestI12_RecordIDsAreReadBack(t *testing.T) {
	for _, clean := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			fsys := systest.NewFS(1)
			d := newTestDir(t, fsys)
			l := openIDLog(t, d, fsys)
			for i := range 40 {
				appendIDs(t, l, testDay.Add(time.Duration(i)*10*time.Second), fmt.Sprint(i))
				time.Sleep(10 * time.Second)
			}
			// 0 to 39, ten seconds apart: 28 is younger than two minutes now.
			wantIDs(t, l, map[string]kafka.Offset{"27": -1, "28": -1, "29": 29, "39": 39})
			if err := l.Sync(); err != nil {
				t.Fatal(err)
			}
			if clean {
				if err := d.Close(CloseOptions{Clean: true}); err != nil {
					t.Fatal(err)
				}
			} else {
				fsys = fsys.Crash(systest.LoseAll)
			}
			time.Sleep(time.Hour)
			d = newTestDir(t, fsys)
			l = openIDLog(t, d, fsys)
			if !clean {
				// The append times of the last segments are not known after a crash: they count from later, never from earlier.
				wantIDs(t, l, map[string]kafka.Offset{"29": 29, "39": 39})
				return
			}
			wantIDs(t, l, map[string]kafka.Offset{"26": -1, "28": 28, "29": 29, "39": 39})
			time.Sleep(testIDWindow - time.Second)
			wantIDs(t, l, map[string]kafka.Offset{"29": -1, "39": 39})
			time.Sleep(time.Second)
			wantIDs(t, l, map[string]kafka.Offset{"39": -1})
			if n, ready := l.RecordIDs(); n != 0 || !ready {
				t.Errorf("%d ids, ready %v", n, ready)
			}
			if n := d.recordIDs.Load(); n != 0 {
				t.Errorf("the directory counts %d ids", n)
			}
		})
	}
}

// TestI12_WallClockForgetsNothing: the broker's clock steps by a day; what was just appended is remembered for its window all the same.
func TestI12_WallClockForgetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openIDLog(t, newTestDir(t, systest.NewFS(1)), nil)
		appendIDs(t, l, testDay, "a")
		time.Sleep(time.Second)
		appendIDs(t, l, testDay.Add(24*time.Hour), "b")
		appendIDs(t, l, testDay.Add(-24*time.Hour), "c")
		time.Sleep(testIDWindow - 2*time.Second)
		wantIDs(t, l, map[string]kafka.Offset{"a": 0, "b": 1, "c": 2})
		time.Sleep(time.Second)
		wantIDs(t, l, map[string]kafka.Offset{"a": -1, "b": 1, "c": 2})
	})
}

// TestI12_FollowerRemembersWhatItCopies, in any compression, and forgets what it cuts off, what is deleted, and all of it at a reset.
func TestI12_FollowerRemembersWhatItCopies(t *testing.T) {
	for _, codec := range []record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4, record.Zstd} {
		d := newTestDir(t, systest.NewFS(1))
		l := openIDLog(t, d, nil)
		var batches []byte
		for i, ids := range [][]string{{"a", "b"}, {"c"}, {"d", "e", "f"}} {
			b := idBatch(codec, ids...)
			b.SetBaseOffset([]kafka.Offset{0, 2, 3}[i])
			b.SetLeaderEpoch(1)
			batches = append(batches, b...)
		}
		if _, err := l.AppendReplicated(batches, testDay); err != nil {
			t.Fatal(err)
		}
		wantIDs(t, l, map[string]kafka.Offset{"a": 0, "b": 1, "c": 2, "d": 3, "f": 5})
		if err := l.TruncateTo(3); err != nil {
			t.Fatal(err)
		}
		wantIDs(t, l, map[string]kafka.Offset{"b": 1, "c": 2, "d": -1, "f": -1})
		if err := l.AdvanceStart(2); err != nil {
			t.Fatal(err)
		}
		wantIDs(t, l, map[string]kafka.Offset{"a": -1, "b": -1, "c": 2})
		if err := l.Reset(9); err != nil {
			t.Fatal(err)
		}
		wantIDs(t, l, map[string]kafka.Offset{"c": -1})
		if n := d.recordIDs.Load(); n != 0 {
			t.Errorf("the directory counts %d ids", n)
		}
	}
}

// TestI12_NothingIsJudgedBeforeTheIDsAreRead: until the load is done repeats could not be told, so none are judged. What is appended meanwhile
// comes behind what is read, and a cut while it is read makes the load begin anew.
func TestI12_NothingIsJudgedBeforeTheIDsAreRead(t *testing.T) {
	d := newTestDir(t, systest.NewFS(1))
	l := openTestLog(t, d, smallLog)
	for i := range 30 {
		appendIDs(t, l, testDay, fmt.Sprint(i))
	}
	if !l.KeepRecordIDs(testIDWindow, testIDHeader) {
		t.Fatal("a log with records has nothing to read")
	}
	if _, err := l.JudgeRecordIDs([]recordid.Carried{{}}, 1); !errors.Is(err, ErrIDsLoading) {
		t.Fatalf("judged while loading: %v", err)
	}
	cutting, due, err := l.planIDs()
	if err != nil || !due {
		t.Fatal(due, err)
	}
	appendIDs(t, l, testDay, "during")
	if err := l.TruncateTo(20); err != nil {
		t.Fatal(err)
	}
	appendIDs(t, l, testDay, "instead")
	if err := l.readIDs(t.Context(), cutting); err != nil {
		t.Fatal(err)
	}
	if l.finishIDs(cutting) {
		t.Fatal("a load that the log was cut under counts")
	}
	again, _, err := l.planIDs()
	if err != nil {
		t.Fatal(err)
	}
	appendIDs(t, l, testDay, "behind", "3")
	if err := l.AdvanceStart(2); err != nil {
		t.Fatal(err)
	}
	if err := l.readIDs(t.Context(), again); err != nil || !l.finishIDs(again) {
		t.Fatal("the load did not end", err)
	}
	wantIDs(t, l, map[string]kafka.Offset{"1": -1, "2": 2, "19": 19, "20": -1, "during": -1, "instead": 20, "behind": 21, "3": 22})

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if !l.KeepRecordIDs(2*testIDWindow, testIDHeader) {
		t.Error("a longer window does not have older ids read")
	}
	if err := l.LoadRecordIDs(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	loadIDs(t, l)
	if l.KeepRecordIDs(testIDWindow, testIDHeader) {
		t.Error("a shorter window has ids read")
	}
	if !l.KeepRecordIDs(testIDWindow, "ce_id") {
		t.Error("another header does not have ids read")
	}
	loadIDs(t, l)
	wantIDs(t, l, map[string]kafka.Offset{"instead": -1})
	l.KeepRecordIDs(0, testIDHeader)
	if n, ready := l.RecordIDs(); n != 0 || ready || d.recordIDs.Load() != 0 {
		t.Errorf("switched off: %d ids, ready %v, the directory counts %d", n, ready, d.recordIDs.Load())
	}
}

// TestI14_FullRecordIDsRefuse: at the bound of the directory new ids are refused and repeats are answered; what is copied is taken. At the bound
// of the log it is the same, and a batch that can never fit is refused for good.
func TestI14_FullRecordIDsRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTestDir(t, systest.NewFS(1))
		l := openIDLog(t, d, nil)
		appendIDs(t, l, testDay, "a", "b")
		d.recordIDs.Add(recordIDsMax - 2)
		fresh := []recordid.Carried{{ID: recordid.Hash([]byte("x"))}}
		if _, err := l.JudgeRecordIDs(fresh, 1); !errors.Is(err, ErrIDsFull) {
			t.Errorf("the directory is full: %v", err)
		}
		wantIDs(t, l, map[string]kafka.Offset{"a": 0, "b": 1})
		b := idBatch(record.None, "x")
		b.SetBaseOffset(2)
		b.SetLeaderEpoch(1)
		if _, err := l.AppendReplicated(b, testDay); err != nil {
			t.Errorf("a follower at the bound: %v", err)
		}
		time.Sleep(testIDWindow)
		if _, err := l.JudgeRecordIDs(fresh, 1); err != nil {
			t.Errorf("after the window: %v", err)
		}
		d.recordIDs.Add(2 - recordIDsMax)
		huge := make([]recordid.Carried, recordid.IDsMax+1)
		for i := range huge {
			huge[i].ID = recordid.ID{byte(i), byte(i >> 8), byte(i >> 16)}
		}
		if _, err := l.JudgeRecordIDs(huge, int32(len(huge))); !errors.Is(err, ErrTooLarge) {
			t.Errorf("more ids than a log remembers: %v", err)
		}
		l.mu.ids.table.Note(3, huge[:recordid.IDsMax-1], l.mu.ids.now())
		if _, err := l.JudgeRecordIDs(append(fresh, fresh[0], recordid.Carried{ID: recordid.Hash([]byte("y"))}), 3); !errors.Is(err, ErrIDsFull) {
			t.Errorf("the log is full: %v", err)
		}
		if _, err := l.JudgeRecordIDs(fresh, 1); err != nil {
			t.Errorf("one more fits: %v", err)
		}
	})
}
