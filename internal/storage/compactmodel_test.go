package storage

import (
	"bytes"
	"fmt"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

// modelTombstones is how long tombstones stay in the model: some operations.
const modelTombstones = 4 * time.Second

// keyedBatch has records of a few keys, a sixth of them tombstones, some without a key.
func (m *model) keyedBatch() record.Batch {
	codecs := []record.Codec{record.None, record.None, record.Snappy, record.Zstd}
	bu := record.NewBuilder(codecs[m.rng.IntN(len(codecs))])
	ts := m.at.UnixMilli() - int64(m.rng.IntN(5000))
	for i := range 1 + m.rng.IntN(4) {
		key, value := fmt.Appendf(nil, "k%d", m.rng.IntN(9)), bytes.Repeat([]byte{byte(m.rng.Uint32())}, m.rng.IntN(120))
		if m.rng.IntN(6) == 0 {
			value = nil
		}
		if m.rng.IntN(12) == 0 {
			key = nil
		}
		bu.Add(ts+int64(i), key, value, nil)
	}
	return bu.Build()
}

// compact raises the high watermark and makes a pass below it.
func (m *model) compact() {
	m.hw = max(m.hw, m.now.startLo+kafka.Offset(m.rng.Int64N(int64(m.acked-min(m.acked, m.now.startLo))+1)))
	if m.rng.IntN(2) == 0 {
		m.hw = max(m.hw, m.acked)
	}
	m.hw = min(m.hw, m.end())
	p := CompactionPolicy{Upper: m.hw, TombstoneRetention: modelTombstones, Merge: m.rng.IntN(3) > 0, KeysMax: 1 + m.rng.IntN(12)}
	next := m.now
	next.compacted = max(next.compacted, m.hw)
	m.begin(next, "compact below %d", m.hw)
	done, err := m.log.Compact(m.t.Context(), p, m.at)
	if err != nil {
		m.fatal("compact: %v", err)
	}
	m.trace = append(m.trace, fmt.Sprintf("compacted %+v", done))
	m.finish()
	if !done.Ran {
		return
	}
	m.compactions++
	m.removed += int(done.Records)
	newest := map[string]kafka.Offset{}
	got, err := readAll(m.log, m.log.End(), 1<<20)
	if err != nil {
		m.fatal("after a compaction: %v", err)
	}
	records := recordsOf(splitAll(got))
	for _, r := range records {
		if r.key != nil && r.offset < done.UpTo {
			newest[string(r.key)] = r.offset
		}
	}
	for _, r := range records {
		if r.key != nil && r.offset < done.UpTo && r.offset >= m.log.Start() && newest[string(r.key)] != r.offset {
			m.fatal("record %d of key %s is still there after a compaction up to %d, and so is %d", r.offset, r.key, done.UpTo, newest[string(r.key)])
		}
	}
}

func splitAll(b []byte) (batches []record.Batch) {
	for len(b) > 0 {
		var first record.Batch
		first, b, _ = record.Split(b)
		batches = append(batches, first)
	}
	return batches
}

// flatRecord is a record with everything that a reader sees of it.
type flatRecord struct {
	offset     kafka.Offset
	epoch      kafka.LeaderEpoch
	ts         int64
	key, value []byte
}

func (r flatRecord) equal(o flatRecord) bool {
	return r.offset == o.offset && r.epoch == o.epoch && r.ts == o.ts && bytes.Equal(r.key, o.key) && bytes.Equal(r.value, o.value) &&
		(r.key == nil) == (o.key == nil) && (r.value == nil) == (o.value == nil)
}

func recordsOf(batches []record.Batch) (all []flatRecord) {
	for _, b := range batches {
		for r, err := range b.Records(0) {
			if err != nil {
				panic(err)
			}
			all = append(all, flatRecord{b.BaseOffset() + kafka.Offset(r.OffsetDelta), b.LeaderEpoch(), b.Timestamp(&r),
				bytes.Clone(r.Key), bytes.Clone(r.Value)})
		}
	}
	return all
}

// checkCompacted compares what was read with what was written: nothing is invented or changed, and what is missing has a newer record of
// its key below the bound, or is a tombstone below it.
func (o outcome) checkCompacted(got, written []byte) error {
	there := recordsOf(splitAll(got))
	all := recordsOf(splitAll(written))
	newest := map[string]kafka.Offset{}
	for _, b := range o.batches {
		for _, r := range recordsOf([]record.Batch{b}) {
			if r.offset < o.compacted {
				newest[string(r.key)] = r.offset
			}
		}
	}
	for _, w := range all {
		if len(there) > 0 && there[0].offset == w.offset {
			if !there[0].equal(w) {
				return fmt.Errorf("record %d is %+v, want %+v", w.offset, there[0], w)
			}
			there = there[1:]
			continue
		}
		if w.key == nil || w.offset >= o.compacted || (newest[string(w.key)] == w.offset && w.value != nil) {
			return fmt.Errorf("record %d with key %q is missing", w.offset, w.key)
		}
	}
	// The batch that the log start lies in may have been joined with what is below.
	if len(there) > 0 {
		return fmt.Errorf("record %d was never written", there[0].offset)
	}
	return nil
}
