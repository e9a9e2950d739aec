package replica

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/record"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys/systest"
)

// TestC001_FollowerThatRestartsKeepsWhatItStored: a follower restarts before it has heard that a record is committed, and leads at once. It
// does not cut at the watermark it knows, so the record stays.
func TestC001_FollowerThatRestartsKeepsWhatItStored(t *testing.T) {
	inClusterBubble(t, 2, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		c.acked(tp, oneBatch)
		c.alike(tp)
		base := c.acked(tp, oneBatch)
		if hw := c.status(2, tp).HW; hw > base {
			t.Fatalf("node 2 knows already that the record is committed: watermark %d", hw)
		}
		c.nodes[2].kill(systest.LoseAll)
		c.nodes[2].start()
		c.nodes[1].kill(systest.KillProcess)
		c.fence(1)
		// A restart takes a replica out of the ISR; with a minimum of two it is eligible, and leads.
		c.eventually("node 2 leads", func() bool { return c.status(2, tp).Role == Leading })
		c.nodes[1].start()
		c.alike(tp)
		if s := c.status(2, tp); s.End != base+1 || s.HW != base+1 {
			t.Fatalf("an acknowledged record is gone: %+v", s)
		}
		if n := c.nodes[2].log.count("below the high watermark were truncated"); n != 0 {
			t.Error("truncated below the watermark")
		}
	})
}

// reign makes a node lead, in an epoch in which it reaches nobody, and append n records there that are never committed.
func (c *cluster) reign(tp kafka.TopicPartition, leader kafka.NodeID, n int) {
	c.t.Helper()
	c.cut(leader)
	c.lead(tp, leader)
	c.eventually("a node leads alone", func() bool { s := c.status(leader, tp); return s.Role == Leading && s.Epoch == c.state(tp).LeaderEpoch })
	for range n {
		c.must(c.outcome(c.publish(tp, oneBatch(), AcksLeader)).Err)
	}
}

// cut takes a node off the network of the other nodes; it still hears of the metadata.
func (c *cluster) cut(id kafka.NodeID) {
	for other := range c.nodes {
		if other != id {
			c.net.CutBoth(hostName(id), hostName(other))
		}
	}
}

func hostName(id kafka.NodeID) string { return "n" + id.String() }

// TestC002_DivergenceTwiceInARow: three leaders in a row append records that nobody else gets. Whoever leads in the end, all logs become
// the same, record by record, and nothing acknowledged goes.
func TestC002_DivergenceTwiceInARow(t *testing.T) {
	for last := range kafka.NodeID(3) {
		last++
		inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
			tp := c.topic("orders", 1)
			for range 5 {
				c.acked(tp, oneBatch)
			}
			c.alike(tp)
			kept := c.content(1, tp, 0)
			c.reign(tp, 1, 3)
			c.reign(tp, 2, 1)
			c.reign(tp, 3, 2)
			c.reign(tp, 1, 1)
			c.reign(tp, 2, 4)
			c.lead(tp, last)
			c.net.HealAll()
			c.acked(tp, oneBatch)
			c.alike(tp)
			for id := range c.nodes {
				got := c.content(id, tp, 0)
				if !bytes.HasPrefix(got, kept) {
					t.Fatalf("leader %v: node %v lacks acknowledged records", last, id)
				}
				if n := c.nodes[id].log.count("below the high watermark were truncated"); n > 0 {
					t.Errorf("leader %v: node %v cut below its watermark", last, id)
				}
			}
		})
	}
}

// TestC005_DivergenceIsAppliedBeforeAnyWatermark: a deposed leader with a record that nobody has follows a leader whose watermark is above that
// record. At no time does it think its own record committed.
func TestC005_DivergenceIsAppliedBeforeAnyWatermark(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		for range 5 {
			c.acked(tp, oneBatch)
		}
		c.alike(tp)
		c.reign(tp, 1, 1)
		mine := c.content(1, tp, 5)
		c.change(tp, func(s *kafka.PartitionState) {
			s.Leader, s.LeaderEpoch, s.ISR = 2, s.LeaderEpoch+1, []kafka.NodeID{2, 3}
		})
		c.acked(tp, func() record.Batch { return batch(4) })
		done := make(chan struct{})
		go func() {
			defer close(done)
			pollInBubble(time.Second, func() bool {
				s := c.status(1, tp)
				if s.HW > 5 && bytes.HasPrefix(c.content(1, tp, 5), mine) {
					t.Errorf("watermark %d over a record that was never committed", s.HW)
					return true
				}
				return false
			})
		}()
		c.net.HealAll()
		c.alike(tp)
		<-done
	})
}

