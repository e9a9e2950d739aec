package coordinator

import (
	"testing"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

// BenchmarkCommit is the cost of one commit of one partition, from Submit to the reply after its commit: alone, and with many clients at once,
// which share batches. The disk is in memory.
func BenchmarkCommit(b *testing.B) {
	for _, clients := range []int{1, 64} {
		b.Run(map[int]string{1: "alone", 64: "64 clients"}[clients], func(b *testing.B) {
			w := newWorld(b)
			id := w.topic("orders", nil)
			b.ReportAllocs()
			b.SetParallelism(clients)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if code, err := w.commit("g", id, 1); err != nil || code != kafka.None {
						b.Errorf("%v %v", code, err)
						return
					}
				}
			})
			b.StopTimer()
			w.stop(true)
		})
	}
}

// BenchmarkHeartbeat is the cost of keeping one member alive.
func BenchmarkHeartbeat(b *testing.B) {
	w := newWorld(b)
	member, generation := w.joinAlone("workers")
	b.ReportAllocs()
	for b.Loop() {
		if code, err := w.heartbeat("workers", member, generation); err != nil || code != kafka.None {
			b.Fatal(code, err)
		}
	}
	b.StopTimer()
	w.stop(true)
}

// BenchmarkLoad is the cost of one record when a shard is loaded.
func BenchmarkLoad(b *testing.B) {
	w := newWorld(b)
	id := w.topic("orders", nil)
	const records = 20_000
	for range records / 1000 {
		for _, one := range w.together("g", 1000, id, "") {
			if _, err := await[group.CommitReply](w, one); err != nil {
				b.Fatal(err)
			}
		}
	}
	s := w.shardOf("g")
	b.ResetTimer()
	for b.Loop() {
		n, err := newShard(w.groups, s.tp, s.epoch).replay(group.NewShard(w.groups.coreConfig()))
		if n != records || err != nil {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
	b.StopTimer()
	w.stop(true)
}
