package replica

import (
	"fmt"
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys/systest"
)

// TestI1_AcknowledgedSurvivesAPowerCutAtEveryOperation: publishes run until the machine stops at its n-th change of the disk.
// After the restart every acknowledged batch is readable at its offset, once, and a retry of the last one finds it (I12).
func TestI1_AcknowledgedSurvivesAPowerCutAtEveryOperation(t *testing.T) {
	for n := int64(1); n <= 120; n++ {
		for _, mode := range []systest.CrashMode{systest.LoseAll, systest.Random} {
			powerCut(t, n, mode)
		}
	}
}

func powerCut(t *testing.T, n int64, mode systest.CrashMode) {
	w, fs := newWorld(t)
	name := fmt.Sprintf("cut at operation %d, %v", n, mode)
	c := baseConfig()
	c.SegmentBytes = 1000 // rolls
	w.configs["orders"] = c
	tp := w.topic("orders", 1)
	fs.CrashAt(fs.Ops() + n)
	acked := map[kafka.Offset]int32{} // base offset to first sequence
	last := int32(-1)
	for seq := int32(0); seq < 60 && !fs.Crashed(); seq++ {
		p := w.publish(tp, numbered(9, seq, 1), AcksAll)
		waitFor(t, p.Ready())
		if r := p.Results()[0]; r.Err == nil {
			acked[r.Base], last = seq, seq
		}
	}
	survived := fs.Crash(mode)
	w.host.Close(false)
	w.dir.Close(storage.CloseOptions{})
	w.machine = systest.Machine(survived, nil, nil)
	w.start()
	if len(w.found.Damaged)+len(w.found.Unclean) != 0 {
		t.Fatalf("%s: a synced log counts as %+v", name, w.found)
	}
	w.register()
	stored := w.readAll(tp)
	for base, seq := range acked {
		if stored[base] != seq {
			t.Fatalf("%s: sequence %d was acknowledged at %d, found %v", name, seq, base, stored)
		}
	}
	if last >= 0 {
		if r := w.acked(tp, numbered(9, last, 1)); acked[r.Base] != last {
			t.Fatalf("%s: retry of sequence %d: %+v", name, last, r)
		}
	}
	w.stop(false)
}

// readAll reads a partition to its end and returns the sequence of each batch by base offset; offsets must be dense.
func (w *world) readAll(tp kafka.TopicPartition) map[kafka.Offset]int32 {
	w.t.Helper()
	if w.status(tp).End > 0 {
		settled := w.host.Park([]FetchItem{at(tp, 0)}, FetchOptions{}, 1)
		waitFor(w.t, settled.Ready())
		settled.Cancel()
	}
	found := map[kafka.Offset]int32{}
	for next := kafka.Offset(0); ; {
		r := w.fetch(at(tp, next))
		w.must(r.Err)
		if len(r.Records) == 0 {
			return found
		}
		for rest := r.Records; len(rest) > 0; {
			b, tail, err := record.Split(rest)
			w.must(err)
			if b.BaseOffset() != next {
				w.t.Fatalf("batch at %d, want %d", b.BaseOffset(), next)
			}
			found[next] = b.BaseSequence()
			next, rest = b.NextOffset(), tail
		}
	}
}
