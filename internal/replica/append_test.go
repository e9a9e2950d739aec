package replica

import (
	"errors"
	"testing"
	"time"

	"strandline.dev/internal/isr"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/storage"
)

// TestI1_AcksAllIsAnsweredWhenCommitted: with two replicas in sync and none but the leader storing, nothing is confirmed, and the
// records stay invisible (I6), also those of acks=1.
func TestI1_AcksAllIsAnsweredWhenCommitted(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.pair("orders")
	all := w.publish(tp, batch(2), AcksAll)
	one := w.publish(tp, batch(1), AcksLeader)
	waitFor(t, one.Ready())
	if r := one.Results()[0]; r.Err != nil || r.Base != 2 {
		t.Fatalf("acks=1: %+v", r)
	}
	w.must(w.host.partition(tp).mu.log.Sync())
	if isReady(all.Ready()) {
		t.Fatalf("acks=all confirmed without replica 2: %+v", all.Results()[0])
	}
	if r := w.fetch(at(tp, 0)); r.Err != nil || len(r.Records) != 0 || r.HighWatermark != 0 {
		t.Fatalf("I6: uncommitted records are visible: %+v", r)
	}
	all.Expire()
	waitFor(t, all.Ready())
	if r := all.Results()[0]; !errors.Is(r.Err, ErrTimedOut) || r.Base != kafka.NoOffset {
		t.Fatalf("after the time-out: %+v", r)
	}
}

// TestI1_PublishBelowMinISRIsRefused, and what was parked when the ISR shrank is told so.
func TestI1_PublishBelowMinISRIsRefused(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.pair("orders")
	parked := w.publish(tp, batch(1), AcksAll)
	w.change(tp, func(s *kafka.PartitionState) { s.ISR = []kafka.NodeID{me} })
	waitFor(t, parked.Ready())
	if r := parked.Results()[0]; !errors.Is(r.Err, ErrNotEnoughReplicasAfterAppend) || r.Base != kafka.NoOffset {
		t.Fatalf("parked: %+v", r)
	}
	refused := w.publish(tp, batch(1), AcksAll)
	if r := refused.Results()[0]; !isReady(refused.Ready()) || !errors.Is(r.Err, ErrNotEnoughReplicas) {
		t.Fatalf("acks=all below min ISR: %+v", r)
	}
	if r := w.publish(tp, batch(1), AcksLeader).Results()[0]; r.Err != nil || r.Base != 1 {
		t.Fatalf("acks=1 is not subject to min ISR, and the refused batch must not be in the log: %+v", r)
	}
	if hw := w.status(tp).HW; hw != 0 {
		t.Fatalf("I2: the watermark moved to %d below min ISR", hw)
	}
}

// TestC018_NothingIsAckedOnAnISRThatIsNotCommitted: the shrink to this node alone is proposed and its answer is held back.
func TestC018_NothingIsAckedOnAnISRThatIsNotCommitted(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.pair("orders")
	p := w.host.partition(tp)
	produce := w.publish(tp, batch(3), AcksAll)
	p.mu.Lock()
	for _, at := range []int64{0, 5} { // replica 2 says nothing for replica.lag.max
		p.mu.core.Tick(time.Unix(at, 0), p.mu.log.End(), 5*time.Second)
	}
	proposal, ok := p.mu.core.Propose(func(kafka.NodeID) (kafka.BrokerEpoch, bool) { return 0, false })
	p.unlock()
	if !ok || len(proposal.ISR) != 1 || proposal.ISR[0].Node != me {
		t.Fatalf("proposal: %+v, %v", proposal, ok)
	}
	w.must(p.mu.log.Sync())
	if isReady(produce.Ready()) || w.status(tp).HW != 0 {
		t.Fatal("acknowledged on the proposed ISR")
	}
	// The controller commits the shrink; the minimum comes with it, in the same state (I1).
	s := w.img.TopicByID(tp.Topic).Partitions[0]
	s.ISR, s.PartitionEpoch = []kafka.NodeID{me}, s.PartitionEpoch+2
	w.apply(configRecord(tp.Topic, "min.insync.replicas", "1"), partitionRecord(tp, s))
	waitFor(t, produce.Ready())
	if r := produce.Results()[0]; r.Err != nil || r.Base != 0 {
		t.Fatalf("after the commit: %+v", r)
	}
}

// TestC067_RetryOfTheLastFiveBatchesAnswersTheOriginal, in this process and in the next, clean or killed.
func TestC067_RetryOfTheLastFiveBatchesAnswersTheOriginal(t *testing.T) {
	for _, how := range []string{"same process", "clean restart", "kill"} {
		t.Run(how, func(t *testing.T) {
			w, _ := newWorld(t)
			tp := w.topic("orders", 1)
			for n := range int32(7) {
				w.acked(tp, numbered(9, 2*n, 2))
			}
			if how != "same process" {
				w.restart(how == "clean restart")
			}
			for n := int32(2); n < 7; n++ {
				if r := w.acked(tp, numbered(9, 2*n, 2)); r.Base != kafka.Offset(2*n) {
					t.Fatalf("retry of batch %d: %+v", n, r)
				}
			}
			if r := w.publish(tp, numbered(9, 2, 2), AcksAll).Results()[0]; !errors.Is(r.Err, storage.ErrOutOfOrderSequence) {
				t.Fatalf("a repeat older than five batches: %+v", r)
			}
			if end := w.status(tp).End; end != 14 {
				t.Fatalf("a repeat was stored: end %d", end)
			}
			if r := w.acked(tp, numbered(9, 14, 1)); r.Base != 14 {
				t.Fatalf("the next batch: %+v", r)
			}
		})
	}
}

