package replica

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys/systest"
)

// compacting is a topic whose segments roll after some batches, and which keeps the newest record of each key.
func compacting() config.Topic {
	c := small()
	c.CleanupPolicy = []string{"compact"}
	c.MinDirtyRatio, c.DeleteRetention, c.MaxCompactionLag = 0.5, time.Hour, 1<<62
	return c
}

// keyedBatch has one record.
func keyedBatch(key string, value []byte) record.Batch {
	bu := record.NewBuilder(record.None)
	bu.Add(1, []byte(key), value, nil)
	return bu.Build()
}

func (w *world) records(tp kafka.TopicPartition) (n int) {
	w.t.Helper()
	for next := w.status(tp).Start; next < w.status(tp).HW; {
		r := w.fetch(at(tp, next))
		w.must(r.Err)
		for left := r.Records; len(left) > 0; {
			var b record.Batch
			b, left, _ = record.Split(left)
			n += int(b.Count())
			next = b.NextOffset()
		}
	}
	return n
}

// TestR59_LogsAreCompacted while the node runs: without asking, below the watermark, not while the clock has stepped or the topic is in the
// trash, and never by age.
func TestR59_LogsAreCompacted(t *testing.T) {
	inBubble(t, func(w *world, _ *systest.FS, wall *systest.Wall) {
		w.configs["state"], w.configs["gone"] = compacting(), compacting()
		tp, gone := w.topic("state", 1), w.topic("gone", 1)
		for i := range 200 {
			w.acked(tp, keyedBatch(string(rune('a'+i%5)), make([]byte, 100)))
			w.acked(gone, keyedBatch("a", make([]byte, 100)))
		}
		w.apply(deleted(gone))
		wall.Step(24 * time.Hour)
		time.Sleep(5 * compactEvery)
		if n := w.records(tp); n != 200 {
			t.Fatalf("compacted by a clock that has stepped: %d records", n)
		}
		wall.Step(-24 * time.Hour)
		time.Sleep(5 * compactEvery)
		if n := w.records(tp); n > 30 || n < 5 { // what the active segment holds stays
			t.Fatalf("%d records", n)
		}
		time.Sleep(5 * time.Hour) // of which each record may be one old, were the topic not compacted
		if s := w.status(tp); s.Start != 0 || s.End != 200 {
			t.Fatalf("retention removed records of a topic that is only compacted: %+v", s)
		}
		if s := w.status(gone); s.Role != Kept || w.host.partition(gone).mu.log.Size() < 200*100 {
			t.Fatalf("a deleted topic was compacted: %+v", s)
		}
	})
}

// TestC047_AFailingLogHoldsUpNoOther: what cannot be compacted is told and tried again, the others are compacted meanwhile.
func TestC047_AFailingLogHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(w *world, fs *systest.FS, _ *systest.Wall) {
		w.configs["bad"], w.configs["good"] = compacting(), compacting()
		bad, good := w.topic("bad", 1), w.topic("good", 1)
		for range 100 {
			w.acked(bad, keyedBatch("a", make([]byte, 100)))
			w.acked(good, keyedBatch("a", make([]byte, 100)))
		}
		failed := 0
		fs.Hook(func(op systest.Op) error {
			if op.Kind == systest.OpCreate && strings.HasSuffix(op.Name, ".cleaned") && strings.Contains(op.Name, bad.String()) {
				failed++
				return systest.ErrNoSpace
			}
			return nil
		})
		time.Sleep(5 * compactEvery)
		synctest.Wait() // a failure is counted after the hook has counted it
		if b, g := w.records(bad), w.records(good); b != 100 || g > 30 || failed < 3 {
			t.Fatalf("%d and %d records after %d failures", b, g, failed)
		}
		if got := testutil.ToFloat64(w.metrics.Storage.CompactionFailures); int(got) != failed {
			t.Errorf("%v failures are counted, %d were", got, failed)
		}
		fs.Hook(nil)
		time.Sleep(2 * compactEvery)
		if b := w.records(bad); b > 30 {
			t.Fatalf("%d records: not tried again", b)
		}
		if s := w.status(bad); s.Role != Leading {
			t.Fatalf("%+v", s)
		}
	})
}