// TestC007_LatestNeverGoesBack: over many moves of the leadership the latest offset, asked by clients that know the epoch, never falls.
func TestC007_LatestNeverGoesBack(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		latest, answered := kafka.Offset(0), 0
		ask := func() {
			s := c.state(tp)
			o, err := c.nodes[s.Leader].host.ListOffset(tp, LatestTimestamp, s.LeaderEpoch, false)
			if err != nil {
				return // not there yet, or not settled: the client asks again
			}
			if answered++; o.Offset < latest {
				t.Fatalf("latest %d after %d, in epoch %d", o.Offset, latest, s.LeaderEpoch)
			}
			latest = o.Offset
		}
		for n := range 60 {
			c.acked(tp, oneBatch)
			ask()
			c.lead(tp, kafka.NodeID(1+n%3))
			for range 5 {
				ask()
				waitInBubble(time.Millisecond)
			}
		}
		if answered < 60 {
			t.Errorf("only %d answers", answered)
		}
	})
}

// TestC008_LastReplicaStanding: the ISR shrinks to one node, which loses power and what it had not synced. What was acknowledged is on the
// others, and one of them leads.
func TestC008_LastReplicaStanding(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1, "strandline.flush=replicated")
		c.acked(tp, oneBatch)
		c.alike(tp)
		kept := c.acked(tp, oneBatch)
		c.cut(3)
		c.fence(3)
		c.eventually("3 is out", func() bool { return len(c.state(tp).ISR) == 2 })
		c.must(c.outcome(c.publish(tp, oneBatch(), AcksAll)).Err)
		c.cut(2)
		c.fence(2)
		c.eventually("2 is eligible", func() bool { s := c.state(tp); return len(s.ISR) == 1 && len(s.ELR) == 1 })
		r := c.outcome(c.publish(tp, oneBatch(), AcksAll))
		if !errors.Is(r.Err, ErrNotEnoughReplicas) && !errors.Is(r.Err, ErrNotEnoughReplicasAfterAppend) {
			t.Fatalf("acks=all alone: %+v", r)
		}
		c.nodes[1].kill(systest.LoseAll)
		c.net.HealAll()
		for _, id := range []kafka.NodeID{2, 3} {
			c.decide(metadata.BrokerReady{Now: time.Now(), Node: id, Epoch: c.nodes[id].epoch})
		}
		c.nodes[1].start()
		if len(c.nodes[1].found.Unclean) == 0 {
			t.Fatal("node 1 does not know that it may have lost records")
		}
		c.eventually("2 leads", func() bool { return c.state(tp).Leader == 2 })
		c.alike(tp)
		if s := c.status(2, tp); s.HW < kept+2 {
			t.Fatalf("acknowledged records are gone: %+v", s)
		}
	})
}

// TestC010_IsolatedLeaderAcknowledgesNothing: cut off from all, also from the controller, which has given the leadership away.
func TestC010_IsolatedLeaderAcknowledgesNothing(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		c.acked(tp, oneBatch)
		c.alike(tp)
		c.cut(1)
		c.mu.Lock()
		c.deaf[1], c.mute[1] = true, true
		c.mu.Unlock()
		old := c.nodes[1].host
		parked := old.Append([]AppendItem{{TP: tp, Batch: oneBatch()}}, AcksAll, 10*time.Second)
		c.fence(1)
		kept := c.acked(tp, func() record.Batch { return batch(2) })
		later := old.Append([]AppendItem{{TP: tp, Batch: oneBatch()}}, AcksAll, 10*time.Second)
		for _, p := range []*Produce{parked, later} {
			if r := c.outcome(p); r.Err == nil {
				t.Fatalf("acknowledged by a leader that is none: %+v", r)
			}
		}
		c.mu.Lock()
		c.deaf[1], c.mute[1] = false, false
		c.mu.Unlock()
		c.net.HealAll()
		c.decide(metadata.BrokerReady{Now: time.Now(), Node: 1, Epoch: c.nodes[1].epoch})
		c.alike(tp)
		if s := c.status(1, tp); s.End != kept+2 {
			t.Fatalf("records that were never acknowledged stayed: %+v", s)
		}
	})
}

