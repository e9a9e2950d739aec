package replica

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys/systest"
)

// TestISR_ShrinksAfterTheLagAndExpandsAgain: one link is cut. Publishes wait for replica.lag.max and go on without the follower; when it is
// back it catches up and joins.
func TestISR_ShrinksAfterTheLagAndExpandsAgain(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		c.acked(tp, oneBatch)
		c.alike(tp)
		c.net.CutBoth("n1", "n3")
		began := time.Now()
		c.acked(tp, oneBatch)
		if took := time.Since(began); took < lagMaxDefault || took > lagMaxDefault+time.Second {
			t.Fatalf("a publish waited %v", took)
		}
		if s := c.state(tp); len(s.ISR) != 2 || len(s.ELR) != 0 {
			t.Fatalf("%+v", s)
		}
		began = time.Now()
		c.acked(tp, oneBatch)
		if took := time.Since(began); took > time.Second {
			t.Fatalf("after the shrink a publish waited %v", took)
		}
		c.net.HealAll()
		c.alike(tp)
		if n := len(submitted[metadata.AlterISR](c)); n != 2 {
			t.Errorf("%d events, want a shrink and an expansion", n)
		}
	})
}

// TestISR_ACutLinkCostsAnIdlePartitionNothing: without writes, too, a follower that cannot be heard leaves the ISR after replica.lag.max, so the
// next write does not wait for it.
func TestISR_ACutLinkCostsAnIdlePartitionNothing(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		c.acked(tp, oneBatch)
		c.alike(tp)
		c.net.CutBoth("n1", "n3")
		waitInBubble(lagMaxDefault + time.Second)
		if s := c.state(tp); len(s.ISR) != 2 {
			t.Fatalf("%+v", s)
		}
		began := time.Now()
		c.acked(tp, oneBatch)
		if took := time.Since(began); took > time.Second {
			t.Fatalf("a publish waited %v", took)
		}
		c.net.HealAll()
		c.alike(tp)
		c.eventually("all are in sync", func() bool { return len(c.state(tp).ISR) == 3 })
	})
}

// TestISR_IdlePartitionsChangeNothing: without traffic and faults no event is submitted, however long.
func TestISR_IdlePartitionsChangeNothing(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 20)
		c.acked(tp, oneBatch)
		c.alike(tp)
		before := len(submitted[metadata.AlterISR](c))
		waitInBubble(10 * time.Minute)
		if n := len(submitted[metadata.AlterISR](c)); n != before {
			t.Errorf("%d events", n-before)
		}
	})
}

// TestISR_ManyPartitionsChangeTogether: a node comes back for 300 partitions: some events, not 300.
func TestISR_ManyPartitionsChangeTogether(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 300)
		c.nodes[3].kill(systest.KillProcess)
		c.fence(3)
		before := len(submitted[metadata.AlterISR](c))
		c.nodes[3].start()
		c.eventually("all are in sync", func() bool {
			for p := range int32(300) {
				if len(c.state(kafka.TopicPartition{Topic: tp.Topic, Partition: p}).ISR) < 3 {
					return false
				}
			}
			return true
		})
		if n := len(submitted[metadata.AlterISR](c)) - before; n > 20 {
			t.Errorf("%d events", n)
		}
	})
}

// TestC018_NothingIsAcknowledgedOnAnISRThatWasNotCommitted: the shrink is proposed and no answer comes; nothing is acknowledged on the smaller
// set until the metadata has it.
func TestC018_NothingIsAcknowledgedOnAnISRThatWasNotCommitted(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		c.acked(tp, oneBatch)
		c.alike(tp)
		c.mu.Lock()
		c.mute[1] = true
		c.mu.Unlock()
		c.net.CutBoth("n1", "n3")
		p := c.publish(tp, oneBatch(), AcksAll)
		if pollInBubble(20*time.Second, func() bool { return isReady(p.Ready()) }) {
			t.Fatalf("%+v", p.Results()[0])
		}
		if !c.open(tp) {
			t.Fatal("no change was proposed")
		}
		c.mu.Lock()
		c.mute[1] = false
		c.mu.Unlock()
		if r := c.outcome(p); r.Err != nil {
			t.Fatalf("%+v", r)
		}
		if s := c.state(tp); len(s.ISR) != 2 {
			t.Fatalf("%+v", s)
		}
	})
}

