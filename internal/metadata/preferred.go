package metadata

import (
	"slices"

	"strandline.dev/internal/kafka"
)

// electLeaders answers each named partition by itself. When all are asked for, only those are answered where something was to be done:
// the answer for a whole cluster would be too long, and Kafka does the same.
func (d *decider) electLeaders(ev ElectLeaders) []ElectionResult {
	var out []ElectionResult
	if ev.All {
		for _, t := range slices.Collect(d.Topics()) { // collected: elections change what is walked over
			for p := range t.Partitions {
				if r := d.electNamed(ev.Unclean, NamedPartition{t.Name, int32(p)}); t.State == StateReady && r.Code != kafka.ElectionNotNeeded {
					out = append(out, r)
				}
			}
		}
		return out
	}
	for _, n := range ev.Partitions {
		out = append(out, d.electNamed(ev.Unclean, n))
	}
	return out
}

func (d *decider) electNamed(unclean bool, n NamedPartition) ElectionResult {
	r := ElectionResult{NamedPartition: n}
	t, s, no := d.findPartition(n)
	switch {
	case !no.OK():
		r.Outcome = no
	case unclean:
		r.Outcome = d.electAny(t, n, s)
	default:
		r.Outcome = d.electPreferred(t, n, s)
	}
	return r
}

// electPreferred makes the first replica the leader. I4: only if it is in sync.
func (d *decider) electPreferred(t *Topic, n NamedPartition, s kafka.PartitionState) Outcome {
	first := s.Replicas[0]
	switch {
	case s.Leader == first:
		return refused(kafka.ElectionNotNeeded, "broker %v, the preferred one, leads already", first)
	case !d.canLead(first) || d.leaving(first):
		return refused(kafka.PreferredLeaderNotAvailable, "broker %v, the preferred one, is not up, or is to leave", first)
	case !has(s.ISR, first):
		return refused(kafka.PreferredLeaderNotAvailable, "broker %v, the preferred one, is not in sync", first)
	}
	s.Leader, s.LeaderEpoch, s.LastKnown = first, s.LeaderEpoch+1, nil
	d.setPartition(t.ID, n.Partition, s)
	return Outcome{}
}

// electAny is what is left of an unclean election: I4 admits no leader that may miss acknowledged records, whoever asks for one.
func (d *decider) electAny(t *Topic, n NamedPartition, s kafka.PartitionState) Outcome {
	if s.Leader != kafka.NoNode {
		return refused(kafka.ElectionNotNeeded, "broker %v leads", s.Leader)
	}
	if d.candidate(&s, slices.Concat(s.ISR, s.ELR), kafka.NoNode) == kafka.NoNode {
		return refused(kafka.EligibleLeadersNotAvailable,
			"no replica that is up is sure to have every acknowledged record, and there is no unclean election: another one never leads")
	}
	d.elect(&s, kafka.NoNode)
	d.setPartition(t.ID, n.Partition, s)
	return Outcome{}
}
