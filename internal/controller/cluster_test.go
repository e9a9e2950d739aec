package controller

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/quorum"
)

// assigned creates a topic with one partition on the given brokers.
func assigned(name string, replicas ...kafka.NodeID) metadata.CreateTopics {
	return metadata.CreateTopics{Topics: []metadata.NewTopic{{
		Name: name, Partitions: -1, ReplicationFactor: -1, Assignments: []metadata.Assignment{{Replicas: replicas}},
	}}}
}

func inBubble(t *testing.T, f func(t *testing.T, c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, false)
		f(t, c)
		c.close()
	})
}

func TestLink_EventsOfAnyNodeAreDecidedByTheActiveController(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for from := range kafka.NodeID(3) {
			name := string(rune('a' + from))
			reply, version, err := c.submit(from+1, time.Second, assigned(name, 1, 2, 3))
			if err != nil || codeOf(t, reply) != kafka.None || c.image().Version() < version || version == 0 {
				t.Fatalf("from node %v: %+v at %d, %v", from+1, reply, version, err)
			}
			if c.image().Topic(name) == nil || c.nodes[from+1].link.Active() != 1 {
				t.Fatalf("topic %v, active %v", c.image().Topic(name), c.nodes[from+1].link.Active())
			}
		}
		again, _, err := c.submit(2, time.Second, assigned("a", 1))
		if err != nil || codeOf(t, again) != kafka.TopicAlreadyExists {
			t.Errorf("a refusal travels back: %+v, %v", again, err)
		}
	})
}

func TestLink_AnObserverFindsTheActiveController(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.begin(4)
		c.registered(4)
		if !c.nodes[4].quorum.observer || c.isFenced(4) {
			t.Fatal("node 4 is no unfenced observer")
		}
		c.must(4, assigned("a", 4))
		c.log.lead(2)
		c.must(4, assigned("b", 4))
		c.untilInBubble(time.Second, "node 4 knows the new active controller", func() bool { return c.nodes[4].link.Active() == 2 })
		time.Sleep(10 * time.Second)
		if c.isFenced(4) || c.nodes[4].registrations() != 1 {
			t.Errorf("fenced %v after %d registrations: its session did not follow the controller", c.isFenced(4), c.nodes[4].registrations())
		}
	})
}

// R117: without a controller a change is not made, and the caller hears so within its time.
func TestR117_WithoutAControllerNothingIsDecidedAndThatIsSaid(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.log.lead(kafka.NoNode)
		begun := time.Now()
		_, _, err := c.submit(2, 3*time.Second, assigned("a", 1))
		if took := time.Since(begun); !errors.Is(err, ErrNotController) || !errors.Is(err, context.DeadlineExceeded) || took != 3*time.Second {
			t.Fatalf("after %v: %v", took, err)
		}
		done := make(chan error, 1)
		go func() {
			_, _, err := c.submit(3, time.Minute, assigned("b", 1))
			done <- err
		}()
		time.Sleep(5 * time.Second)
		c.log.lead(2) // heals by itself
		if err := <-done; err != nil || c.image().Topic("b") == nil || c.image().Topic("a") != nil {
			t.Errorf("%v, topics %v %v", err, c.image().Topic("a"), c.image().Topic("b"))
		}
	})
}

