package replica

import (
	"bytes"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"strandline.dev/internal/kafka"
)

// TestC020_APlannedMoveKeepsWhatIsCommitted: a hundred moves of the leadership among replicas in sync, while records are published with acks=all and
// acks=1. Of the first none is lost. Of the second those are lost that the next leader had not copied yet, as decision 0013 says; each cut of them is
// counted, and none is below the watermark.
func TestC020_APlannedMoveKeepsWhatIsCommitted(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		all := map[kafka.Offset]bool{}
		weak, lost := 0, 0
		for n := range 100 {
			next := kafka.NodeID(1 + (n+1)%3)
			c.eventually("the leader leads and all are in sync", func() bool {
				s := c.state(tp)
				own := c.status(s.Leader, tp)
				return own.Role == Leading && own.Epoch == s.LeaderEpoch && len(s.ISR) == 3
			})
			all[c.acked(tp, oneBatch)] = true
			before := c.status(c.state(tp).Leader, tp).End
			c.must(c.outcome(c.publish(tp, oneBatch(), AcksLeader)).Err)
			weak++
			c.lead(tp, next)
			c.alike(tp)
			if c.status(next, tp).End == before {
				lost++
			}
		}
		cuts := 0.0
		for id, n := range c.nodes {
			cuts += testutil.ToFloat64(n.metrics.Broker.Truncations)
			if got := testutil.ToFloat64(n.metrics.Broker.TruncatedBelowHW); got != 0 {
				t.Errorf("node %v: %v cuts below the watermark", id, got)
			}
		}
		if end := c.status(1, tp).End; int(end) != len(all)+weak-lost {
			t.Errorf("the log ends at %d: %d records acknowledged by all, %d by their leader, of which %d are gone", end, len(all), weak, lost)
		}
		if cuts < float64(lost) { // a record that a third replica had is cut in two logs
			t.Errorf("%v cuts are counted, %d records are gone", cuts, lost)
		}
		t.Logf("%d of %d records with acks=1 lost", lost, weak)
		if !bytes.Equal(c.content(1, tp, 0), c.content(2, tp, 0)) {
			t.Error("logs differ")
		}
	})
}
