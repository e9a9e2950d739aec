package metadata

import (
	"slices"

	"strandline.dev/internal/kafka"
)

// A move has two records. The first adds the new replicas beside all old ones, which stay in the replica set, and in ISR and effective minimum as
// they were (R112); the second is written with the ISR change that completes the move, and takes out those that are to go. A move may be given
// another target, or be cancelled, in between.

// move begins, changes or cancels the move of a partition to target, and completes it at once where nothing has to be copied.
func (d *decider) move(t *Topic, partition int32, target []kafka.NodeID) Outcome {
	s := t.Partitions[partition]
	next := retarget(s, target)
	// C019: a replica that was being added and is in sync, or eligible, may be all that is left. It goes only when enough others hold what is
	// acknowledged: of two that may lead, one may yet turn out to have lost its disk.
	had, left := len(s.ISR)+len(s.ELR), len(next.ISR)+len(next.ELR)
	if least := int(min(t.minInsync(), int32(len(next.Replicas)-len(next.Adding)))); len(next.ISR) < len(s.ISR) && len(next.ISR) < least ||
		left < had && left < least {
		return refused(kafka.InvalidReplicaAssignment,
			"partition %d of topic %q: without the brokers %s, which the move in progress has added, %d replicas are in sync or may lead, and %d are needed",
			partition, t.Name, nodeNames(except(s.Replicas, next.Replicas)), left, least)
	}
	if s.Leader != kafka.NoNode && !has(next.ISR, s.Leader) {
		d.elect(&next, s.Leader)
	}
	d.settleMove(t, &next)
	if !sameAssignment(&s, &next) {
		d.setPartition(t.ID, partition, next)
	}
	return Outcome{}
}

// retarget is the state in which a partition moves to target. What it holds already is whatever was not being added.
func retarget(s kafka.PartitionState, target []kafka.NodeID) kafka.PartitionState {
	held := except(s.Replicas, s.Adding)
	next := s
	next.Adding, next.Removing = except(target, held), except(held, target)
	next.Replicas = append(slices.Clone(target), next.Removing...)
	gone := except(s.Replicas, next.Replicas)
	next.ISR, next.ELR, next.LastKnown = except(s.ISR, gone), except(s.ELR, gone), except(s.LastKnown, gone)
	return next
}

func sameAssignment(a, b *kafka.PartitionState) bool {
	return slices.Equal(a.Replicas, b.Replicas) && slices.Equal(a.Adding, b.Adding) && slices.Equal(a.Removing, b.Removing)
}

// moving says that a partition is on its way to other replicas.
func moving(s *kafka.PartitionState) bool { return len(s.Adding)+len(s.Removing) > 0 }

// settleMove completes a move in the record that makes it complete: every replica that was being added is in sync, and without those being
// removed the ISR has the effective minimum of the new replica set, so that completing takes no partition below it (I1).
func (d *decider) settleMove(t *Topic, s *kafka.PartitionState) {
	if !moving(s) || len(except(s.Adding, s.ISR)) > 0 {
		return
	}
	next := *s
	next.Replicas, next.ISR = except(s.Replicas, s.Removing), except(s.ISR, s.Removing)
	if len(next.ISR) < int(min(t.minInsync(), int32(len(next.Replicas)))) {
		return
	}
	next.ELR, next.LastKnown = except(s.ELR, s.Removing), except(s.LastKnown, s.Removing)
	next.Adding, next.Removing = nil, nil
	if has(s.Removing, s.Leader) {
		d.elect(&next, s.Leader)
	}
	*s = next
}
