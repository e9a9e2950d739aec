package replica

import (
	"errors"
	"fmt"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/recordid"
	"strandline.dev/internal/storage"
)

// Append appends one batch to each of the named partitions and returns at once. With AcksAll the batches that are not yet
// committed are parked, and Ready tells when all are decided; timeout sets Deadline, at which the caller calls Expire. Items
// succeed or fail independently, each in its AppendResult.
func (h *Host) Append(items []AppendItem, acks int16, timeout time.Duration) *Produce {
	pr := newProduce(len(items), acks, timeout)
	now := h.machine.Wall.Now()
	files := fileRoom{dir: h.dir}
	for i := range items {
		r := &pr.results[i]
		r.Leader, r.LeaderEpoch = kafka.NoNode, kafka.NoEpoch
		switch p := h.partition(items[i].TP); {
		case acks < AcksAll || acks > AcksLeader:
			pr.fail(i, ErrBadAcks)
		case p == nil:
			pr.fail(i, h.absent())
		default:
			if err := files.await(); err != nil {
				pr.fail(i, fmt.Errorf("%w: append to %v: %w", ErrStorage, p.tp, err))
				continue
			}
			p.append(pr, i, &items[i], now)
		}
	}
	pr.done()
	return pr
}

// append is the road of one batch through one partition: do we lead, is the ISR large enough, is it a repeat, the log, the
// core, and the wait list.
func (p *partition) append(pr *Produce, i int, it *AppendItem, now time.Time) {
	p.mu.Lock()
	defer p.unlock()
	r := &pr.results[i]
	r.Leader, r.LeaderEpoch = p.mu.state.Leader, p.mu.state.LeaderEpoch
	if err := p.admitLocked(pr.acks, it.Within); err != nil {
		pr.fail(i, err)
		return
	}
	end, err := p.storeLocked(r, it, now)
	r.Reached = err == nil || final(err)
	if err != nil {
		pr.fail(i, err)
		return
	}
	r.LogStart = p.mu.log.Start()
	if pr.acks == AcksAll && !p.mu.core.Committed(end) {
		pr.park(p, i, end) // I1: answered when the watermark has passed end, a repeat when it has passed the original's end
	}
}

// admitLocked says whether this node may append for that kind of publish, decided within an epoch or (nil) in none.
func (p *partition) admitLocked(acks int16, within *kafka.LeaderEpoch) error {
	epoch := kafka.NoEpoch
	if within != nil {
		epoch = *within
	}
	if err := p.leadsLocked(epoch); err != nil {
		return err
	}
	if p.mu.stall.on {
		return errStalled
	}
	switch p.mu.topic.AcksMinimum {
	case "all", "-1":
		if acks != AcksAll {
			return ErrAcksRefused
		}
	case "1":
		if acks == AcksNone {
			return ErrAcksRefused
		}
	}
	if acks == AcksAll && !p.mu.core.Admits() {
		return ErrNotEnoughReplicas
	}
	return nil
}

// storeLocked finds a batch among the last of its producer, or its records by their ids, or appends it. It fills r and returns the end
// that must be committed before the publish is confirmed.
func (p *partition) storeLocked(r *AppendResult, it *AppendItem, now time.Time) (kafka.Offset, error) {
	if it.Batch.ProducerID() != kafka.NoProducerID {
		seen, err := p.mu.log.CheckSequence(it.Batch, now)
		if err == nil && seen.Duplicate {
			p.env.metrics.Retries.Inc()
			r.Base, r.TimestampMs, r.Repeat = seen.Base, seen.TimestampMs, true
			err = p.originalsLocked(r, it, seen.Base)
		}
		if err != nil {
			return 0, p.appendErrorLocked(err)
		}
		if seen.Duplicate {
			return seen.End, nil
		}
	}
	rep, err := p.judgeIDsLocked(it)
	if err == nil && len(rep.carried) > 0 {
		return p.storeIdentifiedLocked(r, it, &rep, now)
	}
	if err != nil {
		return 0, p.appendErrorLocked(err)
	}
	return p.appendLocked(r, it.Batch, nil, now)
}

// appendLocked appends a batch that nothing speaks against.
func (p *partition) appendLocked(r *AppendResult, b record.Batch, ids []recordid.Carried, now time.Time) (kafka.Offset, error) {
	done, err := p.mu.log.AppendIdentified(p.mu.state.LeaderEpoch, b, ids, now)
	if err != nil {
		return 0, p.appendErrorLocked(err)
	}
	r.Base, r.TimestampMs = done.Base, done.TimestampMs
	p.touch()
	p.appendedLocked()
	p.storedLocked() // under the replicated policy the batch counts already
	return done.End, nil
}

// appendErrorLocked sorts out the errors of storage: what the client did wrong passes, what makes the log useless takes the
// partition offline, the rest is retriable.
func (p *partition) appendErrorLocked(err error) error {
	switch {
	case errors.Is(err, storage.ErrOutOfOrderSequence), errors.Is(err, storage.ErrProducerFenced), errors.Is(err, storage.ErrTooLarge):
		return err
	case errors.Is(err, storage.ErrIDsLoading), errors.Is(err, storage.ErrIDsFull):
		return fmt.Errorf("%w: %v: %w", ErrRecordIDs, p.tp, err)
	case final(err):
		p.failLocked(err)
		return p.mu.problem
	}
	if times, due := p.mu.failing.note(errors.Is(err, storage.ErrNoSpace), time.Now()); due {
		p.env.log.Warn("append failed", "partition", p.tp.String(), "times", times, "err", err)
	}
	return fmt.Errorf("%w: append to %v: %w", ErrStorage, p.tp, err)
}

// failing counts failed appends between two log lines, by cause: a full disk, or anything else.
type failing [2]struct {
	times int
	said  time.Time
}

// note counts a failure, and says when a line about it is due and for how many failures it stands.
func (f *failing) note(full bool, now time.Time) (times int, due bool) {
	c := &f[0]
	if full {
		c = &f[1]
	}
	c.times++
	if !c.said.IsZero() && now.Sub(c.said) < appendWarnEvery {
		return 0, false
	}
	times, c.times, c.said = c.times, 0, now
	return times, true
}

// final says whether an error of storage means that the log is not to be trusted any more (I11).
func final(err error) bool {
	var corrupt *storage.CorruptError
	return errors.Is(err, storage.ErrSyncFailed) || errors.As(err, &corrupt)
}
