package metadata

import (
	"strandline.dev/internal/kafka"
)

// finishTopics is what a new controller does first: a decision of its predecessor may have been cut between two entries.
func (d *decider) finishTopics() Finished {
	var out Finished
	for _, t := range d.topics.all() {
		if t.State == StateCreating {
			d.write(TopicStateRecord{ID: t.ID, State: StatePurging, Version: t.Version})
			out.Removed = append(out.Removed, t.ID)
		}
	}
	d.eachPartition(func(t *Topic, p int32, s kafka.PartitionState) {
		if s.Leader == kafka.NoNode || d.canLead(s.Leader) {
			return
		}
		next := leaveISR(s, s.Leader, sound)
		d.elect(&next, s.Leader)
		d.setPartition(t.ID, p, next)
		if next.Leader != kafka.NoNode {
			out.Elected++
		}
	})
	out.Elected += d.electLeaderless(kafka.NoNode)
	return out
}

// allocateProducerIDs hands out the next block.
func (d *decider) allocateProducerIDs(ev AllocateProducerIDs) ProducerIDs {
	if _, no := d.holder(ev.Node, ev.Epoch); !no.OK() {
		return ProducerIDs{Outcome: no}
	}
	if ev.Count < 1 || ev.Count > ProducerIDBlockMax {
		return ProducerIDs{Outcome: refused(kafka.InvalidRequest, "%d producer ids were asked for; a block has 1 to %d", ev.Count, ProducerIDBlockMax)}
	}
	first := d.NextProducerID()
	d.write(ProducerIDsRecord{Next: first + ev.Count})
	return ProducerIDs{First: first, Count: ev.Count}
}
