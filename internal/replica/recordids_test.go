package replica

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/recordid"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys/systest"
)

const (
	idHeader = "record-id"
	idWindow = 2 * time.Minute
)

func idConfig() config.Topic {
	c := baseConfig()
	c.DedupWindow, c.DedupHeader = idWindow, idHeader
	return c
}

// identified makes a batch with one record for each id, "" for none. Records with the same id are the same.
func identified(codec record.Codec, ids ...string) record.Batch {
	b := record.NewBuilder(codec)
	for _, id := range ids {
		var headers []record.Header
		if id != "" {
			headers = []record.Header{{Key: idHeader, Value: []byte(id)}}
		}
		b.Add(0, []byte("key"), []byte("value of "+id), headers)
	}
	return b.Build()
}

// idsIn lists the ids of what is visible, as offset=id, in one string.
func (w *world) idsIn(tp kafka.TopicPartition) string {
	w.t.Helper()
	return idsIn(w.t, w.fetch(at(tp, w.status(tp).Start)).Records)
}

func idsIn(t testing.TB, records []byte) string {
	t.Helper()
	var out []string
	for len(records) > 0 {
		b, rest, err := record.Split(records)
		if err != nil {
			t.Fatal(err)
		}
		if b.Count() == 0 {
			out = append(out, fmt.Sprintf("%d-%d empty", b.BaseOffset(), b.LastOffset()))
		}
		for r, err := range b.Records(0) {
			if err != nil {
				t.Fatal(err)
			}
			id := ""
			if len(r.Headers) > 0 {
				id = string(r.Headers[0].Value)
			}
			out = append(out, fmt.Sprintf("%d=%s", b.BaseOffset()+kafka.Offset(r.OffsetDelta), id))
		}
		records = rest
	}
	return strings.Join(out, " ")
}

// idWorld is a node with a topic that remembers record ids.
func idWorld(t testing.TB) (*world, kafka.TopicPartition, *systest.FS) {
	w, fs := newWorld(t)
	w.configs["orders"] = idConfig()
	return w, w.topic("orders", 1), fs
}

// settle waits for the record ids of a restarted node, which Run would have read.
func (w *world) settleIDs(tp kafka.TopicPartition) {
	w.t.Helper()
	if w.host.partition(tp).loadIDs(w.t.Context()) {
		w.t.Fatal("record ids were not read")
	}
}

// TestI12_R22_RepeatsByRecordID: what is stored, and what is answered. The table of cases is the rule; each case goes on where the one before ended.
func TestI12_R22_RepeatsByRecordID(t *testing.T) {
	for _, codec := range []record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4, record.Zstd} {
		w, tp, _ := idWorld(t)
		for _, c := range []struct {
			what   string
			ids    string
			base   kafka.Offset // NoOffset: ErrRepeats
			repeat bool
			log    string
		}{
			{"first", "a b c", 0, false, "0=a 1=b 2=c"},
			{"the same batch", "a b c", 0, true, "0=a 1=b 2=c"},
			{"one of it", "b", 1, true, "0=a 1=b 2=c"},
			{"another one", "d", 3, false, "0=a 1=b 2=c 3=d"},
			{"two that do not follow each other", "a c", kafka.NoOffset, true, "0=a 1=b 2=c 3=d"},
			{"in another order", "b a", kafka.NoOffset, true, "0=a 1=b 2=c 3=d"},
			{"new ones around a repeat", "e d f", 4, false, "0=a 1=b 2=c 3=d 4=e 6=f"},
			{"the same again", "e d f", kafka.NoOffset, true, "0=a 1=b 2=c 3=d 4=e 6=f"},
			{"twice in one batch", "g g", 7, false, "0=a 1=b 2=c 3=d 4=e 6=f 7=g"},
			{"behind a hole at the end", "h", 9, false, "0=a 1=b 2=c 3=d 4=e 6=f 7=g 9=h"},
			{"without ids", "- -", 10, false, "0=a 1=b 2=c 3=d 4=e 6=f 7=g 9=h 10= 11="},
			{"without ids again", "-", 12, false, "0=a 1=b 2=c 3=d 4=e 6=f 7=g 9=h 10= 11= 12="},
			{"a repeat at the beginning", "a i", 13, false, "0=a 1=b 2=c 3=d 4=e 6=f 7=g 9=h 10= 11= 12= 14=i"},
		} {
			ids := strings.Split(strings.ReplaceAll(c.ids, "-", ""), " ")
			p := w.publish(tp, identified(codec, ids...), AcksAll)
			waitFor(t, p.Ready())
			r := p.Results()[0]
			if want := c.base == kafka.NoOffset; r.Base != c.base || r.Repeat != c.repeat || errors.Is(r.Err, ErrRepeats) != want || (r.Err != nil) != want {
				t.Errorf("%v: %s: %+v, want base %d", codec, c.what, r, c.base)
			}
			if got := w.idsIn(tp); got != c.log {
				t.Errorf("%v: %s: the log has %s\nwant %s", codec, c.what, got, c.log)
			}
		}
	}
}

