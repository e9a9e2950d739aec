package storage

import (
	"math"
	"slices"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

const (
	attrControl    = 0x20
	attrAppendTime = 0x08
	noSequence     = -1
)

// producerState is what one log remembers of one idempotent producer. It lives as long as the producer's expiry, whatever
// happens to the segments its batches are in (I12).
type producerState struct {
	epoch        kafka.ProducerEpoch
	count        int // batches in use
	batches      [producerBatchesMax]ProducerBatch
	lastAppendMs int64
	// openTransaction and coordinatorEpoch belong to transactions: NoOffset and -1 until those exist, in the format from the start.
	openTransaction  kafka.Offset
	coordinatorEpoch int32
}

func newProducerState(epoch kafka.ProducerEpoch) *producerState {
	return &producerState{epoch: epoch, openTransaction: kafka.NoOffset, coordinatorEpoch: -1}
}

// lastSequence is the sequence of the last record of the current epoch, or noSequence.
func (p *producerState) lastSequence() int32 {
	if p.count == 0 {
		return noSequence
	}
	return p.batches[p.count-1].LastSequence
}

func (p *producerState) push(b ProducerBatch) {
	if p.count == producerBatchesMax {
		copy(p.batches[:], p.batches[1:])
		p.count--
	}
	p.batches[p.count] = b
	p.count++
}

// producers is the producer state of one log at its end.
type producers struct {
	byID map[kafka.ProducerID]*producerState
}

func newProducers() producers { return producers{byID: map[kafka.ProducerID]*producerState{}} }

// note applies a batch that is in the log. It judges nothing: the leader did, before it appended.
func (p *producers) note(h BatchHeader, atMs int64) {
	if h.ProducerID < 0 {
		return
	}
	s := p.byID[h.ProducerID]
	if s == nil {
		if len(p.byID) >= producersMax {
			p.forgetIdle()
		}
		s = newProducerState(h.ProducerEpoch)
		p.byID[h.ProducerID] = s
	}
	if s.epoch != h.ProducerEpoch {
		s.epoch, s.count = h.ProducerEpoch, 0
	}
	s.lastAppendMs = max(s.lastAppendMs, atMs)
	if h.Attributes&attrControl != 0 || h.BaseSequence < 0 {
		return // markers change the epoch, not the sequence
	}
	s.push(ProducerBatch{
		FirstSequence: h.BaseSequence, LastSequence: sequenceAfter(h.BaseSequence, int32(h.End-h.Base-1)),
		Base: h.Base, End: h.End, TimestampMs: stampOf(h),
	})
}

// stampOf is the timestamp that an acknowledgement carries: the append time where the leader sets it, else -1.
func stampOf(h BatchHeader) int64 {
	if h.Attributes&attrAppendTime != 0 {
		return h.MaxTimestamp
	}
	return -1
}

// sequenceAfter adds with the protocol's wrap from MaxInt32 to 0 (C069).
func sequenceAfter(sequence, n int32) int32 {
	return int32((int64(sequence) + int64(n)) % (math.MaxInt32 + 1))
}

// forgetIdle drops the longest idle eighth. It sorts once per eighth of the bound, so the cost per append stays small.
func (p *producers) forgetIdle() {
	ids := p.sorted()
	slices.SortStableFunc(ids, func(a, b kafka.ProducerID) int {
		return int(max(-1, min(1, p.byID[a].lastAppendMs-p.byID[b].lastAppendMs)))
	})
	for _, id := range ids[:max(1, len(ids)/8)] {
		delete(p.byID, id)
	}
}

// expire drops producers that were idle for longer than expiry and have no open transaction.
func (p *producers) expire(nowMs int64, expiry time.Duration) {
	for id, s := range p.byID {
		if s.expired(nowMs, expiry) {
			delete(p.byID, id)
		}
	}
}

func (s *producerState) expired(nowMs int64, expiry time.Duration) bool {
	return nowMs-s.lastAppendMs > expiry.Milliseconds() && s.openTransaction == kafka.NoOffset
}

func (p *producers) sorted() []kafka.ProducerID {
	ids := make([]kafka.ProducerID, 0, len(p.byID))
	for id := range p.byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// CheckSequence judges a batch of an idempotent producer before it is appended (protocol.md 3.10, in its order). It changes
// nothing. The caller holds off other appends from here to Append. Errors: ErrOutOfOrderSequence, ErrProducerFenced.
func (l *Log) CheckSequence(b record.Batch, now time.Time) (SequenceCheck, error) {
	id := b.ProducerID()
	if id < 0 || b.IsControl() {
		return SequenceCheck{}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.mu.producers.byID[id]
	if s == nil || s.expired(now.UnixMilli(), l.mu.opts.ProducerExpiry) {
		return SequenceCheck{}, nil // unknown: any sequence is a beginning
	}
	return s.check(b.ProducerEpoch(), b.BaseSequence(), b.LastSequence())
}

func (s *producerState) check(epoch kafka.ProducerEpoch, first, last int32) (SequenceCheck, error) {
	if epoch == s.epoch {
		for _, k := range s.batches[:s.count] {
			if k.FirstSequence == first && k.LastSequence == last {
				return SequenceCheck{Duplicate: true, Base: k.Base, End: k.End, TimestampMs: k.TimestampMs}, nil
			}
		}
	}
	switch {
	case epoch < s.epoch:
		return SequenceCheck{}, ErrProducerFenced
	case epoch > s.epoch:
		if first != 0 {
			return SequenceCheck{}, ErrOutOfOrderSequence
		}
	case first != sequenceAfterLast(s.lastSequence()):
		return SequenceCheck{}, ErrOutOfOrderSequence
	}
	return SequenceCheck{}, nil
}

func sequenceAfterLast(last int32) int32 {
	if last == noSequence {
		return 0
	}
	return sequenceAfter(last, 1)
}

// Producers lists what the log remembers of idempotent producers, by id.
func (l *Log) Producers() []ProducerEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []ProducerEntry
	for _, id := range l.mu.producers.sorted() {
		s := l.mu.producers.byID[id]
		out = append(out, ProducerEntry{
			ID: id, Epoch: s.epoch, Batches: slices.Clone(s.batches[:s.count]), LastAppendMs: s.lastAppendMs, OpenTransaction: s.openTransaction,
		})
	}
	return out
}
