package metadata

import (
	"fmt"
	"slices"

	"strandline.dev/internal/kafka"
)

// Decide answers an event. It changes nothing: the records of the decision do, once they are applied. Every record has been applied to a draft
// here, so a record that Apply refuses never leaves the active controller (C080).
func (i *Image) Decide(ev Event) Decision {
	d := &decider{draft: i.draft()}
	var reply any
	switch ev := ev.(type) {
	case RegisterBroker:
		reply = d.register(ev)
	case BrokerReady:
		reply = d.ready(ev)
	case FenceBroker:
		reply = d.fence(ev)
	case CreateTopics:
		reply = d.createTopics(ev)
	case DeleteTopics:
		reply = d.deleteTopics(ev)
	case RestoreTopic:
		reply = d.restoreTopic(ev)
	case PurgeTopic:
		reply = d.purgeTopic(ev)
	case ExpireTrash:
		reply = d.expireTrash(ev)
	case ReplicasPurged:
		reply = d.replicasPurged(ev)
	case CreatePartitions:
		reply = d.createPartitions(ev)
	case AlterConfigs:
		reply = d.alterConfigs(ev)
	case AllocateProducerIDs:
		reply = d.allocateProducerIDs(ev)
	case ElectLeaders:
		reply = d.electLeaders(ev)
	case AlterAssignments:
		reply = d.alterAssignments(ev)
	case FinishTopics:
		reply = d.finishTopics()
	default:
		reply = d.decideReplicas(ev)
	}
	return Decision{Records: d.records, Reply: reply}
}

// decideReplicas answers the events about replicas, the brokers that hold them, and access.
func (d *decider) decideReplicas(ev Event) any {
	switch ev := ev.(type) {
	case AlterISR:
		return d.alterISR(ev)
	case ReportDamage:
		return d.reportDamage(ev)
	case DrainBroker:
		return d.drainBroker(ev)
	case RemoveBroker:
		return d.removeBroker(ev)
	case RecoverPartitions:
		return d.recoverPartitions(ev)
	case BalanceLeaders:
		return d.balanceLeaders(ev)
	case ContinueDrains:
		return d.continueDrains(ev)
	case RaiseInternal:
		return d.raiseInternal(ev)
	case CreateACLs:
		return d.createACLs(ev)
	case DeleteACLs:
		return d.deleteACLs(ev)
	case AlterScram:
		return d.alterScram(ev)
	case AlterQuotas:
		return d.alterQuotas(ev)
	}
	panic(fmt.Sprintf("metadata: no decision for event %T", ev))
}

// decider is a decision in the making: a draft that has every record applied that was written so far, so that later steps see earlier ones.
type decider struct {
	*draft
	records []Record
}

// write adds a record. A record that cannot be applied is a fault of this package and stops the controller before it reaches the log.
func (d *decider) write(rs ...Record) {
	for _, r := range rs {
		if err := d.apply(r); err != nil {
			panic(fmt.Sprintf("metadata: decided on a record that cannot follow: %v", err))
		}
		d.records = append(d.records, r)
	}
}

// setPartition writes a new state of an existing partition, with the next partition epoch.
func (d *decider) setPartition(t kafka.TopicID, partition int32, s kafka.PartitionState) {
	s.PartitionEpoch = d.TopicByID(t).Partitions[partition].PartitionEpoch + 1
	s.EffectiveMinISR = 0 // derived by Apply (I1)
	d.write(PartitionRecord{Topic: t, Partition: partition, State: s})
}

// closeChange writes the end of an administrative change of a topic: its next version.
func (d *decider) closeChange(id kafka.TopicID) int64 {
	t := d.TopicByID(id)
	next := t.Version + 1
	d.write(TopicStateRecord{ID: id, State: t.State, Version: next})
	return next
}

func refused(code kafka.ErrorCode, format string, args ...any) Outcome {
	return Outcome{Code: code, Message: fmt.Sprintf(format, args...)}
}

// eachPartition calls fn for every partition of topics that have logs: those being made, in service or in the trash. The states are those at the
// beginning of the call.
func (d *decider) eachPartition(fn func(t *Topic, partition int32, s kafka.PartitionState)) {
	for _, t := range d.topics.all() {
		if t.State == StatePurging {
			continue
		}
		for p, s := range slices.Clone(t.Partitions) {
			fn(t, int32(p), s)
		}
	}
}

// has and less treat short node lists as sets.
func has(list []kafka.NodeID, n kafka.NodeID) bool { return slices.Contains(list, n) }

// less returns a copy of the list without a node; nil when it would be empty.
func less(list []kafka.NodeID, n kafka.NodeID) []kafka.NodeID {
	var out []kafka.NodeID
	for _, m := range list {
		if m != n {
			out = append(out, m)
		}
	}
	return out
}

// more returns a copy of the list with a node, which may be in it already.
func more(list []kafka.NodeID, n kafka.NodeID) []kafka.NodeID {
	if has(list, n) {
		return list
	}
	return append(slices.Clone(list), n)
}

// except returns a copy of the list without the nodes of another; nil when it would be empty.
func except(list, gone []kafka.NodeID) []kafka.NodeID {
	var out []kafka.NodeID
	for _, n := range list {
		if !has(gone, n) {
			out = append(out, n)
		}
	}
	return out
}
