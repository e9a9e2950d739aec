package metadata

import (
	"slices"

	"strandline.dev/internal/kafka"
)

// balanceLeaders gives leaderships back after brokers have returned. The number is bounded, because each one is a short pause for its clients.
func (d *decider) balanceLeaders(ev BalanceLeaders) Balanced {
	var out Balanced
	d.eachPartition(func(t *Topic, p int32, s kafka.PartitionState) {
		first := s.Replicas[0]
		if t.State != StateReady || s.Leader == kafka.NoNode || s.Leader == first || !has(s.ISR, first) || !d.canLead(first) || d.leaving(first) {
			return
		}
		if out.Moved >= ev.Max {
			out.Left++
			return
		}
		s.Leader, s.LeaderEpoch = first, s.LeaderEpoch+1
		d.setPartition(t.ID, p, s)
		out.Moved++
	})
	return out
}

// recoverPartitions answers each partition by itself.
func (d *decider) recoverPartitions(ev RecoverPartitions) []Recovered {
	out := make([]Recovered, 0, len(ev.Partitions))
	for _, p := range ev.Partitions {
		out = append(out, d.recoverOne(p, ev.Whole))
	}
	return out
}

// recoverOne elects the replica that has most, of those that are up. I4: this is the one road to a leader that may miss acknowledged records.
func (d *decider) recoverOne(p PartitionEnds, whole bool) Recovered {
	r := Recovered{Leader: kafka.NoNode, PartitionName: PartitionName{ID: p.TP.Topic, Partition: p.TP.Partition}}
	t := d.TopicByID(p.TP.Topic)
	if t == nil || t.State == StatePurging || p.TP.Partition < 0 || int(p.TP.Partition) >= len(t.Partitions) {
		r.Outcome = refused(kafka.UnknownTopicID, "there is no partition %d of a topic with the id %s", p.TP.Partition, p.TP.Topic)
		return r
	}
	r.Topic = t.Name
	s := t.Partitions[p.TP.Partition]
	switch {
	case s.Leader != kafka.NoNode:
		r.Outcome = refused(kafka.ElectionNotNeeded, "broker %v leads", s.Leader)
		return r
	case d.candidate(&s, slices.Concat(s.ISR, s.ELR), kafka.NoNode) != kafka.NoNode:
		r.Outcome = refused(kafka.ElectionNotNeeded, "a replica that has every acknowledged record is up, and can be elected")
		return r
	}
	best, missing := d.most(&s, p.Ends)
	switch {
	case whole && len(missing) > 0:
		r.Outcome = refused(kafka.EligibleLeadersNotAvailable, "the brokers %s, which were the last known to have every acknowledged record, are not back", nodeNames(missing))
		return r
	case best == nil:
		r.Outcome = refused(kafka.EligibleLeadersNotAvailable, "none of the brokers %s is up and has told what it holds", nodeNames(s.Replicas))
		return r
	}
	s.Leader, s.LeaderEpoch, s.ISR, s.ELR, s.LastKnown = best.Node, s.LeaderEpoch+1, []kafka.NodeID{best.Node}, nil, nil
	d.setPartition(t.ID, p.TP.Partition, s)
	r.Leader, r.LastEpoch, r.End = best.Node, best.LastEpoch, best.End
	return r
}

// most returns the replica with the highest (last epoch, end) of those that are up, and which of the last known ones are not among them.
func (d *decider) most(s *kafka.PartitionState, ends []ReplicaEnd) (best *ReplicaEnd, missing []kafka.NodeID) {
	var heard []kafka.NodeID
	for _, n := range s.Replicas { // in this order: the preferred one of equals
		i := slices.IndexFunc(ends, func(e ReplicaEnd) bool { return e.Node == n })
		if i < 0 || !d.canLead(n) {
			continue
		}
		heard = append(heard, n)
		if e := &ends[i]; best == nil || e.LastEpoch > best.LastEpoch || e.LastEpoch == best.LastEpoch && e.End > best.End {
			best = e
		}
	}
	for _, n := range slices.Concat(s.ISR, s.ELR, s.LastKnown) {
		if !has(heard, n) {
			missing = more(missing, n)
		}
	}
	return best, missing
}
