package metadata

import (
	"slices"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
)

// raiseInternal looks at every partition of the brokers' own topics. What was created on fewer brokers, or in fewer racks, follows the cluster.
func (d *decider) raiseInternal(ev RaiseInternal) MovesBegun {
	var out MovesBegun
	for _, t := range slices.Collect(d.Topics()) { // collected: moves change what is walked over
		if !t.Internal || t.State != StateReady {
			continue
		}
		d.raiseMinimum(t)
		room := ev.Max
		for p := range t.Partitions {
			if moving(&t.Partitions[p]) {
				room--
			}
		}
		for p := range t.Partitions {
			if out.Begun >= room {
				break
			}
			target := d.raised(ev, t, int32(p))
			if target == nil {
				continue
			}
			if d.move(d.TopicByID(t.ID), int32(p), target).OK() {
				out.Begun++
			} else {
				out.Stuck++
			}
		}
	}
	return out
}

// raised is the replica list that a partition should have, or nil when it should not be moved.
func (d *decider) raised(ev RaiseInternal, t *Topic, partition int32) []kafka.NodeID {
	s := &t.Partitions[partition]
	if moving(s) || s.Leader == kafka.NoNode {
		return nil
	}
	p := d.placer(ev.Seed^idSeed(t.ID), d.TopicByID(t.ID).Partitions)
	target := slices.Clone(s.Replicas)
	for len(target) < min(ev.Factor, len(p.brokers)) {
		n := p.add(partition, target, d.rackOf)
		if n == kafka.NoNode {
			break
		}
		target = append(target, n)
	}
	if len(target) > len(s.Replicas) {
		return target
	}
	return d.spread(p, partition, target)
}

// spread replaces one replica whose rack holds another one by a broker in a rack without any; nil when there is no such pair. The leader stays.
func (d *decider) spread(p *placer, partition int32, replicas []kafka.NodeID) []kafka.NodeID {
	racks := map[string]int{}
	for _, n := range replicas {
		racks[d.rackOf(n)]++
	}
	for i := len(replicas) - 1; i > 0; i-- {
		if racks[d.rackOf(replicas[i])] < 2 {
			continue
		}
		to := p.add(partition, replicas, d.rackOf)
		if to == kafka.NoNode || racks[d.rackOf(to)] > 0 {
			return nil
		}
		replicas[i] = to
		return replicas
	}
	return nil
}

// raiseMinimum gives a topic that has been raised to three replicas the default minimum of such topics. Not before: with two replicas, a minimum of
// two would stop the groups with one broker (I1).
func (d *decider) raiseMinimum(t *Topic) {
	if t.Configs[config.DefaultMinInsyncKey] != "1" {
		return
	}
	for p := range t.Partitions {
		if s := &t.Partitions[p]; moving(s) || len(s.Replicas) < 3 || len(s.ISR) < 2 {
			return
		}
	}
	two := "2"
	d.write(ConfigRecord{Topic: t.ID, Node: kafka.NoNode, Key: config.DefaultMinInsyncKey, Value: &two})
}
