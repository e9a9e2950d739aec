package replica

import (
	"errors"
	"testing"

	"strandline.dev/internal/isr"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys/systest"
)

func configRecord(id kafka.TopicID, key, value string) metadata.Record {
	return metadata.ConfigRecord{Topic: id, Node: kafka.NoNode, Key: key, Value: &value}
}

func partitionRecord(tp kafka.TopicPartition, s kafka.PartitionState) metadata.Record {
	return metadata.PartitionRecord{Topic: tp.Topic, Partition: tp.Partition, State: s}
}

// TestC011_DeposedLeaderFailsWhatIsParkedAtOnce: another node leads, other records take the offset, this node leads again and
// the watermark passes that offset: the old publish must not be confirmed by it.
func TestC011_DeposedLeaderFailsWhatIsParkedAtOnce(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.pair("orders")
	parked := w.publish(tp, batch(1), AcksAll)
	fetch := w.host.Park([]FetchItem{at(tp, 0)}, FetchOptions{MaxBytes: 1 << 20}, 1)
	w.change(tp, func(s *kafka.PartitionState) { s.Leader, s.LeaderEpoch = 2, 1 })
	if !isReady(parked.Ready()) || !isReady(fetch.Ready()) {
		t.Fatal("something is still parked after the leadership was lost")
	}
	if r := parked.Results()[0]; !errors.Is(r.Err, ErrNotLeader) || r.Base != kafka.NoOffset {
		t.Fatalf("parked publish: %+v", r)
	}
	if r := w.publish(tp, batch(1), AcksLeader).Results()[0]; !errors.Is(r.Err, ErrNotLeader) || r.Leader != 2 || r.LeaderEpoch != 1 {
		t.Fatalf("publish to a deposed leader: %+v", r)
	}
	if r := w.fetch(at(tp, 0)); !errors.Is(r.Err, ErrNotLeader) || r.Leader != 2 {
		t.Fatalf("fetch from a deposed leader: %+v", r)
	}
	fetch.Cancel()

	// What the new leader would have this node do: cut the unconfirmed record, take other data.
	w.must(w.host.partition(tp).mu.log.TruncateTo(0))
	w.change(tp, func(s *kafka.PartitionState) { s.Leader, s.LeaderEpoch, s.ISR = me, 2, []kafka.NodeID{me} })
	w.apply(configRecord(tp.Topic, "min.insync.replicas", "1"))
	w.acked(tp, batch(1))
	if r := parked.Results()[0]; !errors.Is(r.Err, ErrNotLeader) {
		t.Fatalf("the publish of epoch 0 was confirmed by a record of epoch 2: %+v", r)
	}
}

// TestI3_EveryNewEpochIsALossAndAGain, even when the leader stays the same.
func TestI3_EveryNewEpochIsALossAndAGain(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.pair("orders")
	parked := w.publish(tp, batch(1), AcksAll)
	p := w.host.partition(tp)
	before := p.mu.core
	w.change(tp, func(s *kafka.PartitionState) { s.LeaderEpoch++ })
	if r := parked.Results()[0]; !isReady(parked.Ready()) || !errors.Is(r.Err, ErrNotLeader) {
		t.Fatalf("parked over a change of epoch: %+v", r)
	}
	if p.mu.core == before || p.mu.core.Epoch() != 1 {
		t.Fatal("the core of the old epoch lives on")
	}
	if p.mu.waits.length != 0 {
		t.Fatalf("%d waits are left", p.mu.waits.length)
	}
	if r := w.publish(tp, batch(1), AcksLeader).Results()[0]; r.Err != nil || r.LeaderEpoch != 1 || r.Base != 1 {
		t.Fatalf("in the new epoch: %+v", r)
	}
	if e := p.mu.log.LatestEpoch(); e != 1 {
		t.Fatalf("the log's latest epoch is %d", e)
	}
}

// TestI3_LeadsOnlyWhatWasGrantedAfterRegistration: before, and when another process has registered, nothing is led.
func TestI3_LeadsOnlyWhatWasGrantedAfterRegistration(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 1)
	w.acked(tp, batch(1))
	w.stop(false)
	w.start()
	w.must(w.host.Reconcile(w.img)) // the epoch in it was granted to the process before
	if s := w.status(tp); s.Role != Idle {
		t.Fatalf("role before registration: %v", s.Role)
	}
	if r := w.publish(tp, batch(1), AcksLeader).Results()[0]; !errors.Is(r.Err, ErrNotLeader) {
		t.Fatalf("publish before registration: %+v", r)
	}
	w.register()
	if s := w.status(tp); s.Role != Leading || s.Epoch != 1 {
		t.Fatalf("after registration: %+v", s)
	}
	w.apply(metadata.BrokerRecord{Node: me, Epoch: kafka.BrokerEpoch(w.version + 1)}) // not ours
	if r := w.publish(tp, batch(1), AcksLeader).Results()[0]; !errors.Is(r.Err, ErrNotLeader) {
		t.Fatalf("publish after another process registered: %+v", r)
	}
}

