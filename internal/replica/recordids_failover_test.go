package replica

import (
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys/systest"
)

var (
	stepDowns = flag.Int("recordid.stepdowns", 20, "how often TestR69 makes a leader step down between append and answer")
	kills     = flag.Int("recordid.kills", 6, "how often TestR69 kills it there")
)

// TestR69_R26_RetryWithTheSameRecordID: a leader appends a record and steps down, or is killed, before it can answer; sometimes the followers
// have the record by then, sometimes none has. The client repeats it with the same record id at whoever leads, until it is answered: there is
// one record of each id, at the offset that was answered, and on all nodes.
func TestR69_R26_RetryWithTheSameRecordID(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1, "strandline.dedup.window.ms=600000")
		answered := map[string]kafka.Offset{}
		for round := range *stepDowns + *kills {
			id := fmt.Sprintf("order-%d", round)
			leader := c.state(tp).Leader
			isKill := round%((*stepDowns+*kills)/max(1, *kills)) == 1
			alone := round%3 == 0 // the record reaches nobody before the leader changes
			if alone {
				c.cut(leader)
			}
			p := c.publish(tp, identified(record.None, id), AcksAll)
			if !alone && round%2 == 0 {
				c.eventually("a follower has the record", func() bool { return c.status(c.other(leader), tp).End == c.status(leader, tp).End })
			}
			if isKill {
				c.nodes[leader].kill(systest.LoseAll)
				c.fence(leader)
			} else {
				c.lead(tp, c.other(leader))
			}
			r := c.outcome(p)
			c.net.HealAll()
			if r.Err != nil && !isKill && !errors.Is(r.Err, ErrNotLeader) {
				t.Fatalf("round %d: %v", round, r.Err) // of a killed process anything may be said: nobody hears it
			}
			if r.Err == nil && !isKill {
				answered[id] = r.Base
			}
			for range 2 { // the retry, and one that comes late
				base := c.acked(tp, func() record.Batch { return identified(record.LZ4, id) })
				if was, ok := answered[id]; ok && was != base {
					t.Fatalf("round %d: answered with %d and then with %d", round, was, base)
				}
				answered[id] = base
			}
			if isKill {
				c.nodes[leader].start()
			}
			c.eventually("all are in sync", func() bool { return len(c.state(tp).ISR) == 3 })
		}
		c.alike(tp)
		want := ""
		for round := range *stepDowns + *kills {
			if round > 0 {
				want += " "
			}
			id := fmt.Sprintf("order-%d", round)
			want += fmt.Sprintf("%d=%s", answered[id], id)
		}
		for id := range c.nodes {
			if got := idsIn(t, c.content(id, tp, 0)); got != want {
				t.Errorf("node %v has %s\nwant %s", id, got, want)
			}
		}
	})
}

// other is a node in sync that does not lead.
func (c *cluster) other(than kafka.NodeID) kafka.NodeID {
	next := than%3 + 1
	if c.nodes[next].clusterProcess == nil {
		next = next%3 + 1
	}
	return next
}

// TestI12_AReplicaThatCatchesUpReadsIDsWhenItIsInSync: out of the ISR it remembers none, back in it all.
func TestI12_AReplicaThatCatchesUpReadsIDsWhenItIsInSync(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1, "strandline.dedup.window.ms=600000")
		c.nodes[3].kill(systest.KillProcess)
		c.fence(3)
		for i := range 30 {
			c.acked(tp, func() record.Batch { return identified(record.LZ4, fmt.Sprint(i)) })
		}
		c.nodes[3].start()
		c.eventually("node 3 remembers all", func() bool { return c.status(3, tp).RecordIDs == 30 })
		c.change(tp, func(s *kafka.PartitionState) { s.ISR = []kafka.NodeID{1, 2} })
		c.eventually("node 3 leaves and comes back", func() bool { return len(c.state(tp).ISR) == 3 })
		c.lead(tp, 3)
		start := time.Now()
		if base := c.acked(tp, func() record.Batch { return identified(record.None, "17") }); base != 17 {
			t.Errorf("answered with %d", base)
		}
		if n := c.status(3, tp).RecordIDs; n != 30 || time.Since(start) > time.Minute {
			t.Errorf("node 3 remembers %d", n)
		}
	})
}
