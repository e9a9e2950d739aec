package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/quorum"
)

func TestAnAnswerWaitsForItsCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestController(t)
		c.quorum.lead()
		c.register(1)
		c.quorum.hold()
		s := c.submit(create("orders", 3))
		synctest.Wait()
		if s.answered() {
			t.Fatal("answered before the commit")
		}
		c.quorum.commit(1)
		<-s.done
		if s.err != nil || codeOf(t, s.reply) != kafka.None || s.index != c.quorum.Image().Version() {
			t.Fatalf("reply %+v at %d, %v", s.reply, s.index, s.err)
		}
		topic := c.quorum.Image().Topic("orders")
		if topic == nil || topic.ID.IsZero() || len(topic.Partitions) != 3 || topic.Created.IsZero() {
			t.Fatalf("topic %+v", topic)
		}
		c.stop()
	})
}

func TestDecisionsArePipelinedAndWhatTheySeeWaitsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestController(t)
		c.quorum.lead()
		c.register(1)
		c.quorum.hold()
		first := c.submit(create("orders", 1))
		synctest.Wait()
		// Decided on the working Image: the name is taken, by a topic that is not committed.
		second := c.submit(create("orders", 1))
		third := c.submit(create("payments", 1))
		synctest.Wait()
		if first.answered() || second.answered() || third.answered() {
			t.Fatal("answered before the commit")
		}
		if n := c.quorum.commit(1); n != 1 {
			t.Fatalf("%d entries in flight", n)
		}
		<-first.done
		synctest.Wait()
		if third.answered() {
			t.Fatal("the later entry was confirmed with the earlier")
		}
		c.quorum.commit(10)
		<-second.done
		<-third.done
		if codeOf(t, first.reply) != kafka.None || codeOf(t, second.reply) != kafka.TopicAlreadyExists || codeOf(t, third.reply) != kafka.None {
			t.Errorf("codes %v %v %v", codeOf(t, first.reply), codeOf(t, second.reply), codeOf(t, third.reply))
		}
		c.stop()
	})
}

func TestLostLeadershipIsUnknownAndNeverFailed(t *testing.T) {
	for _, kept := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			c := newTestController(t)
			c.quorum.lead()
			c.register(1)
			c.quorum.hold()
			lost := c.submit(create("orders", 1))
			synctest.Wait()
			c.quorum.depose(2, kept)
			<-lost.done
			if !errors.Is(lost.err, ErrUnknownOutcome) {
				t.Fatalf("the answer is %+v, %v", lost.reply, lost.err)
			}
			away := c.submit(create("payments", 1))
			<-away.done
			if !errors.Is(away.err, ErrNotController) {
				t.Fatalf("while another node leads: %v", away.err)
			}
			// Back again: the working Image of the lost reign is gone, the committed one counts.
			c.quorum.lead()
			for c.quorum.commit(10) > 0 {
				synctest.Wait()
			}
			again := c.submit(create("orders", 1))
			synctest.Wait()
			c.quorum.commit(10)
			<-again.done
			want := kafka.None
			if kept == 1 {
				want = kafka.TopicAlreadyExists
			}
			if again.err != nil || codeOf(t, again.reply) != want {
				t.Errorf("with %d entries kept: %+v, %v", kept, again.reply, again.err)
			}
			c.stop()
		})
	}
}

func TestNothingIsDecidedBeforeTheTakeOverIsApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestController(t)
		// No leader is known: events wait.
		early := c.submit(registration(1))
		synctest.Wait()
		if early.answered() {
			t.Fatal("answered without a leader")
		}
		c.quorum.hold()
		c.quorum.lead()
		synctest.Wait()
		if early.answered() || c.quorum.LogEnd() != 2 {
			t.Fatal("decided before the term's first entry was committed")
		}
		c.quorum.commit(1)
		synctest.Wait()
		c.quorum.commit(1)
		<-early.done
		if early.err != nil || early.reply.(metadata.Registered).Epoch != 2 {
			t.Errorf("reply %+v, %v", early.reply, early.err)
		}
		c.stop()
	})
}

func TestI3_EveryRegistrationGetsItsOwnEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestController(t)
		// They wait in the inbox together and are decided in one round.
		var all []*submitted
		for node := kafka.NodeID(1); node <= 5; node++ {
			all = append(all, c.submit(registration(node)))
			synctest.Wait()
		}
		c.quorum.lead()
		epochs := map[kafka.BrokerEpoch]bool{}
		for _, s := range all {
			<-s.done
			if s.err != nil {
				t.Fatal(s.err)
			}
			epochs[s.reply.(metadata.Registered).Epoch] = true
		}
		if len(epochs) != len(all) {
			t.Errorf("%d registrations got %d epochs", len(all), len(epochs))
		}
		for b := range c.quorum.Image().Brokers() {
			if !epochs[b.Epoch] {
				t.Errorf("broker %d has epoch %d in the Image, which nobody was told", b.ID, b.Epoch)
			}
		}
		c.stop()
	})
}

// large is a decision of more than an entry: topics with the most partitions a topic can have.
func large() metadata.CreateTopics {
	var ev metadata.CreateTopics
	for _, name := range []string{"large-1", "large-2", "large-3", "large-4"} {
		ev.Topics = append(ev.Topics, create(name, 10_000).Topics...)
	}
	return ev
}

