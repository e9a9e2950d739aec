package storage

import (
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
)

// TestI12_ACutThroughTheStartKeepsProducers crashes a cut that empties a log at each file operation. A producer whose records were
// deleted before is still known: its retry is no new batch.
func TestI12_ACutThroughTheStartKeepsProducers(t *testing.T) {
	done := false
	for at := int64(1); !done; at++ {
		for _, mode := range []systest.CrashMode{systest.KillProcess, systest.LoseAll, systest.KeepAll, systest.Random} {
			fsys := systest.NewFS(uint64(at))
			d := newTestDir(t, fsys)
			l := openTestLog(t, d, smallLog)
			mustAppend(t, l, 0, producerBatch(1, 0, 0, 2))
			mustAppend(t, l, 0, producerBatch(2, 0, 0, 3)) // the start will lie in it
			d.syncer.runAll()
			if err := l.AdvanceStart(3); err != nil {
				t.Fatal(err)
			}
			fsys.CrashAt(fsys.Ops() + at)
			err := l.TruncateTo(4)
			done = err == nil && !fsys.Crashed()
			for range 2 {
				next := fsys.Crash(mode)
				again := openTestLog(t, openTestDir(t, next), smallLog)
				if again.Damaged() != nil || again.Start() != 3 {
					t.Fatalf("crash at operation %d, %v: start %d, damaged: %v", at, mode, again.Start(), again.Damaged())
				}
				b := producerBatch(1, 0, 0, 2)
				if c, err := again.CheckSequence(b, testDay); err != nil || !c.Duplicate || c.Base != 0 {
					t.Fatalf("crash at operation %d, %v: the first producer is forgotten: %+v, %v", at, mode, c, err)
				}
				// The second's batch is there as long as the cut has not happened, and else gone with what is known of it.
				if c, err := again.CheckSequence(producerBatch(2, 0, 0, 3), testDay); err != nil || c.Duplicate != (again.End() == 5) {
					t.Fatalf("crash at operation %d, %v: end %d, second producer %+v, %v", at, mode, again.End(), c, err)
				}
				fsys = next
			}
		}
	}
}

// TestReset_KeepsNoProducers: a log that is rebuilt knows only what its leader sends, also if a cut was interrupted before.
func TestReset_KeepsNoProducers(t *testing.T) {
	for at := int64(1); at < 60; at++ {
		fsys := systest.NewFS(uint64(at))
		l := openTestLog(t, newTestDir(t, fsys), smallLog)
		mustAppend(t, l, 0, producerBatch(1, 0, 0, 2))
		mustAppend(t, l, 0, producerBatch(2, 0, 0, 3))
		l.dir.syncer.runAll()
		if err := l.AdvanceStart(3); err != nil {
			t.Fatal(err)
		}
		fsys.CrashAt(fsys.Ops() + at)
		_ = l.TruncateTo(4)
		fsys = fsys.Crash(systest.KillProcess)
		l = openTestLog(t, openTestDir(t, fsys), smallLog)
		for _, start := range []kafka.Offset{3, 7} {
			if err := l.Reset(start); err != nil {
				t.Fatal(err)
			}
			again := openTestLog(t, openTestDir(t, fsys.Clone(systest.KillProcess)), smallLog)
			if len(l.Producers()) != 0 || len(again.Producers()) != 0 {
				t.Fatalf("crash at operation %d, reset to %d: producers %+v, after a kill %+v", at, start, l.Producers(), again.Producers())
			}
		}
	}
}

// TestI12_AStartAboveALostTailKeepsProducers: under `replicated` a power cut may take the bytes below a start that was raised. What was on
// disk of a producer is known afterwards, from its snapshot or from its batches.
func TestI12_AStartAboveALostTailKeepsProducers(t *testing.T) {
	done := false
	for at := int64(1); !done; at++ {
		for _, snapshot := range []bool{false, true} {
			fsys := systest.NewFS(uint64(at))
			d := newTestDir(t, fsys)
			l := openTestLog(t, d, LogOptions{Policy: Replicated})
			if err := d.SavePoints(nil); err != nil {
				t.Fatal(err)
			}
			mustAppend(t, l, 0, producerBatch(1, 0, 0, 2))
			if err := l.Sync(); err != nil {
				t.Fatal(err)
			}
			if snapshot {
				l.mu.caches.checkpoint = true
				if err := l.writeCachesIO(); err != nil {
					t.Fatal(err)
				}
			}
			mustAppend(t, l, 0, producerBatch(2, 0, 0, 3))
			if err := l.AdvanceStart(5); err != nil {
				t.Fatal(err)
			}
			next := fsys.Crash(systest.LoseAll)
			next.CrashAt(at)
			if d, err := tryTestDir(next); err == nil {
				_, err = d.OpenLog(testTP, LogOptions{Policy: Replicated})
				done = err == nil && !next.Crashed()
			}
			again := openTestLog(t, openTestDir(t, next.Crash(systest.LoseAll)), LogOptions{Policy: Replicated})
			if again.Start() != 5 || again.End() != 5 || again.Damaged() != nil {
				t.Fatalf("crash at operation %d of the start: [%d, %d), damaged: %v", at, again.Start(), again.End(), again.Damaged())
			}
			if c, err := again.CheckSequence(producerBatch(1, 0, 0, 2), testDay); err != nil || !c.Duplicate {
				t.Fatalf("crash at operation %d of the start, snapshot %v: the producer is forgotten: %+v, %v", at, snapshot, c, err)
			}
		}
	}
}