// TestI12_RepeatByIDIsParkedUntilTheOriginalIsCommitted: nothing is confirmed twice before it is once; with acks=1 neither waits.
func TestI12_RepeatByIDIsParkedUntilTheOriginalIsCommitted(t *testing.T) {
	w, _ := newWorld(t)
	w.configs["orders"] = idConfig()
	tp := w.pair("orders")
	original := w.publish(tp, identified(record.None, "a", "b"), AcksAll)
	again, part, scattered := w.publish(tp, identified(record.None, "a", "b"), AcksAll), w.publish(tp, identified(record.None, "a"), AcksAll),
		w.publish(tp, identified(record.None, "b", "a"), AcksAll)
	w.must(w.host.partition(tp).mu.log.Sync())
	for i, p := range []*Produce{original, again, part, scattered} {
		if isReady(p.Ready()) {
			t.Fatalf("publish %d is answered before replica 2 has it: %+v", i, p.Results()[0])
		}
	}
	if r := w.publish(tp, identified(record.None, "b"), AcksLeader).Results()[0]; r.Err != nil || r.Base != 1 || !r.Repeat {
		t.Fatalf("acks=1: %+v", r)
	}
	w.change(tp, func(s *kafka.PartitionState) { s.LeaderEpoch++ })
	for i, p := range []*Produce{original, again, part, scattered} {
		waitFor(t, p.Ready())
		if r := p.Results()[0]; !errors.Is(r.Err, ErrNotLeader) || r.Base != kafka.NoOffset {
			t.Errorf("publish %d in a new epoch: %+v", i, r)
		}
	}
}

// TestR24_R70_AfterTheWindowAnIDMayAppendAgain, and the reply is a new offset. Meanwhile neither retention nor size removes the original, whose
// offset a repeat is answered with.
func TestR24_R70_AfterTheWindowAnIDMayAppendAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWorld(t)
		c := idConfig()
		c.Retention, c.RetentionBytes = time.Second, 1
		w.configs["orders"] = c
		tp := w.topic("orders", 1)
		w.acked(tp, identified(record.None, "a"))
		time.Sleep(idWindow - time.Millisecond)
		w.host.retain()
		if r := w.acked(tp, identified(record.None, "a")); r.Base != 0 || !r.Repeat {
			t.Fatalf("within the window: %+v", r)
		}
		if got := w.idsIn(tp); got != "0=a" {
			t.Fatalf("the log has %s", got)
		}
		time.Sleep(time.Millisecond)
		if r := w.acked(tp, identified(record.None, "a")); r.Base != 1 || r.Repeat {
			t.Fatalf("after the window: %+v", r)
		}
		if r := w.acked(tp, identified(record.None, "a")); r.Base != 1 || !r.Repeat {
			t.Fatalf("the second one repeated: %+v", r)
		}
		if n := w.status(tp).RecordIDs; n != 1 {
			t.Errorf("%d ids are remembered", n)
		}
		w.stop(false)
	})
}