func TestLink_AnUnknownOutcomeIsRepeatedOnlyWhereThatIsSafe(t *testing.T) {
	for _, committed := range []bool{false, true} {
		inBubble(t, func(t *testing.T, c *cluster) {
			c.must(2, assigned("old", 1, 2, 3))
			c.nodes[1].quorum.set(false, true)
			type result struct {
				reply any
				err   error
			}
			created, deleted := make(chan result, 1), make(chan result, 1)
			go func() {
				reply, _, err := c.submit(2, time.Minute, assigned("new", 1, 2, 3))
				created <- result{reply, err}
			}()
			go func() {
				reply, _, err := c.submit(3, time.Minute, metadata.DeleteTopics{Topics: []metadata.DeleteTopic{{Name: "old"}}})
				deleted <- result{reply, err}
			}()
			time.Sleep(time.Second)
			if committed {
				c.commitHeld(1)
				synctest.Wait()
			}
			c.nodes[1].quorum.set(false, false)
			c.log.lead(2)
			r := <-created
			if r.err != nil || codeOf(t, r.reply) != kafka.None {
				t.Errorf("a creation is the same one when it is repeated: %+v, %v", r.reply, r.err)
			}
			if topic := c.image().Topic("new"); topic == nil || topic.Version != 1 {
				t.Errorf("topic %+v", topic)
			}
			r = <-deleted
			if committed != (r.err == nil) || !committed && !errors.Is(r.err, ErrUnknownOutcome) {
				t.Errorf("committed %v: a deletion whose outcome is unknown: %+v, %v", committed, r.reply, r.err)
			}
		})
	}
}

// commitHeld commits what a node has proposed and holds.
func (c *cluster) commitHeld(id kafka.NodeID) {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	v := c.nodes[id].quorum
	entries := v.entries
	v.entries = nil
	for _, rs := range entries {
		c.log.commit(rs)
	}
}

func TestI15_ANodeSpeaksOnlyForItself(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		epoch := c.image().Broker(3).Epoch
		for _, ev := range []metadata.Event{
			metadata.FenceBroker{Node: 3, Epoch: epoch}, metadata.BrokerReady{Node: 3, Epoch: epoch}, registration(3),
			metadata.AlterISR{Node: 3, Epoch: epoch}, metadata.ReportDamage{Node: 3, Epoch: epoch}, metadata.ReplicasPurged{Node: 3},
			metadata.AllocateProducerIDs{Node: 3, Epoch: epoch, Count: 1},
			metadata.ExpireTrash{}, metadata.FinishTopics{}, metadata.BalanceLeaders{Max: 1}, metadata.ContinueDrains{Max: 1}, metadata.RaiseInternal{Max: 1},
		} {
			before := c.image().Version()
			if _, _, err := c.submit(2, time.Second, ev); !errors.Is(err, ErrRefused) || c.image().Version() != before {
				t.Errorf("%T of node 2: %v", ev, err)
			}
		}
		if c.isFenced(3) {
			t.Error("node 2 has fenced node 3")
		}
	})
}

func TestLiveness_AKilledBrokerIsFencedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.must(1, assigned("a", 3, 2, 1))
		_, before := c.leader("a")
		c.nodes[3].kill()
		took := c.untilInBubble(time.Second, "broker 3 is fenced", func() bool { return c.isFenced(3) })
		if leader, epoch := c.leader("a"); leader == 3 || leader == kafka.NoNode || epoch != before+1 || took > 250*time.Millisecond {
			t.Errorf("leader %v in epoch %d after %v", leader, epoch, took)
		}
		// The next process of the node: another registration, and it is counted on again.
		old := c.image().Broker(3).Epoch
		c.begin(3)
		c.registered(3)
		if b := c.image().Broker(3); b.Fenced || b.Epoch <= old {
			t.Errorf("broker %+v", b)
		}
	})
}