// open says whether the leader has a change under way.
func (c *cluster) open(tp kafka.TopicPartition) bool {
	p := c.nodes[c.state(tp).Leader].host.partition(tp)
	p.mu.Lock()
	defer p.unlock()
	return p.mu.core != nil && p.mu.core.Open()
}

// TestI3_RefusedChangeIsGivenUpByProposingTheCommittedISR: the leader wants a broker in that the controller knows to be fenced. The refusal alone
// ends nothing; the committed ISR, proposed again, does.
func TestI3_RefusedChangeIsGivenUpByProposingTheCommittedISR(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		c.acked(tp, oneBatch)
		c.alike(tp)
		c.cut(3)
		c.change(tp, func(s *kafka.PartitionState) { s.ISR = []kafka.NodeID{1, 2} })
		c.acked(tp, oneBatch)
		c.mu.Lock()
		c.deaf[1] = true // the leader will not hear that 3 is fenced
		c.mu.Unlock()
		c.fence(3)
		epoch := c.state(tp).PartitionEpoch
		c.net.HealAll()
		c.eventually("the change was given up", func() bool { return c.state(tp).PartitionEpoch > epoch && !c.open(tp) })
		evs := submitted[metadata.AlterISR](c)
		last := evs[len(evs)-1].Changes[0]
		if len(last.ISR) != 2 || len(evs) < 2 {
			t.Fatalf("%d events, the last %+v", len(evs), last)
		}
		c.acked(tp, oneBatch)
	})
}

// TestISR_ControllerAway: no answer, errors, then answers again. Changes that were wanted meanwhile come about.
func TestISR_ControllerAway(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		c.acked(tp, oneBatch)
		c.alike(tp)
		away := time.Now().Add(15 * time.Second)
		c.mu.Lock()
		c.intercept = func(metadata.Event) error {
			if time.Now().Before(away) {
				return errNoController
			}
			return nil
		}
		c.mu.Unlock()
		c.net.CutBoth("n1", "n2")
		began := time.Now()
		c.acked(tp, oneBatch)
		if took := time.Since(began); took < 15*time.Second || took > 17*time.Second {
			t.Errorf("acknowledged after %v", took)
		}
		c.net.HealAll()
		c.alike(tp)
	})
}

// TestI1_BelowTheMinimum: refused before the append, and after it for what was parked; acks=1 is stored and stays invisible; all of it is
// committed when the followers are back.
func TestI1_BelowTheMinimum(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		first := c.acked(tp, oneBatch)
		c.alike(tp)
		c.cut(1)
		parked := c.publish(tp, oneBatch(), AcksAll)
		r := c.outcome(parked)
		if !errors.Is(r.Err, ErrNotEnoughReplicasAfterAppend) {
			t.Fatalf("parked: %+v", r)
		}
		if r := c.outcome(c.publish(tp, oneBatch(), AcksAll)); !errors.Is(r.Err, ErrNotEnoughReplicas) {
			t.Fatalf("below the minimum: %+v", r)
		}
		one := c.outcome(c.publish(tp, oneBatch(), AcksLeader))
		c.must(one.Err)
		if s := c.status(1, tp); s.HW != first+1 {
			t.Fatalf("I2: %+v", s)
		}
		if s := c.state(tp); len(s.ISR) != 1 || len(s.ELR) != 2 {
			t.Fatalf("%+v", s)
		}
		c.net.HealAll()
		c.alike(tp)
		if s := c.status(2, tp); s.HW != one.Base+1 {
			t.Fatalf("%+v", s)
		}
	})
}