// TestI2_WatermarkSurvivesTheEpoch: a new epoch of the same node begins at the watermark of the old one.
func TestI2_WatermarkSurvivesTheEpoch(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 1)
	w.acked(tp, batch(4))
	w.apply(configRecord(tp.Topic, "min.insync.replicas", "2"))
	w.change(tp, func(s *kafka.PartitionState) {
		s.Replicas, s.ISR, s.LeaderEpoch = []kafka.NodeID{me, 2}, []kafka.NodeID{me, 2}, 1
	})
	if s := w.status(tp); s.HW != 4 {
		t.Fatalf("watermark %d, it was 4", s.HW)
	}
}

// TestI2_NewLeaderHidesAnUnsettledWatermark (C007): the epoch began at 3, replica 2 has confirmed nothing, so "latest" and
// fetches wait; below the minimum, what is known is served.
func TestI2_NewLeaderHidesAnUnsettledWatermark(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.pair("orders")
	w.publish(tp, batch(3), AcksLeader)
	w.change(tp, func(s *kafka.PartitionState) { s.LeaderEpoch = 1 })
	for _, ts := range []int64{LatestTimestamp, MaxTimestamp, 0} {
		if o, err := w.host.ListOffset(tp, ts, kafka.NoEpoch, false); !errors.Is(err, ErrOffsetNotAvailable) || o.Offset != kafka.NoOffset {
			t.Errorf("ListOffset(%d) = %+v, %v", ts, o, err)
		}
	}
	if o, err := w.host.ListOffset(tp, EarliestTimestamp, kafka.NoEpoch, false); err != nil || o.Offset != 0 {
		t.Errorf("earliest: %+v, %v", o, err)
	}
	if r := w.fetch(at(tp, 0)); !errors.Is(r.Err, ErrOffsetNotAvailable) || r.HighWatermark != kafka.NoOffset {
		t.Errorf("fetch: %+v", r)
	}
	wait := w.host.Park([]FetchItem{at(tp, 0)}, FetchOptions{}, 1)
	if isReady(wait.Ready()) {
		t.Fatal("an unsettled fetch does not park")
	}
	p := w.host.partition(tp)
	w.must(p.mu.log.Sync())
	p.mu.Lock()
	from := isr.Origin{Node: 2, Epoch: 1, Sequence: 1}
	p.carryOutLocked(p.mu.core.Fetched(from, 3))
	p.carryOutLocked(p.mu.core.Reported(from, 3, 0))
	p.unlock()
	waitFor(t, wait.Ready())
	wait.Cancel()
	if r := w.fetch(at(tp, 0)); r.Err != nil || r.HighWatermark != 3 || len(r.Records) == 0 {
		t.Errorf("fetch when settled: %+v", r)
	}
	w.publish(tp, batch(1), AcksLeader)
	w.change(tp, func(s *kafka.PartitionState) { s.LeaderEpoch, s.ISR = 2, []kafka.NodeID{me} })
	if r := w.fetch(at(tp, 0)); r.Err != nil || r.HighWatermark != 3 || len(r.Records) == 0 {
		t.Errorf("fetch below min ISR: %+v", r)
	}
	if r := w.fetch(at(tp, 4)); r.Err != nil || len(r.Records) != 0 {
		t.Errorf("fetch between watermark and end: %+v", r)
	}
	if _, err := w.host.ListOffset(tp, LatestTimestamp, kafka.NoEpoch, false); !errors.Is(err, ErrOffsetNotAvailable) {
		t.Errorf("latest below min ISR: %v", err)
	}
}

// TestI13_OlderImageChangesNothing.
func TestI13_OlderImageChangesNothing(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 1)
	old := w.img
	w.change(tp, func(s *kafka.PartitionState) { s.LeaderEpoch = 5 })
	w.must(w.host.Reconcile(old))
	if s := w.status(tp); s.Epoch != 5 || s.Role != Leading {
		t.Fatalf("%+v", s)
	}
	later := w.topic("later", 1)
	w.must(w.host.Reconcile(old)) // does not know the topic
	if s := w.status(later); s.Role != Leading {
		t.Fatalf("%+v", s)
	}
}