// I3: a broker that cannot be heard keeps its leadership for a session, then loses it; back again, it finds that out by itself and registers anew.
func TestI3_ASilentBrokerIsFencedAfterItsSessionAndRegistersAnew(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.must(1, assigned("a", 3, 2, 1))
		time.Sleep(20 * time.Second)
		if c.isFenced(3) || c.nodes[3].registrations() != 1 {
			t.Fatal("a broker that beats is fenced")
		}
		c.nodes[3].cutOff()
		took := c.untilInBubble(5*time.Second, "broker 3 is fenced", func() bool { return c.isFenced(3) })
		if took < sessionTimeoutDefault-heartbeatEvery-heartbeatMax || took > sessionTimeoutDefault+2*checkEvery {
			t.Errorf("fenced after %v", took)
		}
		if leader, epoch := c.leader("a"); leader == 3 || leader == kafka.NoNode || epoch != 1 {
			t.Errorf("leader %v in epoch %d", leader, epoch)
		}
		time.Sleep(10 * time.Second)
		if c.nodes[3].registrations() != 1 {
			t.Error("it registered while it was cut off")
		}
		old := c.image().Broker(3).Epoch
		c.nodes[3].heal()
		c.untilInBubble(3*time.Second, "broker 3 is back", func() bool { return !c.isFenced(3) })
		if b := c.image().Broker(3); b.Epoch <= old || c.nodes[3].registrations() != 2 {
			t.Errorf("epoch %d after %d, %d registrations", b.Epoch, old, c.nodes[3].registrations())
		}
	})
}

func TestLiveness_AConnectionThatBreaksAloneCostsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.nodes[1].controller.Gone(c.identity(3), 1)
		c.nodes[1].controller.Gone(c.identity(9), 1)
		time.Sleep(3 * time.Second)
		if c.isFenced(3) {
			t.Error("fenced although its process lives")
		}
	})
}

// Architecture 7, Liveness: whoever takes over dials every broker first, so those that died with the old controller lose their leaderships before
// anything else is decided.
func TestTakeOver_TheDeadAreFencedBeforeAnythingElse(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.must(2, assigned("a", 1, 2, 3))
		c.nodes[1].kill()
		begun := time.Now()
		c.log.lead(2)
		reply := c.must(3, assigned("b", 1, 2, 3)).([]metadata.TopicResult)
		took := time.Since(begun)
		if leader, epoch := c.leader("a"); leader == 1 || leader == kafka.NoNode || epoch != 1 {
			t.Errorf("a: leader %v in epoch %d", leader, epoch)
		}
		if s := c.image().Topic("b").Partitions[0]; !reply[0].OK() || s.Leader == 1 || len(s.ISR) != 2 {
			t.Errorf("b was decided on before the dead broker was fenced: %+v, %+v", reply, s)
		}
		if !c.isFenced(1) || took > takeOverMax {
			t.Errorf("fenced %v after %v", c.isFenced(1), took)
		}
		for _, n := range []kafka.NodeID{2, 3} {
			if c.isFenced(n) {
				t.Errorf("broker %v is fenced", n)
			}
		}
	})
}

// A broker that answers neither yes nor no holds a take-over up for a bounded time, and keeps what is left of its session.
func TestTakeOver_ASilentBrokerCostsASessionNotMore(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.must(2, assigned("a", 1, 2, 3))
		c.nodes[1].cutOff()
		begun := time.Now()
		c.log.lead(2)
		c.must(3, assigned("b", 2, 3))
		if took := time.Since(begun); took > takeOverMax+retryMax {
			t.Errorf("the first change took %v", took)
		}
		c.untilInBubble(4*time.Second, "broker 1 is fenced", func() bool { return c.isFenced(1) })
		if took := time.Since(begun); took > takeOverMax+sessionTimeoutDefault+2*checkEvery {
			t.Errorf("fenced after %v", took)
		}
		if leader, _ := c.leader("a"); leader == 1 || leader == kafka.NoNode {
			t.Errorf("leader %v", leader)
		}
		// The deposed controller still believes to be one, and decides nothing that counts (I3).
		if l := c.nodes[1].quorum.Leadership(); !l.Leading {
			t.Fatal("node 1 knows already")
		}
		_, _, err := c.submit(1, 3*time.Second, metadata.DeleteTopics{Topics: []metadata.DeleteTopic{{Name: "a"}}})
		if !errors.Is(err, ErrUnknownOutcome) || c.image().Topic("a") == nil {
			t.Errorf("%v", err)
		}
		c.stepDown(1)
		c.nodes[1].heal()
		c.untilInBubble(3*time.Second, "broker 1 is back", func() bool { return !c.isFenced(1) })
	})
}