// TestI4_LostBytesAreNoticed: a follower has less than it had reported. It leaves the ISR and does not enter the ELR, and comes back with all.
func TestI4_LostBytesAreNoticed(t *testing.T) {
	inClusterBubble(t, 2, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		for range 5 {
			c.acked(tp, oneBatch)
		}
		c.alike(tp)
		p := c.nodes[2].host.partition(tp)
		c.must(p.mu.log.TruncateTo(2)) // as no code does
		c.acked(tp, oneBatch)
		c.alike(tp)
		lost := false
		for _, ev := range submitted[metadata.AlterISR](c) {
			for _, ch := range ev.Changes {
				lost = lost || len(ch.Lost) == 1 && ch.Lost[0] == 2
			}
		}
		if !lost || c.nodes[1].log.count("has lost records that it had stored") == 0 {
			t.Error("nobody noticed")
		}
	})
}

// TestReplication_OneBadPartitionDelaysNoOther: a follower cannot write one of its logs. The others are replicated as ever, and the one when it can
// be written again.
func TestReplication_OneBadPartitionDelaysNoOther(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 2)
		other := kafka.TopicPartition{Topic: tp.Topic, Partition: 1}
		c.acked(tp, oneBatch)
		c.alike(tp)
		bad := "/" + tp.String() + "/"
		c.nodes[3].fs.Hook(func(op systest.Op) error {
			if op.Kind == systest.OpWrite && strings.Contains(op.Name, bad) {
				return errors.New("cannot be written")
			}
			return nil
		})
		c.must(c.outcome(c.publish(tp, oneBatch(), AcksLeader)).Err)
		for range 20 {
			began := time.Now()
			c.acked(other, oneBatch)
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Fatalf("another partition waited %v", took)
			}
		}
		c.eventually("3 is out", func() bool { return len(c.state(tp).ISR) == 2 })
		if len(c.state(other).ISR) != 3 {
			t.Error("another partition lost its replica")
		}
		c.nodes[3].fs.Hook(nil)
		c.alike(tp)
	})
}

// TestReplication_IdlePartitionsAreNotNamed: of 400 partitions only those with traffic are in a fetch.
func TestReplication_IdlePartitionsAreNotNamed(t *testing.T) {
	inClusterBubble(t, 2, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 400)
		c.acked(tp, oneBatch)
		c.alike(tp)
		waitInBubble(3 * time.Second)
		synctest.Wait()
		f := c.nodes[2].host.repl.fetchers.by[1]
		if n := len(f.request.parts); n != 0 || f.round < 5 {
			t.Errorf("an idle fetch, in round %d, names %d partitions", f.round, n)
		}
		if n := len(f.reply.parts); n != 0 {
			t.Errorf("its answer names %d", n)
		}
		named := 0
		for range 5 {
			c.acked(tp, oneBatch)
			synctest.Wait()
			named = max(named, len(f.request.parts))
		}
		if named > 1 {
			t.Errorf("a fetch with traffic in one partition names %d", named)
		}
	})
}

// TestReplication_CatchingUpDelaysNobody: a follower has 4 MiB to catch up with in one partition, which it names first, and a record in another one
// that it is in sync with. The record comes first, and the rest in pieces.
func TestReplication_CatchingUpDelaysNobody(t *testing.T) {
	inClusterBubble(t, 2, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 2, "min.insync.replicas=1")
		other := kafka.TopicPartition{Topic: tp.Topic, Partition: 1}
		c.nodes[2].kill(systest.KillProcess)
		c.change(tp, func(s *kafka.PartitionState) { s.ISR = []kafka.NodeID{1} })
		for range 70 {
			c.acked(tp, bigBatch)
		}
		c.must(c.outcome(c.publish(other, oneBatch(), AcksLeader)).Err)
		ask := follower{c: c, node: 2}
		a := ask.fetch(fetchEntry{standing: standing{tp: tp}, last: kafka.NoEpoch}, fetchEntry{standing: standing{tp: other}, last: kafka.NoEpoch})
		for rounds := 0; ; rounds++ {
			at := kafka.NoOffset
			for i := range a.parts {
				p := &a.parts[i]
				if n := len(p.records); p.tp == tp && n > 0 {
					if n > catchUpBytes || (rounds == 0 && i == 0) {
						t.Fatalf("round %d: part %d of the answer has %d bytes to catch up with", rounds, i, n)
					}
					at = lastOf(p.records)
				}
			}
			if at == 70 {
				if rounds < 3 {
					t.Errorf("%d rounds", rounds)
				}
				break
			}
			if at < 0 {
				t.Fatalf("round %d brings nothing: %+v", rounds, a.parts)
			}
			a = ask.fetch(fetchEntry{standing: standing{tp: tp}, offset: at, last: c.state(tp).LeaderEpoch})
		}
	})
}

