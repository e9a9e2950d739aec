package quorum

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/sys/systest"
)

func TestAKilledLeaderIsReplacedAtOnce(t *testing.T) {
	for _, size := range []int{3, 5} {
		synctest.Test(t, func(t *testing.T) {
			c := newTestCluster(t, size)
			for id := range size {
				c.start(kafka.NodeID(id + 1))
			}
			c.agree(c.fill(3))
			for range 10 {
				old := c.leader(5 * time.Second)
				began := time.Now()
				c.crash(systest.KillProcess, old.id)
				c.leader(5 * time.Second)
				if took := time.Since(began); took > 250*time.Millisecond {
					t.Errorf("of %d, the next leader took %v", size, took)
				}
				last := c.fill(1)
				c.start(old.id)
				c.agree(last)
				time.Sleep(time.Second)
			}
			c.end()
		})
	}
}

func TestALeaderThatIsSilentIsReplacedAfterTheTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		c.gone = false
		c.start(1, 2, 3)
		c.agree(c.fill(3))
		for range 20 {
			old := c.leader(5 * time.Second)
			c.crash(systest.LoseAll, old.id)
			began := time.Now()
			c.leader(5 * time.Second)
			if took := time.Since(began); took < electionTicks*tickEvery/2 || took > 2500*time.Millisecond {
				t.Errorf("the next leader took %v", took)
			}
			last := c.fill(1)
			c.start(old.id)
			c.agree(last)
		}
		c.end()
	})
}

func TestALeaderHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		c.start(1, 2, 3)
		c.agree(c.fill(3))
		for range 20 {
			old := c.leader(time.Second)
			began := time.Now()
			if err := old.q.HandOver(t.Context()); err != nil {
				t.Fatal(err)
			}
			l := c.leader(time.Second)
			if took := time.Since(began); l == old || took > 100*time.Millisecond {
				t.Errorf("node %d leads after %v, it was node %d", l.id, took, old.id)
			}
			c.agree(c.fill(1))
		}
		follower := c.nodes[c.leader(time.Second).id%3+1]
		if err := follower.q.HandOver(t.Context()); err != nil {
			t.Errorf("a follower: %v", err)
		}
		// With nobody to take over it says so and leads on as long as it can.
		l := c.leader(time.Second)
		for id := range kafka.NodeID(3) {
			if id+1 != l.id {
				c.net.CutBoth(hostOf(l.id), hostOf(id+1))
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := l.q.HandOver(ctx); !errors.Is(err, ErrNoLeader) {
			t.Errorf("cut off: %v", err)
		}
		c.net.HealAll()
		c.agree(c.commit(metadata.ProducerIDsRecord{Next: 5000}))
		c.end()
	})
}