// TestI12_RepeatIsParkedUntilTheOriginalIsCommitted.
func TestI12_RepeatIsParkedUntilTheOriginalIsCommitted(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.pair("orders")
	first := w.publish(tp, numbered(9, 0, 2), AcksAll)
	again := w.publish(tp, numbered(9, 0, 2), AcksAll)
	if isReady(first.Ready()) || isReady(again.Ready()) {
		t.Fatal("confirmed before it is committed")
	}
	p := w.host.partition(tp)
	w.must(p.mu.log.Sync())
	p.mu.Lock()
	from := isr.Origin{Node: 2, Epoch: p.mu.core.Epoch(), Sequence: 1}
	p.carryOutLocked(p.mu.core.Fetched(from, 2))
	p.carryOutLocked(p.mu.core.Reported(from, 2, 0))
	p.unlock()
	for _, pr := range []*Produce{first, again} {
		waitFor(t, pr.Ready())
		if r := pr.Results()[0]; r.Err != nil || r.Base != 0 {
			t.Fatalf("%+v", r)
		}
	}
}

// TestC048_ProducerStateOutlivesItsRecords: everything is removed, and a repeat is still known, also after a restart.
func TestC048_ProducerStateOutlivesItsRecords(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w, _ := newWorld(t)
		tp := w.topic("orders", 1)
		for n := range int32(5) {
			w.acked(tp, numbered(9, n, 1))
		}
		w.must(w.host.partition(tp).mu.log.AdvanceStart(5))
		if restart {
			w.restart(false)
		}
		if s := w.status(tp); s.Start != 5 || s.End != 5 {
			t.Fatalf("restart=%v: log is [%d, %d)", restart, s.Start, s.End)
		}
		if r := w.acked(tp, numbered(9, 4, 1)); r.Base != 4 {
			t.Fatalf("restart=%v: retry of sequence 4: %+v", restart, r)
		}
		if r := w.acked(tp, numbered(9, 5, 1)); r.Base != 5 {
			t.Fatalf("restart=%v: sequence 5: %+v", restart, r)
		}
	}
}

// TestAppend_RefusesByName covers what is refused before anything is stored.
func TestAppend_RefusesByName(t *testing.T) {
	w, _ := newWorld(t)
	strict := baseConfig()
	strict.AcksMinimum = "all"
	w.configs["strict"] = strict
	tp := w.topic("strict", 1)
	for _, c := range []struct {
		acks int16
		tp   kafka.TopicPartition
		want error
	}{
		{2, tp, ErrBadAcks},
		{-2, tp, ErrBadAcks},
		{AcksLeader, tp, ErrAcksRefused},
		{AcksNone, tp, ErrAcksRefused},
		{AcksAll, kafka.TopicPartition{Topic: tp.Topic, Partition: 7}, ErrUnknownPartition},
	} {
		p := w.publish(c.tp, batch(1), c.acks)
		if r := p.Results()[0]; !isReady(p.Ready()) || !errors.Is(r.Err, c.want) || r.Base != kafka.NoOffset || r.LogStart != kafka.NoOffset {
			t.Errorf("acks=%d to %v: %+v, want %v", c.acks, c.tp, r, c.want)
		}
	}
	if end := w.status(tp).End; end != 0 {
		t.Fatalf("something was stored: end %d", end)
	}
}

// TestAppend_ItemsSucceedOrFailApart.
func TestAppend_ItemsSucceedOrFailApart(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 2)
	other := kafka.TopicPartition{Topic: tp.Topic, Partition: 1}
	missing := kafka.TopicPartition{Topic: tp.Topic, Partition: 2}
	p := w.host.Append([]AppendItem{{TP: tp, Batch: batch(1)}, {TP: missing, Batch: batch(1)}, {TP: other, Batch: batch(3)}}, AcksAll, 0)
	waitFor(t, p.Ready())
	r := p.Results()
	if r[0].Err != nil || r[0].Base != 0 || !errors.Is(r[1].Err, ErrUnknownPartition) || r[2].Err != nil || r[2].Base != 0 {
		t.Fatalf("%+v", r)
	}
	if s := w.status(other); s.HW != 3 || s.Stored != 3 {
		t.Fatalf("%+v", s)
	}
}

// TestFailedAppendsAreLoggedOncePerCause: a full disk makes a client retry many times a second, which must not fill the log too.
func TestFailedAppendsAreLoggedOncePerCause(t *testing.T) {
	var f failing
	at := time.Now()
	said := 0
	for i := range 100 {
		times, due := f.note(true, at.Add(time.Duration(i)*appendWarnEvery/50))
		if due {
			if said++; said > 1 && times != 50 {
				t.Errorf("line %d stands for %d failures, want 50", said, times)
			}
		}
	}
	if _, due := f.note(false, at); said != 2 || !due {
		t.Errorf("%d lines for 100 failures within two intervals, another cause at once: %t", said, due)
	}
}