func TestC080_ALargeDecisionIsSplitAndEachTopicVisibleOnlyWhenWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestController(t)
		c.quorum.lead()
		c.register(1)
		c.quorum.hold()
		s := c.submit(large())
		synctest.Wait()
		entries, halfMade := 0, false
		for c.quorum.commit(1) == 1 {
			entries++
			for topic := range c.quorum.Image().Topics() {
				if topic.State == metadata.StateReady && len(topic.Partitions) != 10_000 {
					t.Fatalf("%s is ready with %d partitions", topic.Name, len(topic.Partitions))
				}
				halfMade = halfMade || topic.State == metadata.StateCreating
			}
		}
		<-s.done
		if s.err != nil || s.index != c.quorum.Image().Version() {
			t.Fatalf("answered at %d, %v", s.index, s.err)
		}
		for i, r := range s.reply.([]metadata.TopicResult) {
			if topic := c.quorum.Image().Topic(r.Name); r.Code != kafka.None || topic == nil || topic.State != metadata.StateReady {
				t.Errorf("topic %d: %+v", i, r)
			}
		}
		if entries < 2 || !halfMade {
			t.Errorf("%d entries, half made in between: %v", entries, halfMade)
		}
		c.stop()
	})
}

func TestC080_AHalfMadeTopicIsRemovedByTheNextReign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestController(t)
		c.quorum.lead()
		c.register(1)
		c.quorum.hold()
		s := c.submit(large())
		synctest.Wait()
		c.quorum.depose(kafka.NoNode, 1)
		<-s.done
		if !errors.Is(s.err, ErrUnknownOutcome) {
			t.Fatalf("the answer is %v", s.err)
		}
		halfMade := 0
		for topic := range c.quorum.Image().Topics() {
			if topic.State == metadata.StateCreating {
				halfMade++
			}
		}
		if halfMade != 1 {
			t.Fatalf("%d topics are half made", halfMade)
		}
		c.quorum.lead()
		for c.quorum.commit(10) > 0 {
			synctest.Wait()
		}
		for topic := range c.quorum.Image().Topics() {
			if topic.State != metadata.StateReady {
				t.Errorf("%s is still there: state %v", topic.Name, topic.State)
			}
		}
		c.stop()
	})
}

func TestARefusedProposalChangesNothing(t *testing.T) {
	for refusal, want := range map[error]error{
		quorum.ErrBusy:      ErrBusy,
		quorum.ErrMoved:     ErrNotController,
		quorum.ErrNotLeader: ErrNotController,
		quorum.ErrStopped:   ErrNotController,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newTestController(t)
			c.quorum.lead()
			c.register(1)
			c.quorum.setRefuse(refusal)
			s := c.submit(create("orders", 1))
			<-s.done
			if !errors.Is(s.err, want) {
				t.Errorf("refused with %v, answered %v", refusal, s.err)
			}
			c.quorum.setRefuse(nil)
			if code := codeOf(t, c.must(create("orders", 1))); code != kafka.None {
				t.Errorf("after the refusal %v: code %v", refusal, code)
			}
			c.stop()
		})
	}
}

func TestI14_TheInboxIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestController(t)
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, inboxMax)
		for range inboxMax {
			go func() {
				_, _, err := c.Submit(ctx, metadata.ExpireTrash{})
				gone <- err
			}()
		}
		synctest.Wait()
		if _, _, err := c.Submit(ctx, metadata.ExpireTrash{}); !errors.Is(err, ErrBusy) {
			t.Fatalf("one more: %v", err)
		}
		cancel()
		for range inboxMax {
			if err := <-gone; !errors.Is(err, ErrNotController) || !errors.Is(err, context.Canceled) {
				t.Fatalf("a caller that stopped waiting: %v", err)
			}
		}
		// What nobody waits for is not decided, and makes room.
		c.quorum.lead()
		synctest.Wait()
		c.register(1)
		c.stop()
	})
}

func TestAStoppedControllerAnswersEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestController(t)
		c.quorum.lead()
		c.register(1)
		c.quorum.hold()
		waits := c.submit(create("orders", 1))
		synctest.Wait()
		close(c.quorum.stopped)
		<-waits.done
		if !errors.Is(waits.err, ErrUnknownOutcome) {
			t.Errorf("a decided change: %v", waits.err)
		}
		late := c.submit(create("payments", 1))
		<-late.done
		if !errors.Is(late.err, ErrNotController) {
			t.Errorf("after the end: %v", late.err)
		}
		c.stop()
	})
}

func TestO3_TrashExpiresByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestController(t)
		c.quorum.lead()
		c.register(1)
		window := "60000"
		ev := create("orders", 1)
		ev.Topics[0].Configs = map[string]*string{"strandline.delete.recovery.ms": &window}
		if code := codeOf(t, c.must(ev)); code != kafka.None {
			t.Fatalf("create: %v", code)
		}
		id := c.quorum.Image().Topic("orders").ID
		deleted := c.must(metadata.DeleteTopics{Topics: []metadata.DeleteTopic{{Name: "orders"}}}).([]metadata.DeleteResult)
		if deleted[0].Code != kafka.None {
			t.Fatalf("delete: %+v", deleted)
		}
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if topic := c.quorum.Image().TopicByID(id); topic == nil || topic.State != metadata.StateDeleted {
			t.Fatalf("within the window: %+v", topic)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if topic := c.quorum.Image().TopicByID(id); topic == nil || topic.State != metadata.StatePurging {
			t.Errorf("after the window: %+v", topic)
		}
		c.stop()
	})
}
