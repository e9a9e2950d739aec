package replica

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

// newRealCluster is three nodes in this process on the machine's own disk and loopback.
func newRealCluster(b *testing.B) *cluster {
	c := newCluster(b)
	c.real = b.TempDir()
	for id := range kafka.NodeID(3) {
		c.nodes[id+1] = &clusterNode{c: c, id: id + 1, log: &clusterLog{}}
		c.nodes[id+1].start()
	}
	b.Cleanup(func() {
		for _, n := range c.nodes {
			n.stop()
		}
	})
	return c
}

// BenchmarkReplication: publishes with acks=all to partitions with three replicas, led by all nodes, some batches in flight for each. Records have
// 1 KiB. One operation is one batch.
func BenchmarkReplication(b *testing.B) {
	for _, flush := range []string{"replicated", "synced"} {
		for _, partitions := range []int{8, 64} {
			for _, records := range []int{16, 256} {
				b.Run(fmt.Sprintf("%s/partitions=%d/records=%d", flush, partitions, records), func(b *testing.B) {
					benchReplication(b, flush, partitions, records)
				})
			}
		}
	}
}

func benchReplication(b *testing.B, flush string, partitions, records int) {
	c := newRealCluster(b)
	tp := c.topic("orders", partitions, "strandline.flush="+flush, "segment.bytes=67108864")
	tps := make([]kafka.TopicPartition, partitions)
	for p := range tps {
		tps[p] = kafka.TopicPartition{Topic: tp.Topic, Partition: int32(p)}
		c.lead(tps[p], kafka.NodeID(1+p%3))
	}
	for _, tp := range tps {
		for {
			n := c.nodes[c.state(tp).Leader]
			if pr := n.host.Append([]AppendItem{{TP: tp, Batch: batch(1)}}, AcksAll, time.Minute); waited(pr) == nil {
				break
			}
		}
	}
	bu := record.NewBuilder(0)
	value := make([]byte, 1000)
	for range records {
		bu.Add(0, nil, value, nil)
	}
	template := bu.Build()
	b.SetBytes(int64(len(template)))
	b.ResetTimer()
	began := time.Now()
	share := b.N/partitions + 1
	const inFlight = 4
	var wg sync.WaitGroup
	for _, tp := range tps {
		wg.Go(func() {
			host := c.nodes[c.state(tp).Leader].host
			var parked []*Produce
			for range share {
				batch := append(record.Batch(nil), template...)
				parked = append(parked, host.Append([]AppendItem{{TP: tp, Batch: batch}}, AcksAll, time.Minute))
				if len(parked) == inFlight {
					if err := waited(parked[0]); err != nil {
						b.Error(err)
					}
					parked = parked[1:]
				}
			}
			for _, p := range parked {
				if err := waited(p); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(share*partitions*records)/time.Since(began).Seconds(), "records/s")
}

func waited(p *Produce) error {
	<-p.Ready()
	return p.Results()[0].Err
}
