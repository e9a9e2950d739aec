package metadata

import (
	"slices"

	"strandline.dev/internal/kafka"
)

// alterISR answers each partition by itself. A process that is not the registered one changes nothing (I3).
func (d *decider) alterISR(ev AlterISR) []ISRResult {
	_, no := d.holder(ev.Node, ev.Epoch)
	out := make([]ISRResult, 0, len(ev.Changes))
	for _, c := range ev.Changes {
		r := ISRResult{TP: c.TP, Outcome: no}
		if no.OK() {
			r.Outcome = d.alterOne(ev.Node, c)
		}
		if t := d.TopicByID(c.TP.Topic); t != nil && t.State != StatePurging && c.TP.Partition >= 0 && int(c.TP.Partition) < len(t.Partitions) {
			r.State = t.Partitions[c.TP.Partition]
		}
		out = append(out, r)
	}
	return out
}

func (d *decider) alterOne(leader kafka.NodeID, c ISRChange) Outcome {
	t := d.TopicByID(c.TP.Topic)
	switch {
	case t == nil || t.State == StatePurging:
		return refused(kafka.UnknownTopicID, "no topic has the id %s", c.TP.Topic)
	case c.TP.Partition < 0 || int(c.TP.Partition) >= len(t.Partitions):
		return refused(kafka.UnknownTopicOrPartition, "topic %q has no partition %d", t.Name, c.TP.Partition)
	}
	s := t.Partitions[c.TP.Partition]
	if no := d.isrOutcome(leader, &s, c); !no.OK() {
		return no
	}
	next := changeISR(s, c)
	d.settleMove(t, &next)
	d.setPartition(t.ID, c.TP.Partition, next)
	return Outcome{}
}

// isrOutcome says whether a change may be made on a state.
func (d *decider) isrOutcome(leader kafka.NodeID, s *kafka.PartitionState, c ISRChange) Outcome {
	switch {
	case c.LeaderEpoch > s.LeaderEpoch || c.LeaderEpoch == s.LeaderEpoch && c.PartitionEpoch > s.PartitionEpoch:
		return refused(kafka.NotController, "leader epoch %d and partition epoch %d are not known here", c.LeaderEpoch, c.PartitionEpoch)
	case c.LeaderEpoch < s.LeaderEpoch || s.Leader != leader: // I3
		return refused(kafka.FencedLeaderEpoch, "broker %v leads in epoch %d, not broker %v in epoch %d", s.Leader, s.LeaderEpoch, leader, c.LeaderEpoch)
	case c.PartitionEpoch != s.PartitionEpoch:
		return refused(kafka.InvalidUpdateVersion, "the partition epoch is %d, not %d", s.PartitionEpoch, c.PartitionEpoch)
	}
	var seen []kafka.NodeID
	for _, m := range c.ISR {
		switch {
		case has(seen, m.Node) || !has(s.Replicas, m.Node) || has(c.Lost, m.Node):
			return refused(kafka.InvalidRequest, "broker %v is no replica, or is named twice, or is in sync and has lost records", m.Node)
		case !has(s.ISR, m.Node) && !d.mayJoin(m):
			return refused(kafka.IneligibleReplica, "broker %v with epoch %d is not up, or is stopping, or has registered again", m.Node, m.Epoch)
		}
		seen = append(seen, m.Node)
	}
	if !has(seen, leader) {
		return refused(kafka.InvalidRequest, "broker %v leads and is not in the list", leader)
	}
	return Outcome{}
}

// mayJoin says whether a replica may enter an ISR: it is up, means to stay, and is the process that the leader has seen to be in sync. A newer
// registration may come from a disk that has lost what the old one had.
func (d *decider) mayJoin(m Member) bool {
	b := d.Broker(m.Node)
	return b != nil && !b.Fenced && !b.Stopping && b.Epoch == m.Epoch
}

// changeISR is the state with another ISR. I4: until this change is committed, the high watermark waits for those who leave; when fewer than the
// effective minimum stay, it does not move any further, so all who leave at once have every record up to it, and may lead.
func changeISR(s kafka.PartitionState, c ISRChange) kafka.PartitionState {
	isr, elr := []kafka.NodeID(nil), slices.Clone(s.ELR)
	for _, n := range s.Replicas { // in the order of replicas, so that equal states have equal bytes
		if slices.ContainsFunc(c.ISR, func(m Member) bool { return m.Node == n }) {
			isr, elr = append(isr, n), less(elr, n)
		}
	}
	for _, n := range s.ISR {
		if !has(isr, n) && int32(len(isr)) < s.EffectiveMinISR {
			elr = more(elr, n)
		}
	}
	for _, n := range c.Lost {
		elr = less(elr, n)
	}
	s.ISR, s.ELR = isr, elr
	return s
}

// reportDamage takes damaged replicas out of ISR and ELR, and out of the leadership (I4, I11). Where another node leads it does so in a new
// epoch: what the replica said of itself before the damage, by the same process, would else count for it when it begins anew.
func (d *decider) reportDamage(ev ReportDamage) DamageNoted {
	if _, no := d.holder(ev.Node, ev.Epoch); !no.OK() {
		return DamageNoted{Outcome: no}
	}
	var out DamageNoted
	for _, r := range ev.Damaged {
		tp := r.TP
		t := d.TopicByID(tp.Topic)
		if t == nil || t.State == StatePurging || tp.Partition < 0 || int(tp.Partition) >= len(t.Partitions) {
			continue // deleted meanwhile
		}
		s := t.Partitions[tp.Partition]
		if !has(s.Replicas, ev.Node) {
			continue // moved away meanwhile
		}
		if r.LeaderEpoch < s.LeaderEpoch {
			out.Stale = append(out.Stale, tp)
			continue
		}
		next := leaveISR(s, ev.Node, lost)
		switch s.Leader {
		case ev.Node:
			d.elect(&next, ev.Node)
		case kafka.NoNode:
			if len(next.ISR) == len(s.ISR) && len(next.ELR) == len(s.ELR) {
				continue // not counted on anywhere
			}
			next.LeaderEpoch++
		default:
			next.LeaderEpoch++
		}
		d.setPartition(t.ID, tp.Partition, next)
		if len(next.ISR)+len(next.ELR) == 0 {
			out.Offline = append(out.Offline, PartitionName{Topic: t.Name, ID: t.ID, Partition: tp.Partition})
		}
	}
	return out
}