// TestReplication_ALargeBatchCatchesUpBesideTraffic: a batch above all limits of a fetch comes to a follower that is not in sync although each answer
// carries a record of another partition, in which it is.
func TestReplication_ALargeBatchCatchesUpBesideTraffic(t *testing.T) {
	inClusterBubble(t, 2, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 2, "min.insync.replicas=1", "segment.bytes=16777216")
		other := kafka.TopicPartition{Topic: tp.Topic, Partition: 1}
		c.nodes[2].kill(systest.KillProcess)
		c.change(tp, func(s *kafka.PartitionState) { s.ISR = []kafka.NodeID{1} })
		c.acked(tp, func() record.Batch { return sizedBatch(followBytes + catchUpBytes) })
		c.acked(tp, bigBatch)
		ask := follower{c: c, node: 2}
		behind := fetchEntry{standing: standing{tp: tp}, last: kafka.NoEpoch}
		traffic := fetchEntry{standing: standing{tp: other}, last: kafka.NoEpoch}
		for round := range 2 {
			c.must(c.outcome(c.publish(other, oneBatch(), AcksLeader)).Err)
			a := ask.fetch(behind, traffic)
			got := map[kafka.TopicPartition]int{}
			for i := range a.parts {
				got[a.parts[i].tp] = len(a.parts[i].records)
			}
			if got[tp] == 0 || got[other] == 0 {
				t.Fatalf("round %d brings %v", round, got)
			}
			behind.offset, behind.last = behind.offset+1, c.state(tp).LeaderEpoch
			traffic.offset, traffic.last = traffic.offset+1, c.state(other).LeaderEpoch
		}
	})
}

// follower speaks to node 1 as another node's process would.
type follower struct {
	c     *cluster
	node  kafka.NodeID
	round uint32
	wait  time.Duration
	// again is what the next request names besides.
	again []fetchEntry
}

// fetch sends one request; the entries get their epochs and sequences here.
func (f *follower) fetch(parts ...fetchEntry) *fetchAnswer {
	f.c.t.Helper()
	r := f.c.nodes[1].host.repl
	img, _ := f.c.view()
	q := &fetchRequest{
		broker: img.Broker(f.node).Epoch, session: 7, round: f.round, wait: f.wait,
		maxBytes: followBytes, partitionBytes: followPartitionBytes, catchUpBytes: catchUpBytes,
	}
	parts, f.again = append(parts, f.again...), nil
	for _, p := range parts {
		p.epoch, p.sequence = f.c.state(p.tp).LeaderEpoch, uint64(f.round)+1
		q.parts = append(q.parts, p)
	}
	f.round++
	m, err := r.serveFetch(f.c.t.Context(), peer.Identity{Node: f.node}, q)
	f.c.must(err)
	return m.(*fetchAnswer)
}

