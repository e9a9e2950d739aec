package replica

import (
	"context"
	"fmt"

	"strandline.dev/internal/kafka"
)

// Recover opens every log on disk, several at a time, and returns the partitions whose logs may have lost bytes that an earlier
// run had reported as stored (I4): the node lists them when it registers. A damaged log stays offline by name; the rest works.
func (h *Host) Recover(ctx context.Context) ([]kafka.TopicPartition, error) {
	quarantined, err := h.dir.Quarantined()
	if err != nil {
		return nil, fmt.Errorf("recover: list quarantine: %w", err)
	}
	for _, tp := range quarantined {
		h.rec.quarantined[tp] = struct{}{}
	}
	tps, err := h.dir.PartitionDirs()
	if err != nil {
		return nil, fmt.Errorf("recover: list partitions: %w", err)
	}
	// Policy and settings come with the Image. Until then every log counts what is synced only, the stricter policy.
	found := make([]*partition, len(tps))
	parallel(len(tps), func(i int) {
		if ctx.Err() == nil {
			found[i] = h.openPartition(tps[i], logSettings{producerExpiry: h.expiry})
		}
	})
	if ctx.Err() != nil {
		for _, p := range found {
			if p == nil {
				continue
			}
			if l := p.retire(ErrStopped); l != nil {
				l.Close() //nolint:errcheck // nothing was written
			}
		}
		return nil, fmt.Errorf("recover: %w", ctx.Err())
	}
	var unclean []kafka.TopicPartition
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range found {
		h.mu.partitions[p.tp] = p
		if p.suspect {
			unclean = append(unclean, p.tp)
		}
	}
	return unclean, nil
}

// openPartition opens or creates the log of a partition. The partition is returned in any case, Offline if that failed.
func (h *Host) openPartition(tp kafka.TopicPartition, s logSettings) *partition {
	p := newPartition(tp, h.env)
	l, err := h.dir.OpenLog(tp, s.options(p))
	// A log that can not be read may have lost anything.
	p.suspect = err != nil || l.Recovered().Damaged != nil || l.Recovered().Unclean
	p.opened(l, s, err)
	return p
}