// TestC011_ParkedOnADeposedLeaderFails: at once, with "not the leader", also when its offset is committed by another's records.
func TestC011_ParkedOnADeposedLeaderFails(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		c.acked(tp, oneBatch)
		c.alike(tp)
		c.cut(1)
		parked := c.publish(tp, oneBatch(), AcksAll)
		began := time.Now()
		c.change(tp, func(s *kafka.PartitionState) {
			s.Leader, s.LeaderEpoch, s.ISR = 2, s.LeaderEpoch+1, []kafka.NodeID{2, 3}
		})
		r := c.outcome(parked)
		if !errors.Is(r.Err, ErrNotLeader) || time.Since(began) > time.Second {
			t.Fatalf("%+v after %v", r, time.Since(began))
		}
		c.acked(tp, func() record.Batch { return batch(2) })
		c.net.HealAll()
		c.alike(tp)
		if !errors.Is(parked.Results()[0].Err, ErrNotLeader) {
			t.Fatal("confirmed by another's records")
		}
	})
}

// TestC014_FollowerAheadIsCutAndGoesOn: an operator made a node with fewer records the leader. The others follow it, and say what they cut.
func TestC014_FollowerAheadIsCutAndGoesOn(t *testing.T) {
	inClusterBubble(t, 2, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1, "min.insync.replicas=1")
		for range 5 {
			c.acked(tp, oneBatch)
		}
		c.alike(tp)
		c.cut(2)
		c.change(tp, func(s *kafka.PartitionState) { s.ISR = []kafka.NodeID{1} })
		for range 5 {
			c.acked(tp, oneBatch)
		}
		c.change(tp, func(s *kafka.PartitionState) { s.Leader, s.LeaderEpoch, s.ISR = 2, s.LeaderEpoch+1, []kafka.NodeID{2} })
		c.eventually("node 2 leads", func() bool { return c.status(2, tp).Role == Leading })
		c.net.HealAll()
		c.alike(tp)
		if s := c.status(1, tp); s.End != 5 {
			t.Fatalf("%+v", s)
		}
		if n := c.nodes[1].log.count("below the high watermark were truncated"); n != 1 {
			t.Errorf("said %d times", n)
		}
	})
}

// TestC015_IdlePartitionComesBackIntoTheISR: without any traffic, also where no record was ever written.
func TestC015_IdlePartitionComesBackIntoTheISR(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 2)
		c.acked(tp, oneBatch)
		c.alike(tp)
		c.nodes[3].kill(systest.KillProcess)
		c.fence(3)
		c.lead(tp, 2) // an epoch without records
		empty := kafka.TopicPartition{Topic: tp.Topic, Partition: 1}
		c.lead(empty, 2)
		c.lead(empty, 1)
		c.nodes[3].start()
		c.alike(tp)
		c.alike(empty)
	})
}

// TestI12_ProducerStateIsOnFollowers: a batch whose answer was lost with the leader is sent again to the next one, and answered with the
// original offset; and the one after it is in order.
func TestI12_ProducerStateIsOnFollowers(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		var bases []kafka.Offset
		for seq := range int32(8) {
			bases = append(bases, c.acked(tp, func() record.Batch { return numbered(9, 2*seq, 2) }))
		}
		c.nodes[1].kill(systest.LoseAll)
		c.fence(1)
		for seq := int32(3); seq < 8; seq++ {
			if base := c.acked(tp, func() record.Batch { return numbered(9, 2*seq, 2) }); base != bases[seq] {
				t.Fatalf("batch %d again: %d, was %d", seq, base, bases[seq])
			}
		}
		if r := c.outcome(c.publish(tp, numbered(9, 99, 1), AcksAll)); !errors.Is(r.Err, storage.ErrOutOfOrderSequence) {
			t.Fatalf("a gap: %+v", r)
		}
		if base := c.acked(tp, func() record.Batch { return numbered(9, 16, 1) }); base != 16 {
			t.Fatalf("the next batch: %d", base)
		}
		c.nodes[1].start()
		c.alike(tp)
	})
}

// TestC021_AllLosePowerAtOnce: under `synced` nothing acknowledged goes with everything that was not synced, on all three nodes.
func TestC021_AllLosePowerAtOnce(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		last := kafka.Offset(0)
		for round := range 5 {
			for range 20 {
				last = c.acked(tp, oneBatch)
			}
			for range round { // in flight
				c.publish(tp, oneBatch(), AcksAll)
			}
			for _, n := range c.nodes {
				n.kill(systest.LoseAll)
			}
			for id := range c.nodes {
				c.fence(id)
			}
			for id := range kafka.NodeID(3) {
				c.nodes[id+1].start()
			}
			c.alike(tp)
			if s := c.status(1, tp); s.End <= last {
				t.Fatalf("round %d: end %d, acknowledged up to %d", round, s.End, last)
			}
		}
	})
}
