package controller

import (
	"errors"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

func threeCopies(name string) metadata.CreateTopics {
	return metadata.CreateTopics{Topics: []metadata.NewTopic{{Name: name, Partitions: 1, ReplicationFactor: 3}}}
}

// A controller that has just taken over refuses nothing for want of brokers: after a time without a majority they are still registering. Whoever
// asks waits, as long as its time allows and no longer than a session; then a refusal is the truth.
func TestR2_ANewControllerWaitsForBrokersBeforeItRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.nodes[3].kill()
		c.log.lead(2)
		if _, _, err := c.submit(1, time.Second, threeCopies("hasty")); !errors.Is(err, ErrNotController) {
			t.Errorf("whoever has less time is told that nothing was decided, and may repeat: %v", err)
		}
		done := make(chan any, 1)
		go func() { done <- c.must(1, threeCopies("patient")) }()
		time.Sleep(100 * time.Millisecond)
		c.begin(3)
		c.registered(3)
		if r := <-done; codeOf(t, r) != kafka.None {
			t.Errorf("the third broker came back in time: %+v", r)
		}
		c.nodes[3].kill()
		c.log.lead(1)
		begun := time.Now()
		r := c.must(2, threeCopies("short"))
		if took := time.Since(begun); codeOf(t, r) != kafka.InvalidReplicationFactor || took > sessionTimeoutDefault+takeOverMax+retryMax {
			t.Errorf("after %v: %+v", took, r)
		}
		begun = time.Now()
		if r := c.must(2, threeCopies("short")); codeOf(t, r) != kafka.InvalidReplicationFactor || time.Since(begun) > retryMax {
			t.Errorf("in a reign that is old enough: %+v after %v", r, time.Since(begun))
		}
	})
}

// A node whose disk hangs has itself fenced; it registers again when a sync has completed, not before (C021).
func TestLink_ANodeThatIsUnfitRegistersWhenItIsFit(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		n := c.nodes[3]
		unfit := func(why error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.unfit = why
		}
		unfit(errors.New("the disk hangs"))
		c.must(3, metadata.FenceBroker{Node: 3, Epoch: c.image().Broker(3).Epoch})
		time.Sleep(30 * time.Second)
		if !c.isFenced(3) || n.registrations() != 1 || n.link.Waiting() != "the disk hangs" {
			t.Errorf("fenced %v, %d registrations, waiting for %q", c.isFenced(3), n.registrations(), n.link.Waiting())
		}
		unfit(nil)
		c.untilInBubble(time.Second, "it is registered again", func() bool { return !c.isFenced(3) })
	})
}

// A broker that has said goodbye stays fenced, although its heartbeats go on while it tells clients who leads now.
func TestLink_ANodeThatLeavesIsNotRegisteredAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.nodes[3].link.Leave()
		c.must(3, metadata.FenceBroker{Node: 3, Epoch: c.image().Broker(3).Epoch})
		time.Sleep(10 * time.Second)
		if !c.isFenced(3) || c.nodes[3].registrations() != 1 {
			t.Errorf("fenced %v, %d registrations", c.isFenced(3), c.nodes[3].registrations())
		}
	})
}
