package metadata

import (
	"slices"

	"strandline.dev/internal/kafka"
)

// Health counts partitions that are not as they should be.
type Health struct {
	// UnderReplicated are those with a replica that is not in sync; one that a move is adding does not count before it is there.
	UnderReplicated int
	// UnderMinISR are those whose ISR is too small for an acknowledgement by all.
	UnderMinISR int
	// Offline are those without a leader.
	Offline int
}

// Health judges the partitions of topics in service: of those led by a node what it lacks, and of all who is without a leader.
func (i *Image) Health(leader kafka.NodeID) Health {
	var h Health
	for t := range i.Topics() {
		for p := range t.Partitions {
			h.count(&t.Partitions[p], leader)
		}
	}
	return h
}

func (h *Health) count(s *kafka.PartitionState, leader kafka.NodeID) {
	switch s.Leader {
	case kafka.NoNode:
		h.Offline++
	case leader:
		lacks := func(r kafka.NodeID) bool { return !slices.Contains(s.ISR, r) && !slices.Contains(s.Adding, r) }
		if slices.ContainsFunc(s.Replicas, lacks) {
			h.UnderReplicated++
		}
		if len(s.ISR) < int(s.EffectiveMinISR) {
			h.UnderMinISR++
		}
	}
}
