package replica

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/sys/systest"
)

func deleted(tp kafka.TopicPartition) metadata.Record {
	return metadata.TopicStateRecord{ID: tp.Topic, State: metadata.StateDeleted, Version: 2, AtMs: 5, PurgeAtMs: 99}
}

// inBubble runs f on a node whose timers run, with fake time.
func inBubble(t *testing.T, f func(w *world, fs *systest.FS, wall *systest.Wall)) {
	synctest.Test(t, func(t *testing.T) {
		fs, wall := systest.NewFS(1), systest.NewTickingWall(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		w := newWorldOn(t, systest.Machine(fs, nil, wall), "/data")
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { w.host.Run(ctx); close(done) }()
		defer func() { // also after Fatal: a bubble must end empty
			cancel()
			<-done
			fs.SetLatency(nil)
			fs.Hook(nil)
			w.stop(false)
		}()
		f(w, fs, wall)
	})
}

// small is a topic whose segments roll after some batches.
func small() config.Topic {
	c := baseConfig()
	c.SegmentBytes = 2048
	c.Retention = time.Hour
	return c
}

// TestI9_RetentionRemovesByAgeAndPausesAfterAClockStep.
func TestI9_RetentionRemovesByAgeAndPausesAfterAClockStep(t *testing.T) {
	inBubble(t, func(w *world, _ *systest.FS, wall *systest.Wall) {
		w.configs["orders"] = small()
		tp := w.topic("orders", 1)
		for range 40 {
			w.acked(tp, batch(5))
		}
		wall.Step(100 * 24 * time.Hour) // everything seems old
		time.Sleep(5 * retentionEvery)
		if s := w.status(tp); s.Start != 0 {
			t.Fatalf("I9: removed by a clock that has stepped: start %d", s.Start)
		}
		wall.Step(-100 * 24 * time.Hour)
		time.Sleep(5 * retentionEvery)
		if s := w.status(tp); s.Start != 0 {
			t.Fatalf("removed too young: start %d", s.Start)
		}
		time.Sleep(2 * time.Hour)
		if s := w.status(tp); s.Start == 0 || s.Start > s.HW {
			t.Fatalf("not removed, or past the watermark: %+v", s)
		}
	})
}

// TestP19_RetentionTellsOnlyWhatIsOnDisk: while the sync-point file cannot be written no reader is shown a new start, and all that was
// there can be read; then retention goes on by itself.
func TestP19_RetentionTellsOnlyWhatIsOnDisk(t *testing.T) {
	inBubble(t, func(w *world, fs *systest.FS, _ *systest.Wall) {
		w.configs["orders"] = small()
		tp := w.topic("orders", 1)
		for range 40 {
			w.acked(tp, batch(5))
		}
		var refused atomic.Int64
		fs.Hook(func(op systest.Op) error {
			if op.Kind == systest.OpWrite && strings.HasPrefix(filepath.Base(op.Name), "sync-point") {
				refused.Add(1)
				return systest.ErrNoSpace
			}
			return nil
		})
		time.Sleep(2 * time.Hour)
		if s := w.status(tp); s.Start != 0 || refused.Load() == 0 {
			t.Fatalf("start %d is shown, and not on disk (%d writes refused)", s.Start, refused.Load())
		}
		if r := w.fetch(at(tp, 0)); r.Err != nil || len(w.offsets(r.Records)) == 0 {
			t.Fatalf("what may still be read is gone: %v", r.Err)
		}
		fs.Hook(nil)
		time.Sleep(2 * retentionEvery)
		if s := w.status(tp); s.Start == 0 {
			t.Fatal("retention does not go on")
		}
	})
}

// TestI9_TrashIsNotRetained: a deleted topic keeps everything while it can be restored.
func TestI9_TrashIsNotRetained(t *testing.T) {
	inBubble(t, func(w *world, _ *systest.FS, _ *systest.Wall) {
		w.configs["orders"] = small()
		tp := w.topic("orders", 1)
		for range 40 {
			w.acked(tp, batch(5))
		}
		w.apply(deleted(tp))
		time.Sleep(2 * time.Hour)
		if s := w.status(tp); s.Role != Kept || s.Start != 0 || s.End != 200 {
			t.Fatalf("%+v", s)
		}
	})
}

// TestI9_MinimumRetentionBeatsSize.
func TestI9_MinimumRetentionBeatsSize(t *testing.T) {
	inBubble(t, func(w *world, _ *systest.FS, _ *systest.Wall) {
		c := small()
		c.RetentionBytes, c.MinimumRetention = 1, 30*time.Minute
		w.configs["orders"] = c
		tp := w.topic("orders", 1)
		for range 40 {
			w.acked(tp, batch(5))
		}
		time.Sleep(29 * time.Minute)
		if s := w.status(tp); s.Start != 0 {
			t.Fatalf("removed before its minimum: start %d", s.Start)
		}
		time.Sleep(2 * time.Minute)
		if s := w.status(tp); s.Start == 0 {
			t.Fatalf("kept beyond its minimum: %+v", s)
		}
	})
}

// TestWatchdog_StalledDiskRefusesAndRecovers: publishers hear of a stalled disk in seconds, readers go on, and when the disk
// answers again so does the partition.
func TestWatchdog_StalledDiskRefusesAndRecovers(t *testing.T) {
	inBubble(t, func(w *world, fs *systest.FS, _ *systest.Wall) {
		tp := w.topic("orders", 1)
		w.acked(tp, batch(1))
		fs.SetLatency(func(op systest.Op) time.Duration {
			if op.Kind == systest.OpSync || op.Kind == systest.OpSyncAll {
				return 3 * stallMax
			}
			return 0
		})
		began := time.Now()
		p := w.publish(tp, batch(1), AcksAll)
		<-p.Ready()
		if r := p.Results()[0]; !errors.Is(r.Err, ErrStorage) || r.Base != kafka.NoOffset || time.Since(began) > 2*stallMax {
			t.Fatalf("after %v: %+v", time.Since(began), r)
		}
		if r := w.publish(tp, batch(1), AcksLeader).Results()[0]; !errors.Is(r.Err, ErrStorage) {
			t.Fatalf("publish while stalled: %+v", r)
		}
		if r := w.fetch(at(tp, 0)); r.Err != nil || len(r.Records) == 0 || r.HighWatermark != 1 {
			t.Fatalf("fetch while stalled: %+v", r)
		}
		fs.SetLatency(nil)
		time.Sleep(4 * stallMax)
		if r := w.acked(tp, batch(1)); r.Base != 2 {
			t.Fatalf("after the stall: %+v", r)
		}
	})
}

// TestI11_FailedSyncTakesThePartitionOffline: at once, with everything parked, and only it.
func TestI11_FailedSyncTakesThePartitionOffline(t *testing.T) {
	inBubble(t, func(w *world, fs *systest.FS, _ *systest.Wall) {
		tp, other := w.topic("orders", 1), w.topic("other", 1)
		name := segmentFile(t, w, tp)
		fs.Hook(func(op systest.Op) error {
			if op.Kind == systest.OpSyncAll || op.Kind == systest.OpSync && op.Name == name {
				return errors.New("I/O error")
			}
			return nil
		})
		p := w.publish(tp, batch(1), AcksAll)
		<-p.Ready()
		if r := p.Results()[0]; !errors.Is(r.Err, ErrStorage) || r.Base != kafka.NoOffset {
			t.Fatalf("%+v", r)
		}
		fs.Hook(nil)
		if r := w.publish(tp, batch(1), AcksLeader).Results()[0]; !errors.Is(r.Err, ErrStorage) {
			t.Fatalf("I11: used after a failed sync: %+v", r)
		}
		w.acked(other, batch(1))
	})
}

// TestRun_WritesSyncPointsOnlyWhenOffsetsMoved.
func TestRun_WritesSyncPointsOnlyWhenOffsetsMoved(t *testing.T) {
	inBubble(t, func(w *world, fs *systest.FS, _ *systest.Wall) {
		tp := w.topic("orders", 1)
		w.acked(tp, batch(1))
		time.Sleep(3*pointsEvery + time.Second) // between two ticks
		before := fs.Ops()
		time.Sleep(time.Minute)
		if n := fs.Ops() - before; n != 0 {
			t.Fatalf("an idle node did %d operations", n)
		}
		w.acked(tp, batch(1))
		before = fs.Ops()
		time.Sleep(2 * pointsEvery)
		if fs.Ops() == before {
			t.Fatal("no sync-point file after offsets moved")
		}
	})
}

// TestRun_PurgesWithoutBeingAsked: Reconcile only notes a purge, Run does it.
func TestRun_PurgesWithoutBeingAsked(t *testing.T) {
	inBubble(t, func(w *world, _ *systest.FS, _ *systest.Wall) {
		tp := w.topic("orders", 1)
		w.acked(tp, batch(1))
		w.apply(deleted(tp))
		w.apply(metadata.TopicStateRecord{ID: tp.Topic, State: metadata.StatePurging, Version: 3},
			metadata.ReplicaPurgeRecord{Topic: tp.Topic, Node: me})
		time.Sleep(time.Second)
		if dirs, _ := w.dir.PartitionDirs(); len(dirs) != 0 {
			t.Fatalf("still there: %v", dirs)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.purged) == 0 || w.purged[0] != tp {
			t.Fatalf("confirmed: %v", w.purged)
		}
	})
}

// TestReplicated_CountsWhatIsWritten: once the sync-point file names the policy, no sync is waited for.
func TestReplicated_CountsWhatIsWritten(t *testing.T) {
	inBubble(t, func(w *world, fs *systest.FS, _ *systest.Wall) {
		c := baseConfig()
		c.Flush = 1
		w.configs["fast"] = c
		tp := w.topic("fast", 1)
		w.acked(tp, batch(1))
		synctest.Wait()
		fs.SetLatency(func(op systest.Op) time.Duration {
			if op.Kind == systest.OpSync || op.Kind == systest.OpSyncAll {
				return time.Hour
			}
			return 0
		})
		p := w.publish(tp, batch(1), AcksAll)
		if !isReady(p.Ready()) || p.Results()[0].Err != nil {
			t.Fatalf("waits for a sync: %+v", p.Results()[0])
		}
	})
}
