package replica

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys/systest"
)

// delete deletes the records of one partition below an offset.
func (w *world) delete(tp kafka.TopicPartition, to kafka.Offset) DeleteResult {
	return w.host.DeleteRecords(context.Background(), []DeleteItem{{TP: tp, To: to}})[0]
}

func TestDeleteRecords_RaisesTheStart(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 1)
	for range 10 {
		w.acked(tp, batch(1))
	}
	for _, c := range []struct {
		to, start kafka.Offset
		err       error
	}{
		{4, 4, nil},
		{2, 4, nil}, // below the start: nothing to do
		{0, 4, nil},
		{11, 4, ErrOutOfRange}, // above the watermark
		{-2, 4, ErrOutOfRange},
		{ToHighWatermark, 10, nil},
		{10, 10, nil},
	} {
		r := w.delete(tp, c.to)
		if !errors.Is(r.Err, c.err) || (c.err == nil && r.Start != c.start) || (c.err != nil && r.Start != kafka.NoOffset) {
			t.Errorf("to %d: %+v, want start %d and error %v", c.to, r, c.start, c.err)
		}
		if s := w.status(tp); s.Start != c.start || s.End != 10 {
			t.Errorf("to %d: the log is [%d, %d)", c.to, s.Start, s.End)
		}
	}
	if r := w.fetch(at(tp, 9)); !errors.Is(r.Err, ErrOutOfRange) {
		t.Errorf("a deleted record was read: %+v", r)
	}
	if r := w.acked(tp, batch(1)); r.Base != 10 || r.LogStart != 10 {
		t.Errorf("the next record: %+v", r)
	}
}

func TestDeleteRecords_RefusesByName(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 1)
	w.acked(tp, batch(1))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if r := w.host.DeleteRecords(ended, []DeleteItem{{tp, 1}})[0]; !errors.Is(r.Err, context.Canceled) || r.Start != kafka.NoOffset {
		t.Errorf("after the end of its context: %+v", r)
	}
	if r := w.delete(kafka.TopicPartition{Topic: tp.Topic, Partition: 7}, 0); !errors.Is(r.Err, ErrUnknownPartition) {
		t.Errorf("an unknown partition: %+v", r)
	}
	w.change(tp, func(s *kafka.PartitionState) { s.Leader, s.LeaderEpoch = kafka.NoNode, s.LeaderEpoch+1 })
	if r := w.delete(tp, 1); !errors.Is(r.Err, ErrNotLeader) {
		t.Errorf("without leadership: %+v", r)
	}
	if s := w.status(tp); s.Start != 0 {
		t.Errorf("the start moved to %d", s.Start)
	}
}

// TestI2_DeleteRecordsStopsAtTheWatermark: what is not committed may yet be lost, and is not deleted; while the watermark of a new leader
// is not settled, nobody is told that an offset is out of range.
func TestI2_DeleteRecordsStopsAtTheWatermark(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.pair("orders")
	p := w.publish(tp, batch(3), AcksAll) // waits for the other replica
	defer p.Cancel()
	if r := w.delete(tp, 3); !errors.Is(r.Err, ErrOutOfRange) {
		t.Errorf("above the watermark: %+v", r)
	}
	if r := w.delete(tp, ToHighWatermark); r.Err != nil || r.Start != 0 {
		t.Errorf("nothing is committed: %+v", r)
	}
	w.change(tp, func(s *kafka.PartitionState) { s.LeaderEpoch++ }) // the epoch begins at 3, above the watermark
	for _, to := range []kafka.Offset{3, 0, ToHighWatermark} {
		if r := w.delete(tp, to); !errors.Is(r.Err, ErrOffsetNotAvailable) {
			t.Errorf("to %d of an unsettled leader: %+v", to, r)
		}
	}
}

// TestDeleteRecords_AnsweredMeansOnDisk: the machine stops at the n-th change of the disk. A deletion that was answered is not undone by
// the restart, and one that was not has not reached further than was asked.
func TestDeleteRecords_AnsweredMeansOnDisk(t *testing.T) {
	for n := int64(1); n <= 40; n++ {
		for _, mode := range []systest.CrashMode{systest.LoseAll, systest.Random} {
			w, fs := newWorld(t)
			c := baseConfig()
			c.SegmentBytes = 300 // two or three batches
			w.configs["orders"] = c
			tp := w.topic("orders", 1)
			for seq := range int32(12) {
				w.acked(tp, numbered(9, seq, 1))
			}
			fs.CrashAt(fs.Ops() + n)
			answered := kafka.Offset(0)
			for _, to := range []kafka.Offset{3, 7, ToHighWatermark} {
				if r := w.delete(tp, to); r.Err == nil {
					answered = r.Start
				}
			}
			survived := fs.Crash(mode)
			w.host.Close(false)
			w.dir.Close(storage.CloseOptions{})
			w.machine = systest.Machine(survived, nil, nil)
			w.start()
			w.register()
			if s := w.status(tp); s.Start < answered || s.End != 12 {
				t.Fatalf("cut at operation %d, %v: answered %d, found [%d, %d)", n, mode, answered, s.Start, s.End)
			}
			if r := w.acked(tp, numbered(9, 11, 1)); r.Base != 11 {
				t.Fatalf("cut at operation %d, %v: retry of the last batch: %+v", n, mode, r)
			}
			w.stop(false)
		}
	}
}

