package metadata

import (
	"cmp"
	"slices"

	"strandline.dev/internal/kafka"
)

// placer spreads the replicas of new partitions: over racks first, then evenly over brokers within the topic, then by what the brokers hold
// already. Ties are broken by the seed, so that one-partition topics do not pile up on one broker.
type placer struct {
	seed    uint64
	brokers []placed
}

// placed is a broker and what it would hold.
type placed struct {
	id           kafka.NodeID
	rack         string
	here, before load // in this topic, and of all others
}

// placer knows the brokers that can take a new replica: unfenced, and to stay. Existing partitions of the topic count as its own.
func (d *decider) placer(seed uint64, existing []kafka.PartitionState) *placer {
	p := &placer{seed: seed}
	for b := range d.Brokers() {
		if b.Fenced || d.leaving(b.ID) || len(b.Roles) > 0 && !slices.Contains(b.Roles, "broker") {
			continue
		}
		c := placed{id: b.ID, rack: b.Rack, before: d.loads[b.ID]}
		for _, s := range existing {
			if has(s.Replicas, b.ID) {
				c.here.replicas++
			}
			if s.Leader == b.ID {
				c.here.leaders++
			}
		}
		p.brokers = append(p.brokers, c)
	}
	return p
}

// racks counts the racks of the brokers.
func (p *placer) racks() int {
	seen := map[string]bool{}
	for _, b := range p.brokers {
		seen[b.rack] = true
	}
	return len(seen)
}

// place picks the replicas of one partition, preferred leader first. There must be rf brokers.
func (p *placer) place(partition int32, rf int) []kafka.NodeID {
	var chosen []kafka.NodeID
	racks := map[string]int{}
	for slot := range rf {
		best := -1
		for i := range p.brokers {
			if has(chosen, p.brokers[i].id) {
				continue
			}
			if best < 0 || p.compare(&p.brokers[i], &p.brokers[best], slot == 0, racks, partition) < 0 {
				best = i
			}
		}
		b := &p.brokers[best]
		chosen = append(chosen, b.id)
		racks[b.rack]++
		b.here.replicas++
		if slot == 0 {
			b.here.leaders++
		}
	}
	return chosen
}

// add picks one more broker for a partition that others hold, or returns NoNode when there is none.
func (p *placer) add(partition int32, kept []kafka.NodeID, rackOf func(kafka.NodeID) string) kafka.NodeID {
	racks := map[string]int{}
	for _, n := range kept {
		racks[rackOf(n)]++
	}
	best := -1
	for i := range p.brokers {
		if !has(kept, p.brokers[i].id) && (best < 0 || p.compare(&p.brokers[i], &p.brokers[best], false, racks, partition) < 0) {
			best = i
		}
	}
	if best < 0 {
		return kafka.NoNode
	}
	p.brokers[best].here.replicas++
	return p.brokers[best].id
}

func (p *placer) compare(a, b *placed, leader bool, racks map[string]int, partition int32) int {
	byLeaders := 0
	if leader {
		byLeaders = cmp.Or(cmp.Compare(a.here.leaders, b.here.leaders), cmp.Compare(a.before.leaders, b.before.leaders))
	}
	return cmp.Or(
		cmp.Compare(racks[a.rack], racks[b.rack]),
		byLeaders,
		cmp.Compare(a.here.replicas, b.here.replicas),
		cmp.Compare(a.before.replicas, b.before.replicas),
		cmp.Compare(mix(p.seed, uint64(partition), uint64(a.id)), mix(p.seed, uint64(partition), uint64(b.id))),
	)
}

// mix scatters three numbers (the finalizer of splitmix64).
func mix(seed, a, b uint64) uint64 {
	z := seed + a*0x9e3779b97f4a7c15 + b*0xbf58476d1ce4e5b9
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
