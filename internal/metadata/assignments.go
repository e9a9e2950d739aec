package metadata

import "strandline.dev/internal/kafka"

// findPartition returns a partition of a topic in service.
func (d *decider) findPartition(n NamedPartition) (*Topic, kafka.PartitionState, Outcome) {
	t, no := d.readyTopic(n.Topic, 0)
	if !no.OK() {
		return nil, kafka.PartitionState{}, no
	}
	if n.Partition < 0 || int(n.Partition) >= len(t.Partitions) {
		return nil, kafka.PartitionState{}, refused(kafka.UnknownTopicOrPartition, "topic %q has no partition %d", n.Topic, n.Partition)
	}
	return t, t.Partitions[n.Partition], Outcome{}
}

// alterAssignments answers each partition by itself.
func (d *decider) alterAssignments(ev AlterAssignments) []AssignmentResult {
	out := make([]AssignmentResult, 0, len(ev.Partitions))
	for _, n := range ev.Partitions {
		r := AssignmentResult{NamedPartition: n.NamedPartition}
		t, s, no := d.findPartition(n.NamedPartition)
		switch {
		case !no.OK():
			r.Outcome = no
		case n.Cancel:
			r.Outcome = d.cancel(n, t, s)
		default:
			r.Outcome = d.assign(ev, n, t, s)
		}
		out = append(out, r)
	}
	return out
}

// assign gives a partition the replicas it is to have. The same brokers in another order only change who leads by preference.
func (d *decider) assign(ev AlterAssignments, n NewAssignment, t *Topic, s kafka.PartitionState) Outcome {
	if no := d.replicasOutcome(n.Partition, n.Replicas, len(n.Replicas)); !no.OK() {
		return no
	}
	if have := len(s.Replicas) - len(s.Adding); ev.KeepFactor && len(n.Replicas) != have {
		return refused(kafka.InvalidReplicationFactor, "partition %d of topic %q has %d replicas, and %d are given, where the number is to stay",
			n.Partition, n.Topic, have, len(n.Replicas))
	}
	return d.move(t, n.Partition, n.Replicas)
}

// cancel takes a move back: the replicas that were being added leave again.
func (d *decider) cancel(n NewAssignment, t *Topic, s kafka.PartitionState) Outcome {
	if len(s.Adding)+len(s.Removing) == 0 {
		return refused(kafka.NoReassignmentInProgress, "partition %d of topic %q is not being moved", n.Partition, n.Topic)
	}
	return d.move(t, n.Partition, except(s.Replicas, s.Adding))
}