// TestI12_RecordIDsSurviveARestart: until they are read from the log publishes with ids are refused, to be retried, and others go on.
func TestI12_RecordIDsSurviveARestart(t *testing.T) {
	for _, clean := range []bool{true, false} {
		w, tp, _ := idWorld(t)
		for i := range 20 {
			w.acked(tp, identified(record.LZ4, fmt.Sprint(2*i), fmt.Sprint(2*i+1)))
		}
		w.restart(clean)
		r := w.publish(tp, identified(record.None, "4"), AcksAll).Results()[0]
		if !errors.Is(r.Err, ErrRecordIDs) || !errors.Is(r.Err, storage.ErrIDsLoading) {
			t.Fatalf("clean %v: before the ids are read: %+v", clean, r)
		}
		if r := w.acked(tp, batch(1)); r.Base != 40 {
			t.Fatalf("a publish without ids: %+v", r)
		}
		w.settleIDs(tp)
		for i, id := range []string{"0", "7", "39"} {
			if r := w.acked(tp, identified(record.None, id)); r.Base != kafka.Offset([]int{0, 7, 39}[i]) {
				t.Errorf("clean %v: id %s: %+v", clean, id, r)
			}
		}
		if n := w.status(tp).RecordIDs; n != 40 {
			t.Errorf("clean %v: %d ids are remembered", clean, n)
		}
	}
}

// TestI12_DeletedRecordsAreNoOriginals: DeleteRecords ends the memory of what it deletes.
func TestI12_DeletedRecordsAreNoOriginals(t *testing.T) {
	w, tp, _ := idWorld(t)
	w.acked(tp, identified(record.None, "a"))
	w.acked(tp, identified(record.None, "b"))
	if r := w.host.DeleteRecords(t.Context(), []DeleteItem{{TP: tp, To: 1}})[0]; r.Err != nil {
		t.Fatal(r.Err)
	}
	if r := w.acked(tp, identified(record.None, "a")); r.Base != 2 || r.Repeat {
		t.Errorf("a deleted record's id: %+v", r)
	}
	if r := w.acked(tp, identified(record.None, "b")); r.Base != 1 || !r.Repeat {
		t.Errorf("a kept record's id: %+v", r)
	}
}

// TestI12_OtherContentIsSeen: an id that is used for another record is answered as a repeat, and the result says so.
func TestI12_OtherContentIsSeen(t *testing.T) {
	w, tp, _ := idWorld(t)
	w.acked(tp, identified(record.None, "a"))
	bu := record.NewBuilder(record.None)
	bu.Add(9, []byte("key"), []byte("something else"), []record.Header{{Key: idHeader, Value: []byte("a")}})
	if r := w.acked(tp, bu.Build()); r.Base != 0 || !r.Repeat || !r.OtherContent {
		t.Errorf("%+v", r)
	}
	if r := w.acked(tp, identified(record.None, "a")); r.Base != 0 || !r.Repeat || r.OtherContent {
		t.Errorf("%+v", r)
	}
}

