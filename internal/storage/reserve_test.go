package storage

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// newReserveDir opens a directory that keeps a reserve, without goroutines.
func newReserveDir(t testing.TB, fsys *systest.FS) *Dir {
	t.Helper()
	d, err := openDir(DirOptions{
		Machine: systest.Machine(fsys, nil, systest.NewWall(testDay)), Path: testRoot,
		Metrics: metrics.New().Storage, ReserveBytes: ReserveBytesDefault,
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// fillDisk appends batches until the disk is full, then takes the last bytes with a foreign file.
func fillDisk(t testing.TB, fsys *systest.FS, l *Log) {
	t.Helper()
	for size := 64 << 10; size > 0; size /= 2 {
		for i := uint64(0); ; i++ {
			if _, err := l.Append(0, testBatch(i, 1, size, 0), testDay); err != nil {
				wantErr(t, err, ErrNoSpace)
				break
			}
		}
	}
	f, err := fsys.OpenFile("/foreign", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 8<<20), 0); !sys.IsNoSpace(err) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// freeOf is the room on the disk.
func freeOf(t testing.TB, fsys *systest.FS) int64 {
	t.Helper()
	s, err := fsys.Space(testRoot)
	if err != nil {
		t.Fatal(err)
	}
	return s.Usable
}

func reserveLen(fsys *systest.FS) int64 { return int64(len(fsys.Files()[dirFile(reserveFile)])) }

func wantRefused(t testing.TB, d *Dir, l *Log, refused bool) {
	t.Helper()
	measure(d)
	_, err := l.Append(0, testBatch(1, 1, 10, 0), testDay)
	if refused && (!errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), testRoot)) || !refused && err != nil {
		t.Fatalf("append: %v, want refused %t", err, refused)
	}
	if spent := testutil.ToFloat64(d.metrics.PublishesRefused) == 1; spent != refused || (d.Refusal() != nil) != refused {
		t.Fatalf("metric %t, refusal %v; want %t", spent, d.Refusal(), refused)
	}
}

var oneMeg = LogOptions{SegmentBytes: 1 << 20}

// TestC034_EverythingThatMustGoOnDoes: on a disk that records filled to the last byte, and at each start on it after whatever crash, the
// essential logs take appends, a log's start can be raised and logs dropped, records can be read, and only user records are refused, until
// there is room.
func TestC034_EverythingThatMustGoOnDoes(t *testing.T) {
	fsys := systest.NewFS(1)
	fsys.SetFree(16 << 20)
	d := newReserveDir(t, fsys)
	l := openTestLog(t, d, oneMeg)
	d.KeepReserve(t.Context())
	if got, want := reserveLen(fsys), int64(16<<20/reserveFraction); got != want {
		t.Fatalf("the reserve has %d bytes, want %d", got, want)
	}
	fillDisk(t, fsys, l)
	d.syncer.runAll()
	stored := l.StoredEnd()
	// Periodic writes do not spend it.
	if err := d.SavePoints(nil); !sys.IsNoSpace(err) || reserveLen(fsys) == 0 {
		t.Fatalf("sync point: %v, reserve %d", err, reserveLen(fsys))
	}
	if d.KeepReserve(t.Context()); reserveLen(fsys) != d.reserve.size {
		t.Fatalf("looking after the reserve left %d bytes of it", reserveLen(fsys))
	}
	free := freeOf(t, fsys)
	for _, mode := range []systest.CrashMode{systest.KillProcess, systest.LoseAll, systest.Random, systest.KeepAll} {
		fsys := fsys.Clone(mode)
		fsys.SetFree(free)
		d := newReserveDir(t, fsys)
		l := openTestLog(t, d, oneMeg)
		m, err := d.OpenMetadataLog(oneMeg)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			mustAppend(t, m, 0, testBatch(1, 1, 1000, 0))
		}
		if err := m.Sync(); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, d, l, true)
		if _, err := readAll(l, stored, 1<<20); err != nil {
			t.Fatalf("%s: read: %v", mode, err)
		}

		// Killed with the reserve spent: the next start has none, refuses from the beginning, and goes on in what is left.
		left := freeOf(t, fsys)
		next := fsys.Clone(systest.KillProcess)
		next.SetFree(left)
		d = newReserveDir(t, next)
		l = openTestLog(t, d, oneMeg)
		if m, err = d.OpenMetadataLog(oneMeg); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, m, 0, testBatch(1, 1, 10, 0))
		d.KeepReserve(t.Context())
		wantRefused(t, d, l, true)

		start, err := l.ApplyRetention(RetentionPolicy{Bytes: 4 << 20}, stored, testDay)
		if err != nil || start == 0 {
			t.Fatalf("%s: retention: start %d, %v", mode, start, err)
		}
		wantRefused(t, d, l, true)
		d.KeepReserve(t.Context())
		if err := l.AdvanceStart(l.End()); err != nil {
			t.Fatalf("%s: delete records: %v", mode, err)
		}
		wantRefused(t, d, l, false)
		if got := reserveLen(next); got != d.reserve.size {
			t.Fatalf("%s: the reserve has %d bytes, want %d", mode, got, d.reserve.size)
		}
	}
}

