package replica

import (
	"context"
	"errors"
	"fmt"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/storage"
)

// ToHighWatermark as DeleteItem.To means all records that are committed now.
const ToHighWatermark kafka.Offset = -1

// DeleteItem asks for the records of a partition below To to be deleted.
type DeleteItem struct {
	TP kafka.TopicPartition
	To kafka.Offset
}

// DeleteResult is the answer for one DeleteItem, in the same place.
type DeleteResult struct {
	// Start is the log start afterwards, or NoOffset with an error.
	Start kafka.Offset
	Err   error
}

// DeleteRecords raises the log starts of partitions that this node leads. That is the explicit act by which records go before their time
// (I9): the caller has authorised and recorded it. When it returns, the new starts are on disk, here and on all followers in sync:
// neither a restart nor another leader brings back what was answered as deleted, unless both copies of the sync-point file, which hold
// them, are damaged. What the partitions remember of idempotent producers stays (I12, C048). Items that ctx's end kept from being begun
// have its error.
func (h *Host) DeleteRecords(ctx context.Context, items []DeleteItem) []DeleteResult {
	out := make([]DeleteResult, len(items))
	done := make([]deletion, len(items))
	// Several at once: they share the writes of the sync-point file.
	parallel(len(items), func(i int) {
		out[i].Start, out[i].Err = kafka.NoOffset, ctx.Err()
		if out[i].Err != nil {
			return
		}
		if p := h.partition(items[i].TP); p == nil {
			out[i].Err = h.absent()
		} else if done[i], out[i].Err = p.deleteRecords(items[i].To); out[i].Err == nil {
			done[i].p = p
		}
	})
	// Then the followers, which all have been told.
	for i, d := range done {
		if d.p == nil {
			continue
		}
		if out[i].Err = d.p.awaitStart(ctx, d.epoch, d.start); out[i].Err == nil {
			out[i].Start = d.start
		}
	}
	return out
}

// deletion is a log start that has been raised here and that the followers in sync are to have raised too, in that leader epoch.
type deletion struct {
	p     *partition
	epoch kafka.LeaderEpoch
	start kafka.Offset
}

func (p *partition) deleteRecords(to kafka.Offset) (deletion, error) {
	var leader kafka.NodeID
	var epoch kafka.LeaderEpoch
	v, err := p.look(kafka.NoEpoch, &leader, &epoch)
	switch {
	case err != nil:
		return deletion{}, err
	case !v.settled: // I2: the watermark may be higher than what this leader knows yet
		return deletion{}, ErrOffsetNotAvailable
	case to == ToHighWatermark:
		to = v.hw
	case to < 0 || to > v.hw: // a record that may yet be lost cannot be deleted before the others
		return deletion{}, ErrOutOfRange
	}
	// Outside the lock: this syncs and unlinks. What is below the watermark now stays below it, whoever leads meanwhile.
	before := v.log.Start()
	if err := v.log.AdvanceStart(to); err != nil {
		return deletion{}, p.deleteError(err)
	}
	p.touch()
	start := v.log.Start()
	if start > before {
		p.startMoved()
		p.env.log.Info("records deleted on request", "partition", p.tp.String(), "from", before, "to", start)
	}
	return deletion{epoch: v.epoch, start: start}, nil // awaitStart refuses an answer that would be another reign's (I3)
}

// deleteError sorts out the errors of raising a log's start.
func (p *partition) deleteError(err error) error {
	switch {
	case errors.Is(err, storage.ErrClosed):
		return ErrNotLeader // retired meanwhile; the client finds out what happened when it asks again
	case errors.Is(err, storage.ErrOutOfRange):
		return ErrOutOfRange // the log was cut meanwhile
	case final(err):
		p.mu.Lock()
		p.failLocked(err)
		err = p.mu.problem
		p.unlock()
		return err
	}
	p.env.log.Warn("deleting records failed", "partition", p.tp.String(), "err", err)
	return fmt.Errorf("%w: delete records of %v: %w", ErrStorage, p.tp, err)
}