// TestI12_RecordIDsSurviveCompaction: within the window a repeat finds its original, though a newer record has the key and segments are compacted, and
// also after a restart; behind the window the record goes and its id may append again.
func TestI12_RecordIDsSurviveCompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOn(t, systest.Machine(systest.NewFS(1), nil, systest.NewTickingWall(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))), "/data")
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.host.Run(ctx) })
		end := func() { cancel(); running.Wait() }
		defer func() { end(); w.stop(false) }()
		c := compacting()
		c.DedupWindow, c.DedupHeader = time.Hour, idHeader
		w.configs["state"] = c
		tp := w.topic("state", 1)
		publish := func(ids ...string) {
			for _, id := range ids {
				w.acked(tp, identified(record.None, id)) // of one key
			}
		}
		many := func(prefix string) (ids []string) {
			for i := range 100 {
				ids = append(ids, fmt.Sprint(prefix, i))
			}
			return ids
		}
		publish(append([]string{"old"}, many("o")...)...)
		time.Sleep(40 * time.Minute)
		publish(append([]string{"young"}, many("y")...)...)
		if r := w.acked(tp, identified(record.None, "old")); r.Base != 0 || !r.Repeat || w.records(tp) != 202 {
			t.Fatalf("within the window: %+v; %d records", r, w.records(tp))
		}
		time.Sleep(30 * time.Minute)
		if n := w.records(tp); n > 150 || n < 101 {
			t.Fatalf("%d records: those behind the window are to go, the others to stay", n)
		}
		young := func(when string) {
			t.Helper()
			if r := w.acked(tp, identified(record.None, "young")); r.Base != 101 || !r.Repeat {
				t.Fatalf("%s: a repeat within the window: %+v", when, r)
			}
		}
		young("compacted below it")
		if r := w.acked(tp, identified(record.None, "old")); r.Base != 202 || r.Repeat {
			t.Fatalf("behind the window: %+v", r)
		}
		end()
		w.restart(false)
		w.settleIDs(tp)
		young("after a restart")
	})
}

// TestCompaction_SettingsOfTheTopic: record ids keep younger records from compaction, and segments that retention removes are not joined.
func TestCompaction_SettingsOfTheTopic(t *testing.T) {
	c := compacting()
	c.MinCompactionLag, c.DedupWindow = time.Minute, time.Hour
	if p := compactionPolicy(c, 7); p.MinAge != time.Hour || !p.Merge || p.Upper != 7 || p.TombstoneRetention != time.Hour || p.MinDirtyRatio != 0.5 {
		t.Fatalf("%+v", p)
	}
	c.CleanupPolicy = []string{"compact", "delete"}
	if p := compactionPolicy(c, 7); p.Merge {
		t.Fatalf("%+v", p)
	}
}

// TestCompaction_EachReplicaCompactsItsOwn: a follower that was away while its leader compacted across its end catches up, and any of them can
// lead: the newest record of each key is there, at its offset.
func TestCompaction_EachReplicaCompactsItsOwn(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("state", 1, "cleanup.policy=compact", "segment.bytes=2048")
		write := func(n int) {
			for i := range n {
				c.acked(tp, func() record.Batch { return keyedBatch(string(rune('a'+i%5)), make([]byte, 100)) })
			}
		}
		write(60)
		c.nodes[3].kill(systest.KillProcess)
		c.fence(3)
		write(200)
		time.Sleep(5 * compactEvery)
		for _, id := range []kafka.NodeID{1, 2} {
			if n := c.nodes[id].host.partition(tp).mu.log.Size(); n > 8<<10 {
				t.Errorf("node %v has %d bytes", id, n)
			}
		}
		c.nodes[3].start()
		write(3)
		c.eventually("3 is in sync", func() bool { return len(c.state(tp).ISR) == 3 })
		time.Sleep(5 * compactEvery)
		for id := range kafka.NodeID(3) {
			l := c.nodes[id+1].host.partition(tp).mu.log
			newest := map[string]kafka.Offset{}
			b, err := l.Read(l.Start(), l.End(), storage.ReadLimits{MaxBytes: 1 << 20}, nil)
			c.must(err)
			for len(b) > 0 {
				var first record.Batch
				first, b, _ = record.Split(b)
				for r := range first.Records(0) {
					newest[string(r.Key)] = first.BaseOffset() + kafka.Offset(r.OffsetDelta)
				}
			}
			if fmt.Sprint(newest) != "map[a:260 b:261 c:262 d:258 e:259]" || l.End() != 263 {
				t.Errorf("node %v has %v of [%d, %d)", id+1, newest, l.Start(), l.End())
			}
		}
	})
}
