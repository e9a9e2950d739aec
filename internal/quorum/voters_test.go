package quorum

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/sys/systest"
)

func TestAWipedControllerIsReplacedByItsNewDirectory(t *testing.T) {
	for _, every := range []int{0, 10} { // by entries and by a snapshot
		synctest.Test(t, func(t *testing.T) {
			c := newTestCluster(t, 3)
			c.every = every
			c.start(1, 2, 3)
			c.agree(c.fill(40))
			for _, id := range []kafka.NodeID{3, 1} {
				c.crash(systest.LoseAll, id)
				c.wipe(id)
				c.start(id)
				began := time.Now()
				c.eventually("the new directory votes", time.Minute, func() bool { return c.nodes[id].isVoter() })
				if took := time.Since(began); took < replaceSilence/2 || took > replaceSilence+5*time.Second {
					t.Errorf("node %d was replaced after %v", id, took)
				}
				last := c.fill(3)
				c.agree(last)
				if got := votersOf(c.nodes[id]); !slices.Equal(got, []kafka.NodeID{1, 2, 3}) {
					t.Fatalf("the table is of nodes %v", got)
				}
				// It counts: with it one of the others may be away.
				other := id%3 + 1
				c.crash(systest.LoseAll, other)
				last = c.fill(2)
				c.start(other)
				c.agree(last)
			}
			c.end()
		})
	}
}

// onLoop runs fn on a node's loop.
func (m *testMember) onLoop(fn func(*loop)) {
	_ = m.q.onLoop(context.Background(), func(l *loop) error { fn(l); return nil })
}

// isVoter says whether a node takes itself for a full voter, with nobody else in its place.
func (m *testMember) isVoter() (ok bool) {
	m.onLoop(func(l *loop) {
		ok = slices.Contains(l.conf.GetVoters(), l.self) && len(l.conf.GetVotersOutgoing()) == 0
	})
	return ok
}

// fullVoters counts the voters of a configuration that is not a joint one, without learners.
func (m *testMember) fullVoters() (n int) {
	m.onLoop(func(l *loop) {
		if len(l.conf.GetVotersOutgoing()) == 0 {
			n = len(l.conf.GetVoters())
		}
	})
	return n
}

func TestAControllerThatIsHeardIsNotReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		c.start(1, 2, 3)
		l := c.leader(5 * time.Second)
		time.Sleep(20 * time.Second) // it leads for long enough
		other := c.nodes[l.id%3+1]
		thief := testVoter()
		thief.Node = other.id
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := l.q.changeVoters(ctx, replaceVoter, thief)
		if !errors.Is(err, ErrMembership) || !strings.Contains(err.Error(), other.dir.Identity().DirectoryID.Hex()) {
			t.Errorf("got %v, want a refusal that names the directory", err)
		}
		// Through another node it may not ask for a place that is not its own.
		err = c.nodes[(l.id+1)%3+1].q.changeVoters(ctx, replaceVoter, thief)
		if !errors.Is(err, ErrMembership) {
			t.Errorf("got %v, want a refusal", err)
		}
		c.end()
	})
}

func TestAControllerIsAddedAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 1)
		c.every = 10
		c.start(1, 2, 3)
		c.agree(c.fill(25))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.nodes[2].q.AddVoter(ctx, 2); !errors.Is(err, ErrMembership) {
			t.Fatalf("a node that is not registered: %v", err)
		}
		for _, id := range []kafka.NodeID{2, 3} {
			c.registered(id)
			c.agree(c.fill(1))
			if err := c.nodes[3].q.AddVoter(ctx, id); err != nil {
				t.Fatalf("add node %d: %v", id, err)
			}
			if err := c.nodes[1].q.AddVoter(ctx, id); err != nil {
				t.Fatalf("add node %d again: %v", id, err)
			}
		}
		c.eventually("three voters", time.Second, func() bool { return c.nodes[1].isVoter() && c.nodes[2].isVoter() && c.nodes[3].isVoter() })
		// Any one may go now.
		c.crash(systest.LoseAll, 1)
		last := c.fill(3)
		c.start(1)
		c.agree(last)
		if err := c.nodes[2].q.RemoveVoter(ctx, 1); err != nil {
			t.Fatal(err)
		}
		c.agree(c.fill(2))
		c.eventually("node 1 is an observer", 10*time.Second, func() bool { return !c.nodes[1].q.isMember.Load() })
		if got := votersOf(c.nodes[1]); !slices.Equal(got, []kafka.NodeID{2, 3}) {
			t.Errorf("the table is of nodes %v", got)
		}
		// Of two, one may not be taken out while it is the other that is gone.
		c.halt(3)
		time.Sleep(time.Second)
		err := c.nodes[2].q.RemoveVoter(ctx, 2)
		if err == nil {
			t.Error("the only voter that is left was removed")
		}
		c.start(3)
		c.agree(c.fill(2))
		c.end()
	})
}

