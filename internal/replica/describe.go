package replica

import (
	"cmp"
	"slices"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
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

// Volume is the disk that holds the data directory.
type Volume struct {
	// Path is the data directory.
	Path string
	sys.Space
}

// Volume reports on the disk that holds the data directory. With an error, which is the file system's, only Path is set.
func (h *Host) Volume() (Volume, error) {
	v := Volume{Path: h.dir.Path()}
	var err error
	v.Space, err = h.machine.Space(v.Path)
	return v, err
}

// Producers lists, by id, the idempotent producers that a partition led here remembers. Those past their expiry are left out: their next
// batch is taken as a first one, even while their state is still in memory.
func (h *Host) Producers(tp kafka.TopicPartition) ([]storage.ProducerEntry, error) {
	p := h.partition(tp)
	if p == nil {
		return nil, h.absent()
	}
	var leader kafka.NodeID
	var epoch kafka.LeaderEpoch
	v, err := p.look(kafka.NoEpoch, &leader, &epoch)
	if err != nil {
		return nil, err
	}
	nowMs := h.machine.Wall.Now().UnixMilli()
	return slices.DeleteFunc(v.log.Producers(), func(e storage.ProducerEntry) bool {
		return nowMs-e.LastAppendMs > h.expiry.Milliseconds() && e.OpenTransaction == kafka.NoOffset
	}), nil
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
