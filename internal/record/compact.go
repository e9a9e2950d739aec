package record

import (
	"encoding/binary"
	"math"

	"strandline.dev/internal/kafka"
)

// FillerSpanMax is the most offsets that one filler stands for: what the last offset delta can say.
const FillerSpanMax = math.MaxInt32

// Retain returns the batch with those of its records that keep wants, and their number: b itself if it wants all, nil if it wants none.
// What is kept has its offset, timestamp and place in the producer's sequence, because base offset, last offset delta, base timestamp
// and base sequence stay. It decompresses at most limit bytes (0: DecompressedLimit of the batch). Errors: those of Records.
func Retain(b Batch, limit int, keep func(*Record) bool) (kept Batch, count int, err error) {
	payload, release, err := b.plain(limit)
	if err != nil {
		return nil, 0, err
	}
	defer release()
	c := cursor{buf: payload}
	var out []byte
	newest, dropped := int64(noTimestamp), false
	for range b.Count() {
		from := c.at
		var r Record
		if _, err := c.record(&r); err != nil {
			return nil, 0, err
		}
		switch {
		case !keep(&r):
			if !dropped { // until now everything was kept
				dropped = true
				out = append(make([]byte, HeaderSize, HeaderSize+len(payload)), payload[:from]...)
			}
			continue
		case dropped:
			out = append(out, payload[from:c.at]...)
		}
		count++
		newest = max(newest, b.Timestamp(&r))
	}
	if err := c.finish(); err != nil {
		return nil, 0, err
	}
	switch {
	case !dropped:
		return b, count, nil
	case count == 0:
		return nil, 0, nil
	}
	return b.with(out[HeaderSize:], count, newest)
}

// with is the batch with other records, in the same compression.
func (b Batch) with(records []byte, count int, newest int64) (Batch, int, error) {
	out, err := Compress(b.Codec(), append(make([]byte, 0, HeaderSize+len(records)), b[:HeaderSize]...), records)
	if err != nil {
		return nil, 0, err
	}
	if len(out) > maxBatchSize {
		return nil, 0, ErrTooLarge
	}
	nb := Batch(out)
	binary.BigEndian.PutUint32(nb[posCount:], uint32(count))
	binary.BigEndian.PutUint64(nb[posMaxTimestamp:], uint64(newest))
	nb.seal()
	return nb, count, nil
}

// Emptied is the batch without its records: what is left of one that its producer may still repeat (I12). It says which offsets and sequence
// numbers it had, and when it was appended where the leader stamped it.
func Emptied(b Batch) Batch {
	nb := append(Batch(nil), b[:HeaderSize]...)
	binary.BigEndian.PutUint16(nb[posAttributes:], uint16(b.Attributes())&^codecMask)
	binary.BigEndian.PutUint32(nb[posCount:], 0)
	binary.BigEndian.PutUint64(nb[posBaseTimestamp:], math.MaxUint64) // -1: no record, no timestamp
	if b.TimestampType() != LogAppendTime {
		binary.BigEndian.PutUint64(nb[posMaxTimestamp:], math.MaxUint64)
	}
	nb.seal()
	return nb
}

// Filler is a batch without records and without a producer: it stands for offsets [base, end) of an epoch whose records compaction
// removed, at most FillerSpanMax of them, so that batches follow each other without a gap.
func Filler(base, end kafka.Offset, epoch kafka.LeaderEpoch) Batch {
	nb := make(Batch, HeaderSize)
	nb.SetBaseOffset(base)
	nb.SetLeaderEpoch(epoch)
	nb[posMagic] = magic2
	binary.BigEndian.PutUint32(nb[posLastOffsetDelta:], uint32(end-base-1))
	for _, at := range []int{posBaseTimestamp, posMaxTimestamp, posProducerID} {
		binary.BigEndian.PutUint64(nb[at:], math.MaxUint64)
	}
	binary.BigEndian.PutUint16(nb[posProducerEpoch:], math.MaxUint16)
	binary.BigEndian.PutUint32(nb[posBaseSequence:], math.MaxUint32)
	nb.seal()
	return nb
}

// IsFiller says whether the batch stands only for offsets.
func (b Batch) IsFiller() bool { return b.Count() == 0 && b.ProducerID() < 0 && !b.IsControl() }
