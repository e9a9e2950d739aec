package main

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/test/chaos/rig"
)

// kgo starts franz-go's client: idempotent, acks=all, its own retries.
func (w *writer) kgo(o options, c *rig.Cluster) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(50*time.Millisecond), kgo.ProducerLinger(0), kgo.MaxBufferedRecords(1_000_000))
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
				cl.Produce(ctx, &kgo.Record{Topic: topic, Partition: int32(p), Value: make([]byte, 1024)}, func(_ *kgo.Record, err error) {
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
