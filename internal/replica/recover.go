package replica

import (
	"context"
	"fmt"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

// Recovered names the partitions whose logs may have lost bytes that an earlier run had reported as stored (I4). The node lists
// them when it registers.
type Recovered struct {
	// Unclean: the only fault is that the operating system was restarted under bytes that were not synced.
	Unclean []kafka.TopicPartition
	// Damaged: bytes are damaged, or the log can not be opened. Such a partition stays Offline; the rest works.
	Damaged []kafka.TopicPartition
}

// Recover opens every log on disk, several at a time.
func (h *Host) Recover(ctx context.Context) (Recovered, error) {
	quarantined, err := h.dir.Quarantined()
	if err != nil {
		return Recovered{}, fmt.Errorf("recover: list quarantine: %w", err)
	}
	for _, tp := range quarantined {
		h.rec.quarantined[tp] = struct{}{}
	}
	tps, err := h.dir.PartitionDirs()
	if err != nil {
		return Recovered{}, fmt.Errorf("recover: list partitions: %w", err)
	}
	// Policy and settings come with the Image. Until then every log counts what is synced only, the stricter policy.
	found := make([]*partition, len(tps))
	parallel(len(tps), func(i int) {
		if ctx.Err() == nil {
			found[i] = h.openPartition(tps[i], logSettings{producerExpiry: h.expiry})
		}
	})
	err = ctx.Err()
	if err == nil {
		err = shortOfFiles(found)
	}
	if err != nil {
		for _, p := range found {
			if p == nil {
				continue
			}
			if l := p.retire(ErrStopped); l != nil {
				l.Close() //nolint:errcheck // nothing was written
			}
		}
		return Recovered{}, fmt.Errorf("recover: %w", err)
	}
	r := Recovered{Damaged: h.vanished(tps, quarantined)}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range found {
		h.mu.partitions[p.tp] = p
		switch {
		case p.damaged:
			p.mu.Lock()
			p.mu.damage = reported // with the registration
			p.unlock()
			r.Damaged = append(r.Damaged, p.tp)
		case p.unclean:
			r.Unclean = append(r.Unclean, p.tp)
		}
	}
	return r, nil
}

// shortOfFiles is the error of a log that could not be opened because this process may open no more files. That says nothing about the
// log: a replica must not be registered as damaged for it (I4), so the start fails.
func shortOfFiles(found []*partition) error {
	for _, p := range found {
		if sys.IsTooManyFiles(p.shut) {
			return p.shut
		}
	}
	return nil
}

// vanished lists the logs that held records and have no directory any more, in quarantine or elsewhere. Opening one finds the same
// damage; but the registration comes before that, and must not count such a replica among the sound ones (I4).
func (h *Host) vanished(there ...[]kafka.TopicPartition) []kafka.TopicPartition {
	known := map[kafka.TopicPartition]struct{}{}
	for _, tps := range there {
		for _, tp := range tps {
			known[tp] = struct{}{}
		}
	}
	var gone []kafka.TopicPartition
	for _, tp := range h.dir.Promised() {
		if _, ok := known[tp]; !ok {
			h.log.Error("the directory of a partition that held records is gone", "partition", tp.String())
			gone = append(gone, tp)
		}
	}
	return gone
}

// openPartition opens or creates the log of a partition. The partition is returned in any case, Offline if that failed.
func (h *Host) openPartition(tp kafka.TopicPartition, s logSettings) *partition {
	p := newPartition(tp, h.env)
	l, err := h.dir.OpenLog(tp, s.options(p))
	// A log that can not be opened may have lost anything.
	p.shut = err
	p.damaged = err != nil || l.Recovered().Damaged != nil
	p.unclean = err == nil && l.Recovered().Unclean
	p.opened(l, s, err)
	return p
}
