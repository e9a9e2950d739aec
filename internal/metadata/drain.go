package metadata

import (
	"slices"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
)

// drainBroker marks a broker as being drained, or takes the mark off.
func (d *decider) drainBroker(ev DrainBroker) Drained {
	b := d.Broker(ev.Node)
	if b == nil {
		return Drained{Outcome: refused(kafka.BrokerIDNotRegistered, "broker %v is not registered", ev.Node)}
	}
	if d.Draining(ev.Node) == ev.Undo {
		on, value := "true", (*string)(nil)
		if !ev.Undo {
			value = &on
		}
		d.write(ConfigRecord{Node: ev.Node, Key: config.DrainKey, Value: value})
	}
	if !ev.Undo {
		d.handOver(ev.Node)
	}
	l := d.loads[ev.Node]
	return Drained{Leaders: l.leaders, Replicas: l.replicas}
}

// removeBroker forgets a broker. Only one that holds nothing: its replicas could be the last ones.
func (d *decider) removeBroker(ev RemoveBroker) BrokerRemoved {
	b := d.Broker(ev.Node)
	switch l := d.loads[ev.Node]; {
	case b == nil:
		return BrokerRemoved{refused(kafka.BrokerIDNotRegistered, "broker %v is not registered", ev.Node)}
	case l.replicas > 0:
		return BrokerRemoved{refused(kafka.PolicyViolation, "broker %v holds %d replicas, those of deleted topics that can be restored included: drain it first",
			ev.Node, l.replicas)}
	case !b.Fenced:
		return BrokerRemoved{refused(kafka.PolicyViolation, "broker %v is up, and would register again: stop it first", ev.Node)}
	case slices.ContainsFunc(d.Voters(), func(v Voter) bool { return v.Node == ev.Node }):
		return BrokerRemoved{refused(kafka.PolicyViolation, "node %v is a controller: remove it from the controllers first", ev.Node)}
	}
	d.write(BrokerRemovedRecord{Node: ev.Node})
	return BrokerRemoved{}
}

// continueDrains begins the next moves away from brokers that are being drained. A replica's place in the list goes to its successor.
func (d *decider) continueDrains(ev ContinueDrains) MovesBegun {
	draining := d.Draining
	if !slices.ContainsFunc(d.brokers, func(b *Broker) bool { return d.Draining(b.ID) }) {
		return MovesBegun{}
	}
	room := ev.Max
	d.eachPartition(func(_ *Topic, _ int32, s kafka.PartitionState) {
		if slices.ContainsFunc(s.Removing, draining) {
			room--
		}
	})
	var out MovesBegun
	d.eachPartition(func(t *Topic, p int32, s kafka.PartitionState) {
		if moving(&s) || !slices.ContainsFunc(s.Replicas, draining) {
			return
		}
		if out.Begun >= room {
			return
		}
		target := d.withoutLeaving(ev.Seed^idSeed(t.ID), t, p, draining)
		if target == nil || !d.move(t, p, target).OK() {
			out.Stuck++
			return
		}
		out.Begun++
	})
	return out
}

// withoutLeaving is a partition's replica list with another broker for each that leaves; nil when there are not enough.
func (d *decider) withoutLeaving(seed uint64, t *Topic, partition int32, leaves func(kafka.NodeID) bool) []kafka.NodeID {
	target := slices.Clone(t.Partitions[partition].Replicas)
	p := d.placer(seed, t.Partitions)
	for i, n := range target {
		if !leaves(n) {
			continue
		}
		kept := slices.Delete(slices.Clone(target), i, i+1)
		to := p.add(partition, kept, d.rackOf)
		if to == kafka.NoNode {
			return nil
		}
		target[i] = to
	}
	return target
}

func (d *decider) rackOf(n kafka.NodeID) string {
	if b := d.Broker(n); b != nil {
		return b.Rack
	}
	return ""
}
