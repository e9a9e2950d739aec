package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/test/chaos/rig"
)

// besideTopic is written to as fast as it takes records while failover is measured on the other topic.
const besideTopic = "beside"

// saturate begins to write with so many producers, each with as much in flight as it may have by default. end stops them and says how much they
// wrote.
func saturate(ctx context.Context, o options, c *rig.Cluster) (end func(), err error) {
	configs := map[string]string{"strandline.flush": o.flush, "min.insync.replicas": "2",
		"strandline.minimum.retention.ms": "0", "retention.bytes": "16777216", "segment.bytes": "4194304"}
	if err := c.CreateTopic(ctx, rig.Topic{Name: besideTopic, Partitions: int32(o.partitions), Replicas: 3, Configs: configs}); err != nil {
		return nil, err
	}
	writing, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var acked atomic.Int64
	begun := time.Now()
	for range o.beside {
		cl, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.DefaultProduceTopic(besideTopic), kgo.MetadataMinAge(50*time.Millisecond),
			kgo.ProducerBatchCompression(kgo.NoCompression()))
		if err != nil {
			cancel()
			return nil, err
		}
		running.Go(func() {
			defer cl.Close()
			value := make([]byte, 1024)
			for writing.Err() == nil { // Produce waits while its buffer is full
				cl.Produce(writing, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
					if err == nil {
						acked.Add(1)
					}
				})
			}
		})
	}
	return func() {
		took := time.Since(begun).Seconds()
		cancel()
		running.Wait()
		fmt.Printf("beside: %d producers wrote %.0f records/s of 1 KiB\n", o.beside, float64(acked.Load())/took)
	}, nil
}
