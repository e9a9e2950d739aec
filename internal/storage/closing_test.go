package storage

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
)

func numbered(i int) kafka.TopicPartition {
	return kafka.TopicPartition{Topic: kafka.TopicID{1, 2, 3}, Partition: int32(i)}
}

// openNumbered opens n logs. Written ones take a few batches of a producer each.
func openNumbered(t testing.TB, d *Dir, n int, written bool) []*Log {
	t.Helper()
	logs := make([]*Log, n)
	for i := range logs {
		l, err := d.OpenLog(numbered(i), smallLog)
		if err != nil {
			t.Fatal(err)
		}
		logs[i] = l
		for sequence := int32(0); written && sequence < 20; sequence++ {
			mustAppend(t, l, 1, producerBatch(kafka.ProducerID(i), 0, sequence, 1))
		}
	}
	return logs
}

// stopped is a directory of n logs after a clean stop; every third one is empty.
func stopped(t testing.TB, n int) *systest.FS {
	t.Helper()
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	for i, l := range openNumbered(t, d, n, false) {
		if i%3 > 0 {
			fill(t, l, 30)
		}
	}
	closeClean(t, d)
	return fsys
}

func TestAStopDoesNothingForALogThatNobodyWroteTo(t *testing.T) {
	ops := func(n int) (changing int64, seen []string) {
		fsys := stopped(t, n)
		d := newTestDir(t, fsys)
		openNumbered(t, d, n, false)
		before := fsys.Ops()
		fsys.Hook(func(op systest.Op) error {
			if op.N > 0 {
				seen = append(seen, op.String())
			}
			return nil
		})
		closeClean(t, d)
		return fsys.Ops() - before, seen
	}
	none, _ := ops(0)
	if many, seen := ops(50); many != none {
		t.Fatalf("a stop takes %d changing operations with 50 idle logs and %d with none:\n%s", many, none, strings.Join(seen, "\n"))
	}
}

func TestAStopSyncsTheCachesOfManyLogsAtOnce(t *testing.T) {
	const logs = 50
	fsys := stopped(t, logs)
	d := newTestDir(t, fsys)
	for _, l := range openNumbered(t, d, logs, true) {
		if err := errors.Join(l.Sync(), l.writeCachesIO()); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, 1, testBatch(9, 1, 100, testDay.UnixMilli()))
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	syncs := 0
	fsys.Hook(func(op systest.Op) error {
		if op.Kind == systest.OpSync || op.Kind == systest.OpSyncDir || op.Kind == systest.OpSyncAll {
			syncs++
		}
		return nil
	})
	closeClean(t, d)
	// Two for the caches; two each for the sync point, its copy and the marker.
	if syncs > 8 {
		t.Fatalf("%d syncs at the stop of %d logs that were written to", syncs, logs)
	}
	after := fsys.Crash(systest.LoseAll)
	read := segmentReads(t, after, logs)
	if len(read) > 0 {
		t.Fatalf("the start after a clean stop and a power cut reads segments: %v", read)
	}
}

// segmentReads opens the logs and returns the segment files that this read.
func segmentReads(t *testing.T, fsys *systest.FS, logs int) []string {
	t.Helper()
	var read []string
	fsys.Hook(func(op systest.Op) error {
		if op.Kind == systest.OpRead && strings.HasSuffix(op.Name, logSuffix) {
			read = append(read, op.Name)
		}
		return nil
	})
	openNumbered(t, newTestDir(t, fsys), logs, false)
	return read
}

func TestAStopThatCannotSyncTheWholeFileSystemSyncsEachCache(t *testing.T) {
	const logs = 10
	for _, refusal := range []error{errors.ErrUnsupported, syscall.EIO} {
		fsys := systest.NewFS(1)
		d := newTestDir(t, fsys)
		for _, l := range openNumbered(t, d, logs, true) {
			if err := l.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		hidden := &systest.SyncFault{Name: "/nothing", Err: refusal, Hidden: true}
		fsys.Hook(func(op systest.Op) error {
			if op.Kind == systest.OpSyncAll {
				return hidden
			}
			return nil
		})
		closeClean(t, d)
		if read := segmentReads(t, fsys.Crash(systest.LoseAll), logs); len(read) > 0 {
			t.Fatalf("%v: the start reads segments: %v", refusal, read)
		}
	}
}

// TestC048_ACrashAnywhereInAStopLosesNoProducer: caches are put in place together, and a power cut may come between any two steps.
func TestC048_ACrashAnywhereInAStopLosesNoProducer(t *testing.T) {
	const logs = 4
	prepare := func() (*systest.FS, *Dir) {
		fsys := systest.NewFS(7)
		d := newTestDir(t, fsys)
		for _, l := range openNumbered(t, d, logs, true) {
			if err := errors.Join(l.Sync(), l.AdvanceStart(15)); err != nil { // producers' first batches are gone
				t.Fatal(err)
			}
		}
		return fsys, d
	}
	for n := int64(1); ; n++ {
		fsys, d := prepare()
		fsys.CrashAt(fsys.Ops() + n)
		err := d.Close(CloseOptions{Clean: true})
		crashed := fsys.Crashed()
		if crashed == (err == nil) {
			t.Fatalf("operation %d: crashed %v, error %v", n, crashed, err)
		}
		for _, mode := range []systest.CrashMode{systest.LoseAll, systest.KeepAll, systest.Random} {
			next := newTestDir(t, fsys.Clone(mode))
			for i, l := range openNumbered(t, next, logs, false) {
				if p := l.Producers(); l.End() != 20 || l.Damaged() != nil || len(p) != 1 || p[0].Batches[len(p[0].Batches)-1].LastSequence != 19 {
					t.Fatalf("operation %d, %v: log %d ends at %d, damaged %v, producers %+v", n, mode, i, l.End(), l.Damaged(), p)
				}
			}
		}
		if !crashed {
			return
		}
	}
}

func TestAFullDiskIsOneLogLineForAllCacheFiles(t *testing.T) {
	const logs = 12
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	var out bytes.Buffer
	d.log = slog.New(slog.NewTextHandler(&out, nil))
	for _, l := range openNumbered(t, d, logs, true) {
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	fsys.SetFree(0)
	if err := d.Close(CloseOptions{Clean: true}); err == nil {
		t.Fatal("the sync point found room")
	}
	if n := strings.Count(out.String(), "could not be written"); n != 1 || !strings.Contains(out.String(), "no space left") {
		t.Fatalf("%d lines about cache files:\n%s", n, out.String())
	}
	if temps := temporaries(fsys); len(temps) > 0 {
		t.Fatalf("left behind: %v", temps)
	}
}

func temporaries(fsys *systest.FS) (names []string) {
	for name := range fsys.Files() {
		if strings.HasSuffix(name, tempSuffix) {
			names = append(names, name)
		}
	}
	return names
}
