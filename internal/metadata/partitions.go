package metadata

import (
	"strandline.dev/internal/kafka"
)

// createPartitions adds partitions to each topic, all that were asked for or none.
func (d *decider) createPartitions(ev CreatePartitions) []PartitionsResult {
	times := map[string]int{}
	for _, n := range ev.Topics {
		times[n.Name]++
	}
	out := make([]PartitionsResult, 0, len(ev.Topics))
	for _, n := range ev.Topics {
		r := PartitionsResult{Name: n.Name}
		if times[n.Name] > 1 {
			r.Outcome = refused(kafka.InvalidRequest, "the request names topic %q %d times", n.Name, times[n.Name])
		} else {
			r = d.addPartitions(ev, n)
		}
		out = append(out, r)
	}
	if ev.ValidateOnly {
		d.records = nil
	}
	return out
}

func (d *decider) addPartitions(ev CreatePartitions, n NewPartitions) PartitionsResult {
	r := PartitionsResult{Name: n.Name}
	t, no := d.readyTopic(n.Name, n.ExpectedVersion)
	if r.Outcome = no; !no.OK() {
		return r
	}
	have := int32(len(t.Partitions))
	if r.Outcome = keptOutcome(t, "another number of partitions"); !r.OK() {
		return r
	}
	if r.Outcome = d.growthOutcome(t, n.Count); !r.OK() {
		return r
	}
	rf := len(t.Partitions[0].Replicas) - len(t.Partitions[0].Adding)
	var plan [][]kafka.NodeID
	if plan, r.Outcome = d.growth(ev, t, n, rf); !r.OK() {
		return r
	}
	for i, replicas := range plan {
		d.write(PartitionRecord{Topic: t.ID, Partition: have + int32(i), State: d.newPartition(replicas)})
	}
	r.Version, r.Count = d.closeChange(t.ID), n.Count
	return r
}

// growthOutcome checks the wanted number of partitions against the present one and the limits. The texts name both numbers.
func (d *decider) growthOutcome(t *Topic, count int32) Outcome {
	have := int32(len(t.Partitions))
	switch {
	case count == have:
		return refused(kafka.InvalidPartitions, "topic %q has %d partitions already, and %d were asked for", t.Name, have, count)
	case count < have:
		return refused(kafka.InvalidPartitions, "topic %q has %d partitions, and %d were asked for: the number can only be raised; for fewer, create another topic and move its writers and readers there", t.Name, have, count)
	}
	return d.countOutcome(count, count-have)
}

// growth decides where the new partitions go.
func (d *decider) growth(ev CreatePartitions, t *Topic, n NewPartitions, rf int) ([][]kafka.NodeID, Outcome) {
	added := int(n.Count) - len(t.Partitions)
	if len(n.Assignments) > 0 {
		if len(n.Assignments) != added {
			return nil, refused(kafka.InvalidReplicaAssignment, "%d partitions are to be added, and %d assignments are given", added, len(n.Assignments))
		}
		for i, replicas := range n.Assignments {
			if no := d.replicasOutcome(int32(len(t.Partitions)+i), replicas, rf); !no.OK() {
				return nil, no
			}
		}
		return n.Assignments, Outcome{}
	}
	p := d.placer(ev.Seed^idSeed(t.ID), t.Partitions)
	if no := p.factorOutcome(int16(rf)); !no.OK() {
		return nil, no
	}
	plan := make([][]kafka.NodeID, 0, added)
	for i := range added {
		plan = append(plan, p.place(int32(len(t.Partitions)+i), rf))
	}
	return plan, Outcome{}
}

// readyTopic returns a topic that can be administered, and checks the version the caller has seen (R9).
func (d *decider) readyTopic(name string, expected int64) (*Topic, Outcome) {
	t := d.Topic(name)
	switch {
	case t == nil:
		return nil, refused(kafka.UnknownTopicOrPartition, "topic %q does not exist", name)
	case t.State != StateReady:
		return nil, refused(kafka.UnknownTopicOrPartition, "topic %q is still being created", name)
	}
	return t, versionOutcome(t, expected)
}

func versionOutcome(t *Topic, expected int64) Outcome {
	if expected != 0 && expected != t.Version {
		return refused(kafka.InvalidUpdateVersion, "topic %q has version %d, not %d: it was changed since", t.Name, t.Version, expected)
	}
	return Outcome{}
}
