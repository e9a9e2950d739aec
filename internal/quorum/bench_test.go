package quorum

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
)

// BenchmarkPropose commits small entries on the real disk: one at a time, and with many on the way.
func BenchmarkPropose(b *testing.B) {
	for _, c := range []struct {
		name   string
		window uint64
	}{{"one at a time", 1}, {"64 in flight", 64}, {"1024 in flight", 1024}} {
		b.Run(c.name, func(b *testing.B) { benchmarkPropose(b, c.window) })
	}
}

func benchmarkPropose(b *testing.B, window uint64) {
	q, began := startRealQuorum(b)
	for !q.Leadership().Leading || q.Image().Version()+1 < q.LogEnd() {
		<-q.Changed()
	}
	lead := time.Since(began)
	term := q.Leadership().Term
	next := int64(0)
	b.ResetTimer()
	for range b.N {
		for {
			changed := q.Changed()
			if q.Image().Version()+window >= q.LogEnd() {
				break
			}
			<-changed
		}
		next += 1000
		if err := q.Propose(term, q.LogEnd(), []metadata.Record{metadata.ProducerIDsRecord{Next: next}}); err != nil {
			b.Fatal(err)
		}
	}
	for {
		changed := q.Changed()
		if q.Image().Version()+1 == q.LogEnd() {
			break
		}
		<-changed
	}
	b.StopTimer()
	b.ReportMetric(float64(lead.Microseconds()), "us-to-lead")
}

func startRealQuorum(b *testing.B) (*Quorum, time.Time) {
	machine := sys.Real()
	log := slog.New(slog.DiscardHandler)
	dir, err := storage.OpenDir(storage.DirOptions{Machine: machine, Path: b.TempDir(), Log: log, Metrics: metrics.New().Storage})
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	q, err := Open(Config{Machine: machine, Dir: dir, Node: 1, Log: log})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- q.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		<-ran
		_ = q.Close()
		_ = dir.Close(storage.CloseOptions{})
	})
	return q, began
}
