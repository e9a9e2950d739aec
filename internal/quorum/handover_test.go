package quorum

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
)

// TestHandOverIsFasterThanAnElection: a leader that is to stop gives way within a few round trips, as often as asked, and loses nothing.
func TestHandOverIsFasterThanAnElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		c.start(1, 2, 3)
		led := map[kafka.NodeID]bool{}
		for range 10 {
			old := c.leader(4 * time.Second)
			last := c.fill(3)
			start := time.Now()
			if err := old.q.HandOver(t.Context()); err != nil {
				t.Fatal(err)
			}
			next := c.leader(4 * time.Second)
			if took := time.Since(start); next.id == old.id || took > 2*tickEvery {
				t.Fatalf("from node %d to node %d in %v", old.id, next.id, took)
			}
			led[next.id] = true
			c.agree(last)
		}
		if len(led) < 2 {
			t.Errorf("led by %v", led)
		}
		c.end()
	})
}

// TestHandOverWithoutASuccessor: whoever is alone says so, and whoever does not lead has nothing to give.
func TestHandOverWithoutASuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		c.start(1, 2, 3)
		leader := c.leader(4 * time.Second)
		for id, m := range c.nodes {
			if id == leader.id {
				continue
			}
			if err := m.q.HandOver(t.Context()); err != nil {
				t.Errorf("node %d, which does not lead: %v", id, err)
			}
			c.net.CutBoth(hostOf(leader.id), hostOf(id))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := leader.q.HandOver(ctx); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrNoLeader) {
			t.Errorf("cut off: %v", err)
		}
		c.net.HealAll()
		c.end()
		one := newTestCluster(t, 1)
		one.start(1)
		if err := one.leader(time.Second).q.HandOver(t.Context()); !errors.Is(err, ErrNoLeader) {
			t.Errorf("alone: %v", err)
		}
		one.end()
	})
}