// stepDown lets a cut off controller notice that it is deposed, as CheckQuorum does.
func (c *cluster) stepDown(id kafka.NodeID) {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	v := c.nodes[id].quorum
	v.entries, v.leadership = nil, quorum.Leadership{Term: c.log.term, Leader: kafka.NoNode}
	for _, other := range c.log.views {
		if other.leadership.Leading && other != v {
			v.leadership.Leader = other.node
		}
	}
	close(v.led)
	v.led = make(chan struct{})
}

// C082: another disk under a known node id waits until the old process has been silent for 10 s; the same disk may at once.
func TestHolderSilent_AnotherDiskWaitsForTheHolder(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		other := registration(3)
		other.Directory, other.StartNumber, other.HolderSilent = kafka.DirectoryID{7}, 1, time.Hour // what it says of the holder does not count
		ask := func() kafka.ErrorCode { return c.must(3, other).(metadata.Registered).Code }
		if code := ask(); code != kafka.DuplicateBrokerRegistration {
			t.Fatalf("while the holder is heard: %v", code)
		}
		c.nodes[3].link.mu.Lock()
		c.nodes[3].link.session = session{} // its heartbeats say nothing of the registered process any more
		c.nodes[3].link.mu.Unlock()
		begun := time.Now()
		c.untilInBubble(20*time.Second, "the other disk is taken", func() bool { return ask() == kafka.None })
		if took := time.Since(begun); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("taken after %v", took)
		}
		// The newcomer holds the node id from now on, although it has sent no heartbeat: what the old disk's process asked for long ago
		// and comes now is refused.
		if code := c.must(3, registration(3)).(metadata.Registered).Code; code != kafka.DuplicateBrokerRegistration {
			t.Errorf("a late request of the old process: %v", code)
		}
	})
}

func TestSessions_TimeInWhichThisProcessSleptIsForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sessions
		s.begin(time.Now())
		time.Sleep(time.Second)
		s.touch(1, time.Now())
		time.Sleep(10 * time.Second) // SIGSTOP
		s.forgive(10 * time.Second)
		if one, two := s.silent(1, time.Now()), s.silent(2, time.Now()); one != 0 || two != time.Second {
			t.Errorf("silent for %v and %v", one, two)
		}
	})
}

func TestTend_DrainsInternalTopicsAndBalance(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.begin(4)
		c.registered(4)
		internal := assigned("__internal", 1)
		internal.Topics[0].Internal, internal.Topics[0].Configs = true, map[string]*string{}
		c.must(1, internal)
		c.must(1, assigned("a", 3, 2))
		c.must(1, assigned("b", 4))
		c.untilInBubble(3*time.Second, "the internal topic gets replicas", func() bool { return len(c.image().Topic("__internal").Partitions[0].Adding) == 2 })
		// Drained: b has to move, and where it moves to, the move completes by the leader's ISR change.
		c.must(2, metadata.DrainBroker{Node: 4})
		c.untilInBubble(3*time.Second, "b moves", func() bool { return len(c.image().Topic("b").Partitions[0].Adding) == 1 })
		// A leader that has strayed goes back within a balance round.
		c.nodes[3].kill()
		c.untilInBubble(time.Second, "a has another leader", func() bool { n, _ := c.leader("a"); return n == 2 })
		c.begin(3)
		c.registered(3)
		s := c.image().Topic("a").Partitions[0]
		c.must(2, metadata.AlterISR{Node: 2, Epoch: c.image().Broker(2).Epoch, Changes: []metadata.ISRChange{{
			TP: kafka.TopicPartition{Topic: c.image().Topic("a").ID}, LeaderEpoch: s.LeaderEpoch, PartitionEpoch: s.PartitionEpoch,
			ISR: []metadata.Member{{Node: 2}, {Node: 3, Epoch: c.image().Broker(3).Epoch}},
		}}})
		c.untilInBubble(balanceEvery+2*tendEvery, "3 leads again", func() bool { n, _ := c.leader("a"); return n == 3 })
	})
}

