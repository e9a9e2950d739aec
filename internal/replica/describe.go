package replica

import (
	"cmp"
	"slices"

	"strandline.dev/internal/kafka"
)

// Describe returns the status of one partition; false when this node does not hold it.
func (h *Host) Describe(tp kafka.TopicPartition) (PartitionStatus, bool) {
	p := h.partition(tp)
	if p == nil {
		return PartitionStatus{}, false
	}
	return p.describe(), true
}

// Partitions lists the partitions that this node holds, whatever their role, by topic id and number.
func (h *Host) Partitions() []kafka.TopicPartition {
	all := h.all()
	tps := make([]kafka.TopicPartition, len(all))
	for i, p := range all {
		tps[i] = p.tp
	}
	slices.SortFunc(tps, func(a, b kafka.TopicPartition) int {
		return cmp.Or(slices.Compare(a.Topic[:], b.Topic[:]), cmp.Compare(a.Partition, b.Partition))
	})
	return tps
}

func (p *partition) describe() PartitionStatus {
	p.mu.Lock()
	defer p.unlock()
	s := PartitionStatus{
		TP: p.tp, HW: p.hwLocked(), Role: p.mu.role, Epoch: p.mu.state.LeaderEpoch, Leader: p.mu.state.Leader,
		Start: kafka.NoOffset, End: kafka.NoOffset, Stored: kafka.NoOffset,
	}
	if p.mu.problem != nil {
		s.Problem = p.mu.problem.Error()
	}
	if l := p.mu.log; l != nil {
		s.Start, s.End, s.Stored, s.Size = l.Start(), l.End(), l.StoredEnd(), l.Size()
	}
	return s
}
