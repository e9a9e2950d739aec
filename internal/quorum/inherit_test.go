package quorum

import (
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
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
