package replica

import (
	"cmp"
	"slices"
	"time"

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
	// Bound is the disk limit that is reached first; the zero value where nobody knows.
	Bound storage.Bound
	// Refusal is why records of user topics are refused, nil while they are taken.
	Refusal error
}

// Volume reports on the disk that holds the data directory. An error is the file system's; Space is not set then.
func (h *Host) Volume() (Volume, error) {
	v := Volume{Path: h.dir.Path(), Refusal: h.dir.Refusal()}
	var err error
	if v.Bound, err = h.dir.Room(); err != nil {
		v.Bound = storage.Bound{}
	}
	v.Space, err = h.machine.Space(v.Path)
	return v, err
}

// Slowdown is how long a publish is to be slowed because little room is left on the disk.
func (h *Host) Slowdown() time.Duration { return h.dir.Slowdown() }

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
		TP: p.tp, HW: p.hwLocked(), Role: p.mu.role, Epoch: p.mu.state.LeaderEpoch, Leader: p.mu.state.Leader, Lost: p.mu.lost,
		Start: kafka.NoOffset, End: kafka.NoOffset, Stored: kafka.NoOffset,
	}
	if p.mu.problem != nil {
		s.Problem = p.mu.problem.Error()
	}
	if l := p.mu.log; l != nil {
		s.Start, s.End, s.Stored, s.Size = l.Start(), l.End(), l.StoredEnd(), l.Size()
		s.RecordIDs, _ = l.RecordIDs()
	}
	return s
}
