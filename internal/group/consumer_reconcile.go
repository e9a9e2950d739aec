package group

import (
	"slices"

	"strandline.dev/internal/kafka"
)

// reconcile takes a member one step towards its target. A partition moves in two steps, and the rule of I7 is between them: the member
// that is to lose it is told so and holds it until its heartbeat says that it does not own it any more; only then can the one that is to
// have it be given it. owned is nil when the heartbeat does not say what the member owns: then it is taken to own all.
func (d *change) reconcile(id string, owned []kafka.TopicPartition) {
	m := d.member(id)
	switch {
	case m.isSettledIn(d.targetEpoch):
		return
	case m.state == revoking && ownsAny(m.revoked, owned):
		return
	}
	m = d.edit(id)
	next := m.epoch
	if m.state == revoking {
		// It has given up what it was asked to: the epoch before must not pass for this one.
		next = min(m.epoch+1, d.targetEpoch)
	}
	target := d.target(id)
	keep, lose := holdings{}, holdings{}
	for tp, since := range m.assigned {
		if _, stays := slices.BinarySearchFunc(target, tp, comparePartitions); stays {
			keep[tp] = since
		} else {
			lose[tp] = since
		}
	}
	if ownsAny(lose, owned) {
		m.move(next, revoking, keep, lose)
		return
	}
	state := settled
	for _, tp := range target {
		if _, has := keep[tp]; has {
			continue
		}
		if d.isFree(tp, id) {
			keep[tp] = d.targetEpoch
		} else {
			state = waiting
		}
	}
	m.move(d.targetEpoch, state, keep, nil)
}

// move puts a member where a step of its reconciliation leads.
func (m *consumerMember) move(epoch MemberEpoch, state memberState, assigned, revoked holdings) {
	if epoch != m.epoch {
		m.previous, m.epoch = m.epoch, epoch
	}
	m.state, m.assigned, m.revoked = state, assigned, revoked
}

// ownsAny says whether a member may still own one of some partitions.
func ownsAny(h holdings, owned []kafka.TopicPartition) bool {
	if owned == nil {
		return len(h) > 0
	}
	for _, tp := range owned {
		if _, ok := h[tp]; ok {
			return true
		}
	}
	return false
}
