package replica

import (
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/storage"
)

// noTimestampOffset is the answer "there is none", which is not an error.
var noTimestampOffset = storage.TimestampOffset{TimestampMs: -1, Offset: kafka.NoOffset, Epoch: kafka.NoEpoch}

// ListOffset finds an offset by timestamp: Unix milliseconds, or one of the special ones above. Offsets at and above the high
// watermark (readCommitted: the last stable offset) are not found; NoOffset without an error means that there is none. While
// the watermark of a new leader is not settled, what depends on it is ErrOffsetNotAvailable (I2, C007).
func (h *Host) ListOffset(tp kafka.TopicPartition, ts int64, current kafka.LeaderEpoch, readCommitted bool) (storage.TimestampOffset, error) {
	p := h.partition(tp)
	if p == nil {
		return noTimestampOffset, h.absent()
	}
	at, err := p.listOffset(ts, current, readCommitted)
	if err != nil {
		return noTimestampOffset, err // C062: no offset ever comes with an error
	}
	return at, nil
}

func (p *partition) listOffset(ts int64, current kafka.LeaderEpoch, readCommitted bool) (storage.TimestampOffset, error) {
	var leader kafka.NodeID
	var epoch kafka.LeaderEpoch
	v, err := p.look(current, &leader, &epoch)
	if err != nil {
		return noTimestampOffset, err
	}
	switch ts {
	case EarliestTimestamp, EarliestLocalTimestamp:
		at := storage.TimestampOffset{TimestampMs: -1, Offset: v.log.Start(), Epoch: kafka.NoEpoch}
		if at.Offset < v.log.End() {
			at.Epoch = v.log.EpochAt(at.Offset) // where no record is, none was written in an epoch (O4)
		}
		return at, nil
	case LatestTieredTimestamp, EarliestPendingTimestamp:
		return noTimestampOffset, nil // no tiers here
	}
	if ts < 0 && ts != LatestTimestamp && ts != MaxTimestamp {
		return noTimestampOffset, ErrBadTimestamp
	}
	if !v.settled {
		return noTimestampOffset, ErrOffsetNotAvailable
	}
	upper := v.hw
	if readCommitted {
		upper = v.log.LastStable(v.hw)
	}
	if ts == LatestTimestamp {
		return storage.TimestampOffset{TimestampMs: -1, Offset: upper, Epoch: v.epoch}, nil
	}
	return p.searchTime(v.log, ts, upper)
}

func (p *partition) searchTime(l *storage.Log, ts int64, upper kafka.Offset) (storage.TimestampOffset, error) {
	var at storage.TimestampOffset
	var found bool
	var err error
	if ts == MaxTimestamp {
		at, found, err = l.MaxTimestamp(upper)
	} else {
		at, found, err = l.OffsetForTime(ts, upper)
	}
	switch {
	case err != nil:
		return noTimestampOffset, p.readError(err)
	case !found:
		return noTimestampOffset, nil
	}
	return at, nil
}