// loseAll takes every candidate of a topic's partition on the brokers 1 and 2 away, one after the other.
func (c *cluster) loseAll(topic string) kafka.TopicPartition {
	c.t.Helper()
	tp := kafka.TopicPartition{Topic: c.image().Topic(topic).ID}
	for _, n := range []kafka.NodeID{2, 1} {
		c.must(n, metadata.ReportDamage{Node: n, Epoch: c.image().Broker(n).Epoch, Damaged: []metadata.DamagedReplica{{TP: tp, LeaderEpoch: math.MaxInt32}}})
	}
	if leader, _ := c.leader(topic); leader != kafka.NoNode {
		c.t.Fatalf("broker %v leads", leader)
	}
	return tp
}

func TestI4_WhoHasMostLeadsOnlyByTheOperatorsAct(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.must(3, assigned("a", 2, 1))
		tp := c.loseAll("a")
		ends := c.nodes[2].link.Ends(t.Context(), []kafka.TopicPartition{tp, {Partition: 7}})
		if len(ends) != 2 || len(ends[0].Ends) != 2 || ends[0].Ends[0] != c.ends[2] || ends[0].Ends[1] != c.ends[1] || len(ends[1].Ends) != 0 {
			t.Fatalf("told %+v", ends)
		}
		time.Sleep(time.Minute)
		if leader, _ := c.leader("a"); leader != kafka.NoNode {
			t.Fatalf("broker %v leads by itself", leader)
		}
		r := c.must(2, metadata.RecoverPartitions{Partitions: ends[:1]}).([]metadata.Recovered)
		if leader, epoch := c.leader("a"); !r[0].OK() || r[0].End != 5 || leader != 1 || epoch != 3 {
			t.Errorf("%+v, leader %v in epoch %d", r, leader, epoch)
		}
	})
}

// Under dev nobody is there to ask: who has most is taken, once everybody is back.
func TestI4_UnderDevWhoHasMostLeadsWhenAllAreBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, true)
		c.must(3, assigned("a", 2, 1))
		c.loseAll("a")
		c.untilInBubble(2*recoverEvery, "a has a leader", func() bool { n, _ := c.leader("a"); return n == 1 })
		c.close()
	})
}

// A change of the voters is an entry that the controller has not proposed. What is decided after it knows of it, and nobody notices (C081).
func TestC081_AChangeOfTheVotersDisturbsNoDecision(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.must(1, assigned("a", 1, 2, 3))
		commit := c.log.changeVoters(1, c.image().Voters()[:2])
		c.nodes[3].kill() // while nothing can be decided
		done := make(chan any, 1)
		go func() { done <- c.must(2, assigned("b", 1, 2)) }()
		time.Sleep(time.Second)
		if c.image().Topic("b") != nil || c.isFenced(3) {
			t.Fatal("decided before the quorum's own entry was committed")
		}
		commit()
		if r := (<-done).([]metadata.TopicResult); !r[0].OK() {
			t.Errorf("%+v", r)
		}
		c.untilInBubble(2*checkEvery, "broker 3 is fenced", func() bool { return c.isFenced(3) })
		// The working Image has the new table: node 3 is no controller any more.
		c.must(1, metadata.AlterAssignments{Partitions: []metadata.NewAssignment{{NamedPartition: metadata.NamedPartition{Topic: "a"}, Replicas: []kafka.NodeID{1, 2}}}})
		if r := c.must(1, metadata.RemoveBroker{Node: 3}).(metadata.BrokerRemoved); !r.OK() || len(c.image().Voters()) != 2 {
			t.Errorf("%+v, voters %+v", r, c.image().Voters())
		}
		if term := c.nodes[1].quorum.Leadership().Term; c.nodes[1].controller.reigning.Load() != term {
			t.Error("the reign has ended")
		}
	})
}
