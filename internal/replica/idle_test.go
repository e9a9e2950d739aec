package replica

import (
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
)

// TestC015_IdlePartitionsChangeLeaderCheaply: where no record was ever written, or all have been deleted, a node that no longer leads forgets its
// epoch and keeps its files: a node with many idle partitions follows again soon after another one led them.
func TestC015_IdlePartitionsChangeLeaderCheaply(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		const partitions, changesMax = 20, 10 // the epochs file goes, its directory is synced, and it is written again with the next epoch; to begin anew takes 24
		tp := c.topic("orders", partitions)
		idle := make([]kafka.TopicPartition, partitions)
		for i := range idle {
			idle[i] = kafka.TopicPartition{Topic: tp.Topic, Partition: int32(i)}
			c.alike(idle[i])
		}
		c.acked(idle[0], oneBatch)
		c.alike(idle[0])
		end := c.status(1, idle[0]).End
		if r := c.nodes[1].host.DeleteRecords(t.Context(), []DeleteItem{{TP: idle[0], To: end}})[0]; r.Err != nil {
			t.Fatal(r.Err)
		}
		for _, leader := range []kafka.NodeID{2, 1, 2} {
			for _, tp := range idle {
				c.lead(tp, leader)
			}
			before := c.nodes[3-leader].fs.Ops()
			for _, tp := range idle {
				c.alike(tp)
			}
			waitInBubble(10 * time.Second)
			if ops := c.nodes[3-leader].fs.Ops() - before; ops > partitions*changesMax {
				t.Errorf("node %d, which led %d idle partitions, changed its disk %d times to follow", 3-leader, partitions, ops)
			}
		}
		for id, n := range c.nodes {
			if said := n.log.count("log truncated"); said != 0 {
				t.Errorf("node %v says %d times that it cut a log that has no records", id, said)
			}
		}
	})
}

// TestC015_IdlePartitionsHoldUpNoOther: a node that led many partitions without records follows the next leader of all at once. A publish that
// waits for it waits for a few syncs of its slow disk, not for one of each partition.
func TestC015_IdlePartitionsHoldUpNoOther(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		const partitions, syncTakes = 400, 20 * time.Millisecond
		busy := c.topic("orders", partitions)
		c.acked(busy, oneBatch)
		c.alike(busy)
		c.nodes[1].fs.SetLatency(func(op systest.Op) time.Duration {
			switch op.Kind {
			case systest.OpSync, systest.OpSyncDir, systest.OpSyncAll:
				return syncTakes
			}
			return 0
		})
		for i := range int32(partitions) {
			c.lead(kafka.TopicPartition{Topic: busy.Topic, Partition: i}, 2)
		}
		began := time.Now()
		c.acked(busy, oneBatch)
		if took := time.Since(began); took > partitions*syncTakes/4 {
			t.Errorf("a publish waited %v for a node that led %d idle partitions", took, partitions)
		}
		c.alike(busy)
	})
}