// TestEpochs_ClientsAreTold: fenced, unknown, diverging.
func TestEpochs_ClientsAreTold(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 1)
	w.acked(tp, batch(2)) // epoch 0: [0, 2)
	w.change(tp, func(s *kafka.PartitionState) { s.LeaderEpoch = 3 })
	w.acked(tp, batch(2)) // epoch 3: [2, 4)
	it := at(tp, 4)
	it.CurrentEpoch = 0
	if r := w.fetch(it); !errors.Is(r.Err, ErrFencedEpoch) || r.LeaderEpoch != 3 || r.Leader != me {
		t.Errorf("older epoch: %+v", r)
	}
	it.CurrentEpoch = 9
	if r := w.fetch(it); !errors.Is(r.Err, ErrUnknownEpoch) {
		t.Errorf("newer epoch: %+v", r)
	}
	it.CurrentEpoch, it.LastFetchedEpoch = 3, 0
	if r := w.fetch(it); r.Err != nil || r.Diverging == nil || *r.Diverging != (kafka.EpochEnd{Epoch: 0, End: 2}) || len(r.Records) != 0 {
		t.Errorf("diverging: %+v", r)
	}
	it.LastFetchedEpoch = 3
	if r := w.fetch(it); r.Err != nil || r.Diverging != nil {
		t.Errorf("same history: %+v", r)
	}
	for _, c := range []struct {
		epoch, current kafka.LeaderEpoch
		want           kafka.EpochEnd
	}{
		{0, kafka.NoEpoch, kafka.EpochEnd{Epoch: 0, End: 2}},
		{2, 3, kafka.EpochEnd{Epoch: 0, End: 2}},
		{3, 3, kafka.EpochEnd{Epoch: 3, End: 4}},
		{-1, 3, kafka.EpochEnd{Epoch: kafka.NoEpoch, End: kafka.NoOffset}},
		{4, 3, kafka.EpochEnd{Epoch: kafka.NoEpoch, End: kafka.NoOffset}}, // lost here: an end would hide that
	} {
		if got, err := w.host.EpochEnd(tp, c.epoch, c.current); err != nil || got != c.want {
			t.Errorf("EpochEnd(%d) = %+v, %v, want %+v", c.epoch, got, err, c.want)
		}
	}
	if _, err := w.host.EpochEnd(tp, 0, 1); !errors.Is(err, ErrFencedEpoch) {
		t.Errorf("EpochEnd with an old epoch: %v", err)
	}
}

// TestC062_ErrorsComeWithoutOffsets: every way a look-up can fail answers NoOffset, never 0.
func TestC062_ErrorsComeWithoutOffsets(t *testing.T) {
	w, fs := newWorld(t)
	tp := w.topic("orders", 1)
	w.acked(tp, batch(2))
	missing := kafka.TopicPartition{Topic: tp.Topic, Partition: 9}
	old := at(tp, 0)
	old.CurrentEpoch = 7
	for name, it := range map[string]FetchItem{"unknown partition": at(missing, 0), "unknown epoch": old, "above end": at(tp, 99)} {
		r := w.fetch(it)
		if r.Err == nil || r.HighWatermark != kafka.NoOffset || r.LastStable != kafka.NoOffset || r.LogStart != kafka.NoOffset {
			t.Errorf("%s: %+v", name, r)
		}
	}
	none := storage.TimestampOffset{TimestampMs: -1, Offset: kafka.NoOffset, Epoch: kafka.NoEpoch}
	for _, ts := range []int64{LatestTimestamp, EarliestTimestamp, MaxTimestamp, EarliestLocalTimestamp, 0, -99} {
		if o, err := w.host.ListOffset(missing, ts, kafka.NoEpoch, false); err == nil || o != none {
			t.Errorf("ListOffset(%d) of an unknown partition = %+v, %v", ts, o, err)
		}
		if o, err := w.host.ListOffset(tp, ts, 7, false); !errors.Is(err, ErrUnknownEpoch) || o != none {
			t.Errorf("ListOffset(%d) in an unknown epoch = %+v, %v", ts, o, err)
		}
	}
	if o, err := w.host.ListOffset(tp, -99, kafka.NoEpoch, false); !errors.Is(err, ErrBadTimestamp) || o != none {
		t.Errorf("ListOffset(-99) = %+v, %v", o, err)
	}
	if e, err := w.host.EpochEnd(missing, 0, kafka.NoEpoch); err == nil || e.End != kafka.NoOffset || e.Epoch != kafka.NoEpoch {
		t.Errorf("EpochEnd = %+v, %v", e, err)
	}
	if r := w.publish(missing, batch(1), AcksAll).Results()[0]; r.Err == nil || r.Base != kafka.NoOffset || r.TimestampMs != -1 {
		t.Errorf("publish: %+v", r)
	}
	fs.Hook(func(op systest.Op) error { return errors.New("I/O error") }) // every look-up in a file
	w.host.dir.SavePoints(nil)                                            // closes idle files
	for _, ts := range []int64{MaxTimestamp, 0} {
		if o, err := w.host.ListOffset(tp, ts, kafka.NoEpoch, false); err == nil || o != none {
			t.Errorf("ListOffset(%d) on a broken disk = %+v, %v", ts, o, err)
		}
	}
	if r := w.fetch(at(tp, 0)); !errors.Is(r.Err, ErrStorage) || r.HighWatermark != kafka.NoOffset || r.LogStart != kafka.NoOffset {
		t.Errorf("fetch on a broken disk: %+v", r)
	}
	if r := w.publish(tp, batch(1), AcksAll).Results()[0]; !errors.Is(r.Err, ErrStorage) || r.Base != kafka.NoOffset {
		t.Errorf("publish on a broken disk: %+v", r)
	}
	fs.Hook(nil)
	w.stop(false)
	if r := w.publish(tp, batch(1), AcksLeader).Results()[0]; !errors.Is(r.Err, ErrStopped) || r.Base != kafka.NoOffset {
		t.Errorf("publish after stop: %+v", r)
	}
}
