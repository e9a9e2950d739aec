package storage

import (
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// newFewFilesDir opens a directory with goroutines that may have 16 segment files open.
func newFewFilesDir(t *testing.T, fsys *systest.FS) *Dir {
	t.Helper()
	d, err := OpenDir(DirOptions{
		Machine: systest.Machine(fsys, nil, systest.NewWall(testDay)), Path: testRoot, Metrics: testMetrics, OpenFilesMax: 16,
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// openMany opens n logs.
func openMany(t *testing.T, d *Dir, n int, o LogOptions) []*Log {
	t.Helper()
	logs := make([]*Log, n)
	for i := range logs {
		var err error
		if logs[i], err = d.OpenLog(kafka.TopicPartition{Topic: testTP.Topic, Partition: int32(i)}, o); err != nil {
			t.Fatal(err)
		}
	}
	return logs
}

// TestC090_SegmentFilesAreBounded writes to many more logs than files may be open, under both policies, and again after a kill, when
// every log has a file to be synced.
func TestC090_SegmentFilesAreBounded(t *testing.T) {
	for _, policy := range []FlushPolicy{Synced, Replicated} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { boundedFiles(t, policy) })
		})
	}
}

func boundedFiles(t *testing.T, policy FlushPolicy) {
	const many = 100
	fsys := systest.NewFS(1)
	d := newFewFilesDir(t, fsys)
	check := func() {
		t.Helper()
		if n := d.openFiles.Load(); n > d.openFiles.max {
			t.Fatalf("%d segment files are open, of at most %d", n, d.openFiles.max)
		}
	}
	logs := openMany(t, d, many, LogOptions{Policy: policy})
	synctest.Wait()
	if n := d.openFiles.Load(); n != 0 {
		t.Errorf("%d files are open of logs that nobody wrote to", n)
	}
	if err := errors.Join(d.CommitBootID(), d.SavePoints(nil)); err != nil {
		t.Fatal(err)
	}
	fsys.Hook(func(op systest.Op) error {
		if op.Kind == systest.OpSync || op.Kind == systest.OpWrite {
			check()
		}
		return nil
	})
	for range 3 {
		for _, l := range logs {
			if err := d.AwaitFiles(); err != nil {
				t.Fatal(err)
			}
			mustAppend(t, l, 0, testBatch(1, 1, 100, 0))
		}
	}
	synctest.Wait()
	for range idleSweeps + 1 {
		d.CloseIdle()
	}
	if n := d.openFiles.Load(); policy == Synced && n != 0 {
		t.Errorf("%d files are open of idle logs", n)
	}

	for _, l := range logs { // by now, no sync point says so
		if err := d.AwaitFiles(); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, 0, testBatch(1, 1, 100, 0))
	}
	synctest.Wait()
	fsys = fsys.Crash(systest.KillProcess)
	stopDir(t, d)
	reopenFew(t, fsys, many, policy)
}

// reopenFew opens the logs after a kill: each has a file that no sync point covers.
func reopenFew(t *testing.T, fsys *systest.FS, many int, policy FlushPolicy) {
	var d *Dir
	check := func() {
		t.Helper()
		if d != nil && d.openFiles.Load() > d.openFiles.max {
			t.Fatalf("%d segment files are open, of at most %d", d.openFiles.Load(), d.openFiles.max)
		}
	}
	fsys.Hook(func(op systest.Op) error {
		if op.Kind == systest.OpRead {
			check()
		}
		return nil
	})
	d = newFewFilesDir(t, fsys)
	logs := openMany(t, d, many, LogOptions{Policy: policy})
	synctest.Wait()
	check()
	for _, l := range logs {
		if l.StoredEnd() != 4 || l.Damaged() != nil {
			t.Fatalf("%v: stored %d, damaged %v", l.tp, l.StoredEnd(), l.Damaged())
		}
		if _, err := readAll(l, 4, 500); err != nil {
			t.Fatal(err)
		}
		check()
	}
	stopDir(t, d)
}

// stopDir ends the goroutines of a directory, whatever has become of its disk.
func stopDir(t *testing.T, d *Dir) {
	t.Helper()
	if err := d.Close(CloseOptions{}); err != nil && !errors.Is(err, systest.ErrCrashed) {
		t.Fatal(err)
	}
}

