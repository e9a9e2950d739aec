package replica

import (
	"testing"

	"strandline.dev/internal/kafka"
)

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
