package replica

import (
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

// TestReplication_RecordsReachAllReplicas, under both flush policies: acknowledged, the same bytes everywhere, one watermark.
func TestReplication_RecordsReachAllReplicas(t *testing.T) {
	for _, flush := range []string{"synced", "replicated"} {
		t.Run(flush, func(t *testing.T) {
			inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
				tp := c.topic("orders", 1, "strandline.flush="+flush)
				for n := range 50 {
					if base := c.acked(tp, func() record.Batch { return batch(1 + n%3) }); base < 0 {
						t.Fatalf("base %d", base)
					}
				}
				c.alike(tp)
				if s := c.state(tp); len(s.ISR) != 3 || s.PartitionEpoch > 3 {
					t.Errorf("the ISR changed without need: %+v", s)
				}
				for id := range kafka.NodeID(3) {
					if n := c.nodes[id+1].log.count("level=WARN"); n > 0 {
						t.Errorf("%d warnings on node %v", n, id+1)
					}
				}
			})
		})
	}
}