// TestC090_AwaitFiles: whoever waits for room goes on after a sync round, and is refused when there is none in time.
func TestC090_AwaitFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := systest.NewFS(1)
		d := newFewFilesDir(t, fsys)
		defer stopDir(t, d)
		logs := openMany(t, d, 16, LogOptions{})
		synctest.Wait()
		slow := time.Second
		var latency atomic.Int64 // of a sync, in ns; the syncer reads it
		latency.Store(int64(slow))
		fsys.SetLatency(func(op systest.Op) time.Duration {
			if op.Kind == systest.OpSync || op.Kind == systest.OpSyncAll {
				return time.Duration(latency.Load())
			}
			return 0
		})
		write := func() (accepted int, err error) {
			for _, l := range logs {
				if err := d.AwaitFiles(); err != nil {
					return accepted, err
				}
				mustAppend(t, l, 0, testBatch(1, 1, 100, 0))
				accepted++
			}
			return accepted, nil
		}
		began := time.Now()
		if _, err := write(); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < slow || waited > filesWaitMax {
			t.Errorf("16 appends took %v: want a wait for a sync of %v", waited, slow)
		}
		time.Sleep(time.Minute) // all is synced, and closed but for what may stay open
		slow = 10 * filesWaitMax
		latency.Store(int64(slow))
		if n, err := write(); !errors.Is(err, ErrTooManyFiles) || n < 4 {
			t.Errorf("on a disk that hangs: %d appends, then %v", n, err)
		}
		began = time.Now()
		time.AfterFunc(time.Second, d.HurryFiles)
		if err := d.AwaitFiles(); !errors.Is(err, ErrTooManyFiles) || time.Since(began) > time.Second {
			t.Errorf("a stop after a second: %v after %v", err, time.Since(began))
		}
		time.Sleep(10 * slow)
	})
}

// TestI11_WantOfDescriptorsIsNoFailedSync: a sync that could not be begun is tried again; one that failed at the same time is final.
func TestI11_WantOfDescriptorsIsNoFailedSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := systest.NewFS(1)
		d := newFewFilesDir(t, fsys)
		defer d.Close(CloseOptions{}) //nolint:errcheck // one log has failed
		var short atomic.Bool
		var broken atomic.Value // a path; the syncer reads both
		short.Store(true)
		broken.Store("")
		fsys.Hook(func(op systest.Op) error {
			switch {
			case op.Kind == systest.OpSync && op.Name == broken.Load():
				return syscall.EIO
			case short.Load() && (op.Kind == systest.OpSyncDir || op.Kind == systest.OpSyncAll):
				return &errnoPath{op.Name}
			}
			return nil
		})
		logs := openMany(t, d, 12, smallLog)
		for _, l := range logs[1:] {
			fill(t, l, 20) // rolls: names and .meta files, too
		}
		broken.Store(logs[0].activeLocked().path)
		fill(t, logs[0], 1)
		time.Sleep(3 * postponedPause)
		for i, l := range logs {
			if i > 0 && (l.Damaged() != nil || l.StoredEnd() != 0) {
				t.Fatalf("log %d without descriptors: stored %d, damaged %v", i, l.StoredEnd(), l.Damaged())
			}
		}
		if err := logs[1].Sync(); !sys.IsTooManyFiles(err) {
			t.Errorf("Sync without descriptors = %v", err)
		}
		short.Store(false)
		time.Sleep(3 * postponedPause)
		for i, l := range logs {
			if i > 0 && (l.Damaged() != nil || l.StoredEnd() != 20) {
				t.Errorf("log %d: stored %d, damaged %v", i, l.StoredEnd(), l.Damaged())
			}
		}
		if logs[0].Damaged() == nil {
			t.Error("a failed sync was forgotten")
		}
	})
}

// errnoPath is an open that failed for want of a descriptor.
type errnoPath struct{ name string }

func (e *errnoPath) Error() string { return "open " + e.name + ": too many open files" }
func (e *errnoPath) Unwrap() error { return syscall.EMFILE }
