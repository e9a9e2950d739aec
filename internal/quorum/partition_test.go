package quorum

import (
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/sys/systest"
)

func TestALeaderThatIsCutOffIsReplacedAndStepsDown(t *testing.T) {
	for name, cut := range map[string]func(n *systest.Net, leader, other string){
		"both":     func(n *systest.Net, l, o string) { n.CutBoth(l, o) },
		"outgoing": func(n *systest.Net, l, o string) { n.Cut(l, o) },
		"incoming": func(n *systest.Net, l, o string) { n.Cut(o, l) },
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newTestCluster(t, 5)
			c.start(1, 2, 3, 4, 5, 6)
			c.agree(c.fill(3))
			old := c.leader(time.Second)
			term := old.q.Leadership().Term
			for id := range c.nodes {
				if id != old.id {
					cut(c.net, hostOf(old.id), hostOf(id))
				}
			}
			// What it proposes now is never confirmed.
			lost := metadata.ProducerIDsRecord{Next: 666_000}
			index := old.q.LogEnd()
			if err := old.q.Propose(term, index, []metadata.Record{lost}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			c.eventually(name+": it steps down", 4*time.Second, func() bool { return !old.q.Leadership().Leading })
			if v := old.q.Image().Version(); v >= index {
				t.Errorf("%s: entry %d was committed by a leader that was cut off", name, index)
			}
			delete(c.nodes, old.id)
			next := c.leader(4 * time.Second)
			last := c.fill(3)
			c.agree(last)
			c.nodes[old.id] = old
			c.net.HealAll()
			c.agree(last)
			// With only the answers cut off, the others have the entry, and may decide it.
			if got := old.q.Image().NextProducerID(); got == lost.Next && name != "incoming" {
				t.Errorf("%s: what the old leader proposed alone is in its Image", name)
			}
			if now := next.q.Leadership(); !now.Leading {
				t.Errorf("%s: the return of the old leader cost node %d its leadership: %+v", name, next.id, now)
			}
			c.end()
		})
	}
}

func TestAMinorityDecidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		c.start(1, 2, 3)
		last := c.fill(3)
		c.agree(last)
		l := c.leader(time.Second)
		term := l.q.Leadership().Term
		for id := range kafka.NodeID(3) {
			if id+1 != l.id {
				c.crash(systest.LoseAll, id+1)
			}
		}
		_ = l.q.Propose(term, l.q.LogEnd(), []metadata.Record{metadata.ProducerIDsRecord{Next: 1000}})
		time.Sleep(30 * time.Second)
		if v := l.q.Image().Version(); v != last {
			t.Errorf("one of three has decided up to %d; agreed was %d", v, last)
		}
		if got := l.q.Leadership(); got.Leading || got.Leader != kafka.NoNode {
			t.Errorf("one of three: %+v", got)
		}
		if l.q.Waiting() == "" {
			t.Error("a voter without a leader does not say what it waits for")
		}
		if err := l.q.Propose(term, l.q.LogEnd(), nil); err == nil {
			t.Error("a proposal without a quorum was accepted")
		}
		for id := range kafka.NodeID(3) {
			if id+1 != l.id {
				c.start(id + 1)
			}
		}
		c.agree(c.fill(2))
		c.end()
	})
}

// An observer whose voter stops answering, without its connection breaking, turns to another one.
func TestAnObserverLeavesAVoterThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		c.start(1, 2, 3, 4)
		c.agree(c.fill(3))
		for id := range kafka.NodeID(3) {
			c.net.CutBoth(hostOf(id+1), hostOf(4))
			began := time.Now()
			last := c.fill(1)
			c.eventually("the observer follows", 3*time.Second, func() bool { return c.nodes[4].q.Image().Version() >= last })
			if took := time.Since(began); took > fetchWaitMax+fetchGrace+500*time.Millisecond {
				t.Errorf("with node %d cut off, a change reached the observer after %v", id+1, took)
			}
			c.net.HealAll()
			time.Sleep(5 * time.Second)
		}
		c.end()
	})
}
