package replica

import (
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

// TestP43_AFollowerAtItsLimit: it stops appending and leaves the ISR, and its leader goes on with the others; no acknowledged record is lost. When
// the leader's retention moves on, the follower has room by that alone, and catches up.
func TestP43_AFollowerAtItsLimit(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1, "segment.bytes=65536")
		c.acked(tp, oneBatch)
		c.alike(tp)
		leader, follower := c.state(tp).Leader, c.nodes[2]
		follower.stop()
		follower.limit = 3 * followPartitionBytes
		follower.start()
		c.eventually("all are in sync", func() bool { return len(c.state(tp).ISR) == 3 })
		large := func() record.Batch {
			b := record.NewBuilder(record.None)
			b.Add(0, nil, make([]byte, 60<<10), nil)
			return b.Build()
		}
		var last kafka.Offset
		for range 80 {
			last = c.acked(tp, large)
		}
		c.eventually("the follower leaves the ISR", func() bool { return len(c.state(tp).ISR) == 2 })
		stuck := c.status(follower.id, tp).End
		if s := c.state(tp); stuck >= last || s.Leader != leader {
			t.Errorf("the follower ends at %d of %d, node %d leads, %d did", stuck, last+1, s.Leader, leader)
		}
		remove := func(to kafka.Offset) {
			if r := c.nodes[leader].host.DeleteRecords(t.Context(), []DeleteItem{{TP: tp, To: to}})[0]; r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		remove(stuck - 2) // what it has room for then is not all that it lacks
		c.eventually("the follower goes on", func() bool { return c.status(follower.id, tp).End > stuck })
		remove(last - 2)
		c.eventually("the follower is back", func() bool { return len(c.state(tp).ISR) == 3 })
		c.alike(tp)
	})
}

// TestP43_AFullDiskLetsOthersLead: a leader whose disk is full gives its leaderships to others that are in sync, takes none while it is, and
// takes part again when there is room. Where nobody else is up it keeps what it leads.
func TestP43_AFullDiskLetsOthersLead(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		for _, n := range c.nodes {
			n.stop()
			n.reserve = 1 << 20
			n.start()
		}
		tp := c.topic("orders", 1)
		c.acked(tp, oneBatch)
		c.alike(tp)
		leader := c.nodes[c.state(tp).Leader]
		stopping := func() bool {
			img, _ := c.view()
			return img.Broker(leader.id).Stopping
		}
		leader.fs.SetFree(0)
		c.eventually("another leads", func() bool { return c.state(tp).Leader != leader.id && stopping() })
		c.acked(tp, oneBatch)
		if n := len(c.state(tp).ISR); n != 2 {
			t.Errorf("%d in sync, want the two that have room", n)
		}
		leader.fs.SetFree(-1)
		c.eventually("all take part again", func() bool { return !stopping() && len(c.state(tp).ISR) == 3 })
		c.alike(tp)

		c.lead(tp, leader.id)
		for id := range c.nodes {
			if id != leader.id {
				c.fence(id)
			}
		}
		leader.fs.SetFree(0)
		waitInBubble(10 * yieldEvery)
		if s := c.state(tp); s.Leader == kafka.NoNode || stopping() {
			t.Errorf("alone it gave up its leadership: %+v", s)
		}
	})
}