func TestC081_TheActiveControllerIsRemovedFiftyTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		c.every = 16
		c.start(1, 2, 3)
		c.agree(c.fill(3))
		for id := range kafka.NodeID(3) {
			c.registered(id + 1)
		}
		for round := range 50 {
			old := c.leader(5 * time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			began := time.Now()
			if err := old.q.RemoveVoter(ctx, old.id); err != nil {
				t.Fatalf("round %d: remove the leader, node %d: %v\n%s", round, old.id, err, c.describe())
			}
			l := c.leader(5 * time.Second)
			if took := time.Since(began); took > 3*time.Second || l == old {
				t.Errorf("round %d: node %d leads after %v", round, l.id, took)
			}
			c.agree(c.fill(2))
			if round%5 == 4 { // it starts as what it is now
				c.crash(systest.LoseAll, old.id)
				last := c.fill(1)
				c.start(old.id)
				c.agree(last)
			}
			if err := l.q.AddVoter(ctx, old.id); err != nil {
				t.Fatalf("round %d: add node %d again: %v\n%s", round, old.id, err, c.describe())
			}
			cancel()
			c.agree(c.fill(1))
		}
		c.end()
	})
}

func TestARemovedControllerThatWasAwayLearnsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, every := range []int{0, 5} {
			c := newTestCluster(t, 3)
			c.every = every
			c.start(1, 2, 3)
			c.agree(c.fill(3))
			away := c.leader(time.Second).id%3 + 1
			c.crash(systest.KillProcess, away)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if err := c.leader(time.Second).q.RemoveVoter(ctx, away); err != nil {
				t.Fatal(err)
			}
			cancel()
			last := c.fill(20)
			c.start(away)
			c.agree(last)
			if m := c.nodes[away]; m.q.isMember.Load() || slices.Contains(votersOf(m), away) {
				t.Errorf("node %d takes itself for a member", away)
			}
			c.halt(away)
			c.start(away)
			c.agree(c.fill(1))
			c.end()
		}
	})
}

// A learner that is taken out again before it has heard so is told by nobody: it has to ask.
func TestALearnerThatWasDroppedLearnsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		c.start(1, 2, 3, 4)
		c.registered(4)
		c.agree(c.fill(3))
		l := c.leader(time.Second)
		row := learnerRow(c.nodes[4])
		// Nobody wants it to become a voter, so it stays a learner until the leader, which it hears no more, takes it out.
		l.onLoop(func(l *loop) {
			l.proposeChange(change(raftpb.ConfChangeAddLearnerNode, row.RaftID), append(l.tableWithout(row.RaftID), row))
		})
		c.eventually("node 4 is a learner", time.Second, func() bool {
			return c.nodes[4].q.isMember.Load() && slices.Contains(votersOf(l), 4)
		})
		c.net.CutBoth(hostOf(l.id), hostOf(4))
		l.onLoop(func(l *loop) {
			l.proposeChange(change(raftpb.ConfChangeRemoveNode, row.RaftID), l.tableWithout(row.RaftID))
		})
		c.eventually("node 4 is out", time.Second, func() bool { return !slices.Contains(votersOf(l), 4) })
		last := c.fill(2)
		c.eventually("node 4 knows that it is none", 10*time.Second, func() bool {
			return !c.nodes[4].q.isMember.Load() && c.nodes[4].q.Image().Version() >= last
		})
		c.net.HealAll()
		c.agree(c.fill(1))
		c.end()
	})
}

// learnerRow is a node's row of the table.
func learnerRow(m *testMember) metadata.Voter {
	d := m.dir.Identity().DirectoryID
	id, _ := raftID(d)
	return metadata.Voter{RaftID: id, Node: m.id, Directory: d, Address: addressOf(m.id)}
}

func TestARestoredControllerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		c.start(1, 2, 3)
		c.agree(c.fill(3))
		away := c.leader(time.Second).id%3 + 1
		c.halt(away)
		c.start(away) // its second start
		c.agree(c.fill(1))
		old := c.disks[away].Clone(systest.KeepAll)
		for range 2 {
			c.halt(away)
			c.start(away)
			c.agree(c.fill(2))
		}
		c.registered(away)
		last := c.fill(2)
		c.agree(last)
		c.halt(away)
		c.disks[away] = old
		c.start(away)
		time.Sleep(10 * time.Second)
		if m := c.nodes[away]; m.q.Leadership().Leading {
			t.Error("a restored controller leads")
		}
		l := c.leader(time.Second)
		heard := time.Duration(0)
		if err := l.q.onLoop(t.Context(), func(lp *loop) error {
			id, _ := raftID(c.nodes[away].dir.Identity().DirectoryID)
			heard = lp.silentFor(id)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if heard < 9*time.Second {
			t.Errorf("a restored controller was heard %v ago", heard)
		}
		// Emptied, it joins anew.
		c.halt(away)
		c.wipe(away)
		c.start(away)
		c.eventually("the new directory votes", time.Minute, func() bool { return c.nodes[away].isVoter() })
		c.agree(c.fill(1))
		c.end()
	})
}
