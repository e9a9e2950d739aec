package metadata

import (
	"slices"

	"strandline.dev/internal/kafka"
)

// candidate picks a leader from a list: an unfenced broker, one that is to stay if there is any, the one with the fewest leaderships, the
// one named first in the replicas. It returns NoNode when nobody can lead.
func (d *decider) candidate(s *kafka.PartitionState, from []kafka.NodeID, except kafka.NodeID) kafka.NodeID {
	best := kafka.NoNode
	for _, n := range s.Replicas {
		if n == except || !has(from, n) || !d.canLead(n) {
			continue
		}
		if best == kafka.NoNode || d.betterLeader(n, best) {
			best = n
		}
	}
	return best
}

func (d *decider) betterLeader(a, b kafka.NodeID) bool {
	if la, lb := d.leaving(a), d.leaving(b); la != lb {
		return lb
	}
	return d.loads[a].leaders < d.loads[b].leaders
}

// elect gives a partition another leader, or none, in a new leader epoch. I4: only a member of ISR, else of ELR; nothing else leads, whatever is
// lost by waiting.
func (d *decider) elect(s *kafka.PartitionState, except kafka.NodeID) {
	s.LeaderEpoch++
	s.Leader = d.candidate(s, s.ISR, except)
	if s.Leader == kafka.NoNode {
		if n := d.candidate(s, s.ELR, except); n != kafka.NoNode {
			s.Leader, s.ISR, s.ELR = n, more(s.ISR, n), less(s.ELR, n)
		}
	}
	if s.Leader != kafka.NoNode {
		s.LastKnown = nil
	}
}

// electLeaderless gives a leader to every partition that has none and can have one, for the given broker's return or, with NoNode, for all.
func (d *decider) electLeaderless(returned kafka.NodeID) int {
	elected := 0
	d.eachPartition(func(t *Topic, p int32, s kafka.PartitionState) {
		if s.Leader != kafka.NoNode || returned != kafka.NoNode && !has(s.ISR, returned) && !has(s.ELR, returned) {
			return
		}
		if d.candidate(&s, slices.Concat(s.ISR, s.ELR), kafka.NoNode) == kafka.NoNode {
			return
		}
		d.elect(&s, kafka.NoNode)
		d.setPartition(t.ID, p, s)
		elected++
	})
	return elected
}