// TestI12_SequenceGoesOnBehindRepeatsByID: a producer that begins anew repeats what an earlier one has stored. Its sequence goes on, here and
// after a restart, and a repeat by sequence of those repeats is answered like them.
func TestI12_SequenceGoesOnBehindRepeatsByID(t *testing.T) {
	w, tp, _ := idWorld(t)
	by := func(sequence int32, ids ...string) record.Batch {
		b := identified(record.LZ4, ids...)
		b.SetProducer(7, 0, sequence, false)
		return b
	}
	w.acked(tp, identified(record.None, "a", "b", "c"))
	repeats := func(when string) {
		t.Helper()
		for range 2 {
			if r := w.acked(tp, by(0, "a", "b")); r.Base != 0 || !r.Repeat {
				t.Fatalf("%s: repeats: %+v", when, r)
			}
			p := w.publish(tp, by(2, "c", "a"), AcksAll)
			waitFor(t, p.Ready())
			if r := p.Results()[0]; !errors.Is(r.Err, ErrRepeats) {
				t.Fatalf("%s: scattered repeats: %+v", when, r)
			}
		}
	}
	repeats("first")
	for range 2 {
		if r := w.acked(tp, by(4, "c", "d")); r.Base != 7 {
			t.Fatalf("a mixed batch: %+v", r)
		}
	}
	w.restart(false)
	w.settleIDs(tp)
	repeats("after a restart")
	if r := w.acked(tp, by(4, "c", "d")); r.Base != 7 || !r.Repeat {
		t.Fatalf("the mixed batch again: %+v", r)
	}
	for range 2 {
		if r := w.acked(tp, by(6, "e")); r.Base != 9 {
			t.Fatalf("the next one: %+v", r)
		}
	}
	if r := w.publish(tp, by(9, "f"), AcksAll).Results()[0]; !errors.Is(r.Err, storage.ErrOutOfOrderSequence) {
		t.Errorf("a gap in the sequence: %+v", r)
	}
	if got, want := w.idsIn(tp), "0=a 1=b 2=c 3-4 empty 5-6 empty 8=d 9=e"; got != want {
		t.Errorf("the log has %s\nwant %s", got, want)
	}
}

// TestI12_IDsReadElsewhereAreOfTheRightHeader: what the caller has read counts only for the header that the topic has by now.
func TestI12_IDsReadElsewhereAreOfTheRightHeader(t *testing.T) {
	w, tp, _ := idWorld(t)
	w.acked(tp, identified(record.None, "a"))
	wrong := []recordid.Carried{{ID: recordid.Hash([]byte("x"))}}
	for _, it := range []AppendItem{
		{IDs: wrong, IDHeader: "ce_id"}, {IDs: wrong}, {IDs: []recordid.Carried{{ID: recordid.Hash([]byte("a"))}}, IDHeader: idHeader},
	} {
		it.TP, it.Batch = tp, identified(record.None, "a")
		if r := w.host.Append([]AppendItem{it}, AcksLeader, time.Minute).Results()[0]; r.Err != nil || !r.Repeat {
			t.Errorf("%q: %+v", it.IDHeader, r)
		}
	}
}

// TestI14_FullRecordIDsThrottle: where no more ids can be remembered, a publish with new ones is refused, to be retried, and nothing is stored or
// forgotten. A topic without a window takes the same records.
func TestI14_FullRecordIDsThrottle(t *testing.T) {
	w, tp, _ := idWorld(t)
	other := w.topic("others", 1)
	ids := make([]string, 1000)
	for n := range recordid.IDsMax / len(ids) {
		for i := range ids {
			ids[i] = fmt.Sprint(n*len(ids) + i)
		}
		if r := w.publish(tp, identified(record.None, ids...), AcksLeader).Results()[0]; r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	end := w.status(tp).End
	more := slices.Clone(ids)
	for i := range more {
		more[i] = fmt.Sprint("more-", i)
	}
	r := w.publish(tp, identified(record.None, more...), AcksAll).Results()[0]
	if !errors.Is(r.Err, ErrRecordIDs) || !errors.Is(r.Err, storage.ErrIDsFull) || w.status(tp).End != end {
		t.Errorf("beyond the bound: %+v, the log ends at %d of %d", r, w.status(tp).End, end)
	}
	if r := w.acked(tp, identified(record.None, "0")); r.Base != 0 {
		t.Errorf("the oldest is forgotten: %+v", r)
	}
	w.acked(other, identified(record.None, more...))
}
