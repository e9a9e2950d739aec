package replica

import (
	"errors"
	"slices"
	"testing"

	"strandline.dev/internal/kafka"
)

// TestI6_ReadBounds: what is asked for, from the batch that holds the offset, up to the watermark.
func TestI6_ReadBounds(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 1)
	for range 4 {
		w.acked(tp, batch(5))
	}
	for _, c := range []struct {
		offset kafka.Offset
		want   []kafka.Offset
		err    error
	}{
		{0, []kafka.Offset{0, 5, 10, 15}, nil},
		{7, []kafka.Offset{5, 10, 15}, nil},
		{19, []kafka.Offset{15}, nil},
		{20, nil, nil},
		{21, nil, ErrOutOfRange},
		{-5, nil, ErrOutOfRange},
	} {
		r := w.fetch(at(tp, c.offset))
		if !errors.Is(r.Err, c.err) || !slices.Equal(w.offsets(r.Records), c.want) {
			t.Errorf("fetch at %d: %v, %v", c.offset, w.offsets(r.Records), r.Err)
		}
		if c.err == nil && (r.HighWatermark != 20 || r.LastStable != 20 || r.LogStart != 0 || r.Leader != me) {
			t.Errorf("fetch at %d: %+v", c.offset, r)
		}
	}
	w.must(w.host.partition(tp).mu.log.AdvanceStart(10))
	if r := w.fetch(at(tp, 9)); !errors.Is(r.Err, ErrOutOfRange) {
		t.Errorf("below the start: %+v", r)
	}
}

// TestRead_Limits: the first partition with records gives at least one batch, whatever the limits; then they hold.
func TestRead_Limits(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 3)
	parts := []kafka.TopicPartition{tp, {Topic: tp.Topic, Partition: 1}, {Topic: tp.Topic, Partition: 2}}
	size := len(batch(5))
	for _, p := range parts[1:] {
		for range 3 {
			w.acked(p, batch(5))
		}
	}
	read := func(total int, perPartition int) (n []int) {
		items := []FetchItem{at(parts[0], 0), at(parts[1], 0), at(parts[2], 0)}
		for i := range items {
			items[i].MaxBytes = perPartition
		}
		var buf FetchBuffer
		defer buf.Release()
		for _, r := range w.host.Read(items, FetchOptions{MaxBytes: total}, &buf) {
			w.must(r.Err)
			n = append(n, len(w.offsets(r.Records)))
		}
		return n
	}
	for _, c := range []struct {
		total, per int
		want       []int
	}{
		{1 << 20, 1 << 20, []int{0, 3, 3}},
		{1 << 20, 2 * size, []int{0, 2, 2}},
		{1, 1 << 20, []int{0, 1, 0}},
		{1 << 20, 1, []int{0, 1, 0}},
		{4 * size, 1 << 20, []int{0, 3, 1}},
		{0, 0, []int{0, 1, 0}},
	} {
		if got := read(c.total, c.per); !slices.Equal(got, c.want) {
			t.Errorf("total %d, per partition %d: batches %v, want %v", c.total, c.per, got, c.want)
		}
	}
}

// TestFetchBuffer_ReuseKeepsResultsApart: one buffer, many partitions, larger than a chunk.
func TestFetchBuffer_ReuseKeepsResultsApart(t *testing.T) {
	var b FetchBuffer
	for round := range 3 {
		b.begin(4)
		var kept [][]byte
		for n := range byte(40) {
			out := b.space(10_000)
			for range 9_000 {
				out = append(out, n)
			}
			if n%7 == 3 { // more than was foreseen
				out = append(out, make([]byte, 200_000)...)[:9_000]
			}
			b.keep(out)
			kept = append(kept, out)
		}
		for n, k := range kept {
			if len(k) != 9_000 || slices.ContainsFunc(k, func(c byte) bool { return c != byte(n) }) {
				t.Fatalf("round %d: result %d was overwritten", round, n)
			}
		}
	}
	if big := b.space(64 << 20); cap(big) < 64<<20 {
		t.Fatal("no room for a large read")
	}
	b.Release()
}

// TestListOffset_ByTime: record precision, in offset order, below the watermark.
func TestListOffset_ByTime(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 1)
	w.acked(tp, batchAt(1000, 2)) // 0, 1
	w.acked(tp, batchAt(3000, 1)) // 2
	w.acked(tp, batchAt(2000, 2)) // 3, 4
	for _, c := range []struct {
		ts     int64
		offset kafka.Offset
		found  int64
	}{
		{LatestTimestamp, 5, -1}, {EarliestTimestamp, 0, -1}, {EarliestLocalTimestamp, 0, -1},
		{LatestTieredTimestamp, -1, -1}, {EarliestPendingTimestamp, -1, -1},
		{MaxTimestamp, 2, 3000}, {0, 0, 1000}, {1000, 0, 1000}, {1001, 2, 3000}, {3000, 2, 3000}, {3001, -1, -1},
	} {
		for _, committed := range []bool{false, true} {
			o, err := w.host.ListOffset(tp, c.ts, kafka.NoEpoch, committed)
			if err != nil || o.Offset != c.offset || o.TimestampMs != c.found {
				t.Errorf("ListOffset(%d) = %+v, %v; want offset %d, timestamp %d", c.ts, o, err, c.offset, c.found)
			}
		}
	}
	empty := w.topic("empty", 1)
	for ts, want := range map[int64]kafka.Offset{LatestTimestamp: 0, EarliestTimestamp: 0, MaxTimestamp: -1, 5: -1} {
		if o, err := w.host.ListOffset(empty, ts, kafka.NoEpoch, false); err != nil || o.Offset != want {
			t.Errorf("ListOffset(%d) of an empty log = %+v, %v", ts, o, err)
		}
	}
}

// TestListOffset_MaxTimestampIsARecord: the offset of the record inside its batch, not of the batch.
func TestListOffset_MaxTimestampIsARecord(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 1)
	w.acked(tp, mixedTimes(500, 900, 700))
	if o, err := w.host.ListOffset(tp, MaxTimestamp, kafka.NoEpoch, false); err != nil || o.Offset != 1 || o.TimestampMs != 900 {
		t.Errorf("max timestamp: %+v, %v", o, err)
	}
	if o, err := w.host.ListOffset(tp, 600, kafka.NoEpoch, false); err != nil || o.Offset != 1 || o.TimestampMs != 900 {
		t.Errorf("first at or after 600: %+v, %v", o, err)
	}
}