// TestC034_DeletionNeedsNoRoom: with not one byte free and the reserve whole, deleting records, retention and dropping a log work.
func TestC034_DeletionNeedsNoRoom(t *testing.T) {
	for what, free := range map[string]func(d *Dir, l *Log) error{
		"delete records": func(_ *Dir, l *Log) error { return l.AdvanceStart(l.End()) },
		"retention": func(_ *Dir, l *Log) error {
			_, err := l.ApplyRetention(RetentionPolicy{Age: time.Hour}, l.End(), testDay.Add(2*time.Hour))
			return err
		},
		"drop":  func(d *Dir, l *Log) error { return dropTestLog(d) },
		"reset": func(_ *Dir, l *Log) error { return l.Reset(5) },
		"cut":   func(_ *Dir, l *Log) error { return l.TruncateTo(1) },
	} {
		fsys := systest.NewFS(1)
		fsys.SetFree(16 << 20)
		d := newReserveDir(t, fsys)
		l := openTestLog(t, d, oneMeg)
		d.KeepReserve(t.Context())
		fillDisk(t, fsys, l)
		d.syncer.runAll()
		if err := free(d, l); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := freeOf(t, fsys); got < 10<<20 {
			t.Fatalf("%s: %d bytes free", what, got)
		}
		d.KeepReserve(t.Context())
		measure(d)
		if err := d.Refusal(); err != nil {
			t.Fatalf("%s: still refused: %v", what, err)
		}
	}
}

// TestC034_RetentionFinishesWhatAFullDiskStopped: without any reserve a start that could not be saved is saved later, and its segments go.
func TestC034_RetentionFinishesWhatAFullDiskStopped(t *testing.T) {
	fsys := systest.NewFS(1)
	fsys.SetFree(8 << 20)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, oneMeg)
	fillDisk(t, fsys, l)
	policy := RetentionPolicy{Bytes: 2 << 20}
	if _, err := l.ApplyRetention(policy, l.End(), testDay); err != nil {
		wantErr(t, err, ErrNoSpace)
		fsys.SetFree(1 << 20)
		if _, err := l.ApplyRetention(policy, l.End(), testDay); err != nil {
			t.Fatal(err)
		}
	}
	if got := freeOf(t, fsys); got < 4<<20 {
		t.Fatalf("%d bytes free", got)
	}
}

// TestReserve_WrittenBesideRecords: it continues what is there, never takes the last bytes, stops when told to, and is written from the
// beginning after a sync that failed. While it is being written records are taken as long as both fit.
func TestReserve_WrittenBesideRecords(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newReserveDir(t, fsys)
	l := openTestLog(t, d, LogOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	pieces, failing := 0, false
	fsys.Hook(func(op systest.Op) error {
		if op.Name != dirFile(reserveFile) || op.Kind != systest.OpSync {
			return nil
		}
		if failing {
			return syscall.EIO
		}
		if pieces++; pieces == 3 {
			cancel()
		}
		return nil
	})
	d.KeepReserve(ctx)
	if got := reserveLen(fsys); got != 3*reservePiece {
		t.Fatalf("%d bytes when it was stopped after three pieces", got)
	}
	wantRefused(t, d, l, false)
	failing = true
	d.KeepReserve(t.Context())
	if got := reserveLen(fsys); got != 0 {
		t.Fatalf("%d bytes are left of a reserve whose sync failed", got)
	}
	failing = false
	fsys.SetFree(ReserveBytesDefault + 10)
	d.KeepReserve(t.Context())
	if got := reserveLen(fsys); got != 0 {
		t.Fatalf("%d bytes of %d taken for the reserve", got, ReserveBytesDefault+10)
	}
	wantRefused(t, d, l, true)
	fsys.SetFree(3 * ReserveBytesDefault)
	d.KeepReserve(t.Context())
	wantRefused(t, d, l, false)
	if got := reserveLen(fsys); got != ReserveBytesDefault || pieces != 3+ReserveBytesDefault/reservePiece {
		t.Fatalf("%d bytes in %d pieces", got, pieces)
	}
	// An operator who needs the room may remove it: it comes back.
	if err := fsys.Remove(dirFile(reserveFile)); err != nil {
		t.Fatal(err)
	}
	fsys.SetFree(100)
	d.KeepReserve(t.Context())
	wantRefused(t, d, l, true)
}

// TestReserve_SpentByManyAtOnce: writers that meet the full disk together all find the room, also while the reserve is being written.
func TestReserve_SpentByManyAtOnce(t *testing.T) {
	fsys := systest.NewFS(1)
	fsys.SetFree(32 << 20)
	d := newReserveDir(t, fsys)
	d.KeepReserve(t.Context())
	l := openTestLog(t, d, LogOptions{})
	fillDisk(t, fsys, l)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			o := LogOptions{Essential: true}
			e, err := d.OpenLog(kafka.TopicPartition{Topic: kafka.TopicID{9}, Partition: int32(i)}, o)
			if err == nil {
				_, err = e.Append(0, testBatch(1, 1, 1000, 0), testDay)
			}
			if err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() { d.KeepReserve(t.Context()) })
	}
	wg.Wait()
	wantRefused(t, d, l, true)
}