// TestRetention_FollowersFollowTheLeadersStart, and after the leader is gone nothing that was deleted comes back (DeleteRecords waits for the ISR).
func TestRetention_FollowersFollowTheLeadersStart(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		for range 10 {
			c.acked(tp, func() record.Batch { return batch(3) })
		}
		c.alike(tp)
		r := c.nodes[1].host.DeleteRecords(t.Context(), []DeleteItem{{TP: tp, To: 10}})[0] // inside a batch
		if r.Err != nil || r.Start != 10 {
			t.Fatalf("%+v", r)
		}
		for _, id := range []kafka.NodeID{2, 3} {
			if s := c.status(id, tp); s.Start != 10 {
				t.Errorf("answered, and node %v starts at %d", id, s.Start)
			}
		}
		c.cut(3)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if r := c.nodes[1].host.DeleteRecords(ctx, []DeleteItem{{TP: tp, To: 20}})[0]; !errors.Is(r.Err, ErrTimedOut) {
			t.Fatalf("answered without node 3, which is in sync: %+v", r)
		}
		c.fence(3)
		if r := c.nodes[1].host.DeleteRecords(t.Context(), []DeleteItem{{TP: tp, To: 20}})[0]; r.Err != nil || r.Start != 20 {
			t.Fatalf("without node 3, which is out: %+v", r)
		}
		c.nodes[1].kill(systest.LoseAll)
		c.fence(1)
		c.eventually("2 leads", func() bool { return c.status(2, tp).Role == Leading })
		if s := c.status(2, tp); s.Start != 20 {
			t.Fatalf("%+v", s)
		}
		c.net.HealAll()
		c.nodes[1].start()
		c.decide(metadata.BrokerReady{Now: time.Now(), Node: 3, Epoch: c.nodes[3].epoch})
		c.alike(tp)
	})
}

// TestReset_BeginsAtTheLeadersStartAlsoInsideABatch: a follower without anything, or with only what the leader has deleted, begins where the leader's
// log begins.
func TestReset_BeginsAtTheLeadersStartAlsoInsideABatch(t *testing.T) {
	for _, start := range []kafka.Offset{6, 7, 8, 30} {
		t.Run(fmt.Sprint(start), func(t *testing.T) {
			inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
				tp := c.topic("orders", 1)
				c.acked(tp, func() record.Batch { return batch(3) })
				c.alike(tp)
				c.nodes[3].kill(systest.KillProcess)
				c.fence(3)
				for range 9 {
					c.acked(tp, func() record.Batch { return batch(3) })
				}
				if r := c.nodes[1].host.DeleteRecords(t.Context(), []DeleteItem{{TP: tp, To: start}})[0]; r.Err != nil {
					t.Fatalf("%+v", r)
				}
				c.nodes[3].start()
				c.alike(tp)
				if s := c.status(3, tp); s.Start != start {
					t.Errorf("%+v", s)
				}
				c.acked(tp, oneBatch)
				c.alike(tp)
			})
		})
	}
}

// TestI9_FollowersInheritAppendTimes: a replica that copies records later keeps them no longer and no shorter than its leader.
func TestI9_FollowersInheritAppendTimes(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		c.nodes[3].kill(systest.KillProcess)
		c.fence(3)
		base := c.acked(tp, oneBatch)
		appended := time.Now()
		waitInBubble(time.Hour)
		c.nodes[3].start()
		c.alike(tp)
		p := c.nodes[3].host.partition(tp)
		if at := p.mu.log.AppendedBy(base + 1); at.Sub(appended).Abs() > time.Second {
			t.Errorf("appended at %v, the follower says %v", appended, at)
		}
	})
}

// TestWatchdog_LeadershipsAreResigned: the leader's disk answers no sync. It has itself fenced, another node leads, and publishes go on.
func TestWatchdog_LeadershipsAreResigned(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		c.acked(tp, oneBatch)
		c.alike(tp)
		c.nodes[1].fs.SetLatency(func(op systest.Op) time.Duration {
			if op.Kind == systest.OpSync || op.Kind == systest.OpSyncAll {
				return 10 * time.Minute
			}
			return 0
		})
		began := time.Now()
		c.must(c.outcome(c.publish(tp, oneBatch(), AcksLeader)).Err)
		c.eventually("another node leads", func() bool { l := c.state(tp).Leader; return l == 2 || l == 3 })
		if took := time.Since(began); took > stallMax+3*time.Second {
			t.Errorf("after %v", took)
		}
		c.acked(tp, oneBatch)
		if n := len(submitted[metadata.FenceBroker](c)); n != 1 {
			t.Errorf("fenced %d times", n)
		}
		c.nodes[1].fs.SetLatency(nil)
	})
}