// TestC048_DeleteRecordsKeepsProducerState: all records of a producer are deleted; its retries are known and its next batch is taken, also
// after a restart.
func TestC048_DeleteRecordsKeepsProducerState(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w, _ := newWorld(t)
		c := baseConfig()
		c.SegmentBytes = 300
		w.configs["orders"] = c
		tp := w.topic("orders", 1)
		for seq := range int32(5) {
			w.acked(tp, numbered(9, seq, 1))
		}
		if r := w.delete(tp, ToHighWatermark); r.Err != nil || r.Start != 5 {
			t.Fatalf("%+v", r)
		}
		if restart {
			w.restart(false)
		}
		if r := w.acked(tp, numbered(9, 4, 1)); r.Base != 4 {
			t.Fatalf("restart=%v: retry of sequence 4: %+v", restart, r)
		}
		if r := w.acked(tp, numbered(9, 5, 1)); r.Base != 5 {
			t.Fatalf("restart=%v: sequence 5: %+v", restart, r)
		}
	}
}

// TestO6_IdempotentProducerAfterExpiry: a producer sends 7, is idle for longer than the broker remembers it, and sends 8 more: all are
// stored once and in order, without an error. The broker may have forgotten it (a rolled segment, a restart) or not yet.
func TestO6_IdempotentProducerAfterExpiry(t *testing.T) {
	for _, between := range []string{"nothing", "roll", "restart"} {
		wall := systest.NewWall(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		w := newWorldOn(t, systest.Machine(systest.NewFS(1), nil, wall), "/data")
		w.expiry = 2 * time.Second
		w.restart(true)
		c := baseConfig()
		c.SegmentBytes = 2000
		w.configs["orders"] = c
		tp := w.topic("orders", 1)
		for seq := range int32(7) {
			w.acked(tp, numbered(9, seq, 1))
		}
		if got := len(w.producers(tp)); got != 1 {
			t.Fatalf("%d producers are remembered, want 1", got)
		}
		wall.Step(3 * time.Second)
		if got := len(w.producers(tp)); got != 0 {
			t.Fatalf("%d producers are remembered after the expiry, want none", got)
		}
		extra := kafka.Offset(0)
		switch between {
		case "roll":
			w.acked(tp, batch(80)) // of somebody else: the next segment begins
			extra = 80
		case "restart":
			w.restart(false)
		}
		for seq := int32(7); seq < 15; seq++ {
			r := w.acked(tp, numbered(9, seq, 1))
			if r.Base != kafka.Offset(seq)+extra {
				t.Fatalf("after %s: sequence %d is at %d", between, seq, r.Base)
			}
			if again := w.acked(tp, numbered(9, seq, 1)); again.Base != r.Base {
				t.Fatalf("after %s: the repeat of sequence %d is at %d, the original at %d", between, seq, again.Base, r.Base)
			}
		}
		var want []int32
		for seq := range int32(15) {
			want = append(want, seq)
		}
		if got := w.sequences(tp); !slices.Equal(got, want) {
			t.Fatalf("after %s: stored are %v", between, got)
		}
		w.stop(false)
	}
}

// producers lists what is remembered of the partition's idempotent producers.
func (w *world) producers(tp kafka.TopicPartition) []storage.ProducerEntry {
	w.t.Helper()
	list, err := w.host.Producers(tp)
	w.must(err)
	return list
}

// sequences lists the base sequences of the numbered batches in the log, in order.
func (w *world) sequences(tp kafka.TopicPartition) []int32 {
	w.t.Helper()
	var out []int32
	for next := kafka.Offset(0); next < w.status(tp).HW; {
		r := w.fetch(at(tp, next))
		w.must(r.Err)
		for _, b := range w.batches(r.Records) {
			if b.ProducerID() != kafka.NoProducerID {
				out = append(out, b.BaseSequence())
			}
			next = b.NextOffset()
		}
	}
	return out
}

func TestVolume_NamesTheDirectoryAndItsRoom(t *testing.T) {
	w, fs := newWorld(t)
	fs.SetFree(12345)
	v, err := w.host.Volume()
	if err != nil || v.Path != "/data" || v.Usable != 12345 || v.Total <= v.Usable {
		t.Errorf("%+v, %v", v, err)
	}
}
