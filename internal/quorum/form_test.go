package quorum

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
)

func TestThreeControllersFormOneCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		c.start(2)
		time.Sleep(7 * time.Second)
		if why := c.nodes[2].q.Waiting(); why == "" {
			t.Error("a node that waits for others does not say so")
		}
		c.start(3)
		time.Sleep(time.Second)
		if id := c.nodes[3].q.Image().ClusterID(); id != "" {
			t.Errorf("cluster %s was formed by two of three", id)
		}
		c.start(1)
		l := c.leader(5 * time.Second)
		c.agree(c.fill(10))
		cluster := l.q.Image().ClusterID()
		for id, m := range c.nodes {
			if m.q.Image().ClusterID() != cluster || m.dir.Identity().ClusterID != cluster || m.q.Waiting() != "" {
				t.Errorf("node %d: cluster %q, %q on disk, want %q; it waits for %q", id, m.q.Image().ClusterID(), m.dir.Identity().ClusterID, cluster, m.q.Waiting())
			}
			c.eventually(fmt.Sprintf("node %d knows the leader", id), time.Second, func() bool { return m.q.Leadership().Leader == c.leader(time.Second).id })
		}
		c.end()
	})
}

func TestALaterStartNeedsAMajorityOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		c.start(1, 2, 3)
		last := c.fill(5)
		c.agree(last)
		for _, mode := range []systest.CrashMode{systest.LoseAll, systest.KillProcess} {
			c.crash(mode, 1, 2, 3)
			c.start(2, 3)
			l := c.leader(5 * time.Second)
			if v := l.q.Image().Version(); v < last {
				t.Fatalf("after %v the leader is at %d, committed was %d", mode, v, last)
			}
			last = c.fill(3)
			c.start(1)
			c.agree(last)
		}
		c.end()
	})
}

func TestTheLeaderIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		c.start(1, 2, 3)
		c.fill(5)
		for range 10 {
			old := c.leader(5 * time.Second)
			last := c.fill(1)
			c.crash(systest.LoseAll, old.id)
			began := time.Now()
			l := c.leader(3 * time.Second)
			if took := time.Since(began); took > 2500*time.Millisecond {
				t.Errorf("the next leader took %v", took)
			}
			if l.q.Image().Version() < last {
				t.Fatalf("the new leader is at %d, committed was %d", l.q.Image().Version(), last)
			}
			last = c.fill(2)
			c.start(old.id)
			c.agree(last)
		}
		c.end()
	})
}

func TestAnObserverFollowsAndStartsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		c.every = 10
		c.start(1, 2, 3, 4)
		last := c.fill(25)
		c.agree(last)
		if c.nodes[4].q.isMember.Load() {
			t.Error("the observer is a member")
		}
		c.eventually("the observer knows the leader", time.Second, func() bool { return c.nodes[4].q.Leadership().Leader == c.leader(time.Second).id })
		// It keeps up within milliseconds.
		began := time.Now()
		last = c.fill(1)
		for c.nodes[4].q.Image().Version() < last {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("a change reached the observer after %v", took)
		}
		// Behind the log's start it gets a snapshot.
		c.crash(systest.KillProcess, 4)
		last = c.fill(50)
		c.start(4)
		c.agree(last)
		// Without any controller it starts with what it had.
		last = c.fill(3)
		c.agree(last)
		c.crash(systest.LoseAll, 4)
		c.halt(1, 2, 3)
		c.start(4)
		time.Sleep(time.Second)
		if v := c.nodes[4].q.Image().Version(); v != last {
			t.Errorf("without controllers the observer is at %d, it had %d", v, last)
		}
		if l := c.nodes[4].q.Leadership().Leader; l != kafka.NoNode {
			t.Errorf("without controllers node %d leads", l)
		}
		c.start(1, 2, 3)
		c.agree(c.fill(3))
		c.end()
	})
}
