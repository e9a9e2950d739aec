package replica

import (
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// Ends tells, of the named partitions, what the replicas of this node, which is node, hold. A replica whose log cannot be read is left out: it is nothing to recover
// from.
func (h *Host) Ends(node kafka.NodeID, tps []kafka.TopicPartition) []metadata.PartitionEnds {
	var out []metadata.PartitionEnds
	for _, tp := range tps {
		p := h.partition(tp)
		if p == nil {
			continue
		}
		if end, ok := p.holds(); ok {
			end.Node = node
			out = append(out, metadata.PartitionEnds{TP: tp, Ends: []metadata.ReplicaEnd{end}})
		}
	}
	return out
}

func (p *partition) holds() (metadata.ReplicaEnd, bool) {
	p.mu.Lock()
	defer p.unlock()
	l := p.mu.log
	if l == nil || p.mu.problem != nil {
		return metadata.ReplicaEnd{}, false
	}
	return metadata.ReplicaEnd{LastEpoch: l.LatestEpoch(), End: l.End()}, true
}
