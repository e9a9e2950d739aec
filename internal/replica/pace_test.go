package replica

import (
	"sync/atomic"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys/systest"
)

// TestR113_CopiesArePacedAndReplicasInSyncAreNot: a follower has 4 MB to catch up with at 1 MB/s. That takes as long as it must; a record in another
// partition, with which it is in sync, comes at once although the pace has nothing left; and a new rate holds for what is under way.
func TestR113_CopiesArePacedAndReplicasInSyncAreNot(t *testing.T) {
	inClusterBubble(t, 2, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 2, "min.insync.replicas=1")
		other := kafka.TopicPartition{Topic: tp.Topic, Partition: 1}
		c.nodes[2].kill(systest.KillProcess)
		c.change(tp, func(s *kafka.PartitionState) { s.ISR = []kafka.NodeID{1} })
		for range 70 {
			c.acked(tp, bigBatch)
		}
		var rate atomic.Int64
		rate.Store(1_000_000)
		c.nodes[1].host.repl.pace.rate = rate.Load
		ask := follower{c: c, node: 2, wait: time.Minute}
		next := func(at kafka.Offset) fetchEntry {
			return fetchEntry{standing: standing{tp: tp}, offset: at, last: c.state(tp).LeaderEpoch}
		}
		begun := time.Now()
		got, at := carried(ask.fetch(fetchEntry{standing: standing{tp: tp}, last: kafka.NoEpoch}, fetchEntry{standing: standing{tp: other}, last: kafka.NoEpoch}), tp)
		if got == 0 || got > catchUpBytes {
			t.Fatalf("the first answer has %d bytes", got)
		}
		c.must(c.outcome(c.publish(other, oneBatch(), AcksLeader)).Err)
		a := ask.fetch(next(at))
		if n, _ := carried(a, other); n == 0 || time.Since(begun) > 0 {
			t.Fatalf("the partition in sync got %d bytes after %v", n, time.Since(begun))
		}
		if n, _ := carried(a, tp); n > 0 {
			t.Fatalf("%d bytes were given without room", n)
		}
		for got < 3_000_000 {
			n, end := carried(ask.fetch(), tp)
			if n == 0 {
				continue
			}
			got, at = got+n, end
			if at < 70 {
				ask.again = []fetchEntry{next(at)}
			}
		}
		// All but the last answer, and what a rest allows at once, has been waited for.
		paid := time.Duration(got-catchUpBytes)*time.Microsecond - paceBurst
		if took := time.Since(begun); took < paid || took > time.Duration(got)*time.Microsecond {
			t.Errorf("%d bytes took %v at 1 MB/s", got, took)
		}
		rate.Store(paceFree)
		changed := time.Now()
		for at < 70 {
			n, end := carried(ask.fetch(), tp)
			if n == 0 {
				continue
			}
			if at = end; at < 70 {
				ask.again = []fetchEntry{next(at)}
			}
		}
		if took := time.Since(changed); took > paceWaitMax {
			t.Errorf("without a bound the rest took %v", took)
		}
	})
}

// bigBatch is one record of 60 KB.
func bigBatch() record.Batch { return sizedBatch(60_000) }

// sizedBatch is one record with a value of so many bytes.
func sizedBatch(bytes int) record.Batch {
	b := record.NewBuilder(0)
	b.Add(0, nil, make([]byte, bytes), nil)
	return b.Build()
}

// carried is how many bytes of a partition an answer holds, and the offset behind them.
func carried(a *fetchAnswer, of kafka.TopicPartition) (n int, end kafka.Offset) {
	for i := range a.parts {
		if p := &a.parts[i]; p.tp == of && len(p.records) > 0 {
			n, end = n+len(p.records), lastOf(p.records)
		}
	}
	return n, end
}
