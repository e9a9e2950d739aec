package main

import (
	"cmp"
	"context"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/test/chaos/rig"
)

// kgo starts franz-go's client: idempotent, acks=all, its own retries.
func (w *writer) kgo(o options, c *rig.Cluster) error {
	opts := []kgo.Opt{kgo.SeedBrokers(c.Seeds()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(50 * time.Millisecond), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0), kgo.MaxBufferedRecords(1_000_000)}
	if o.kgoTimeout > 0 {
		opts = append(opts, kgo.ProduceRequestTimeout(o.kgoTimeout), kgo.RequestTimeoutOverhead(cmp.Or(o.kgoOverhead, o.kgoTimeout)))
	}
	if o.kgoAge > 0 {
		opts = append(opts, kgo.MetadataMaxAge(o.kgoAge))
	}
	if o.log != "" {
		f, err := os.OpenFile(o.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		stamp := func() string { return time.Now().Format("15:04:05.000000 ") }
		opts = append(opts, kgo.WithLogger(kgo.BasicLogger(f, kgo.LogLevelDebug, stamp)))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	w.stop = func() { cancel(); running.Wait(); cl.Close() }
	running.Go(func() {
		const step = 4 * time.Millisecond
		tick := time.NewTicker(step)
		defer tick.Stop()
		begin, sent := time.Now(), 0
		for ctx.Err() == nil {
			for due := int(time.Since(begin).Seconds() * float64(o.rate)); sent < due; sent++ {
				p := sent % o.partitions
				one := &kgo.Record{Topic: topic, Partition: int32(p), Value: make([]byte, 1024)}
				if o.recordIDs {
					one.Headers = []kgo.RecordHeader{w.recordID(p, sent)}
				}
				cl.Produce(ctx, one, func(_ *kgo.Record, err error) {
					switch {
					case err == nil:
						w.acked(p)
					case ctx.Err() == nil:
						w.refused(err)
					}
				})
			}
			<-tick.C
		}
	})
	return nil
}
