package metadata

import (
	"maps"
	"slices"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
)

// draft is an Image under construction. Everything it changes it has copied first, once; what is shared with other Images stays untouched.
type draft struct {
	Image
	own *owner
	// mine are the topics that were copied by this draft and may be changed in place.
	mine       map[kafka.TopicID]*Topic
	ownLoads   bool
	ownBrokers bool
}

func (i *Image) draft() *draft {
	return &draft{Image: *i, own: &owner{}, mine: map[kafka.TopicID]*Topic{}}
}

// change returns a copy of the topic that may be changed, or nil if there is no such topic. Configs must be cloned before a write.
func (d *draft) change(id kafka.TopicID) *Topic {
	if t := d.mine[id]; t != nil {
		return t
	}
	old := d.TopicByID(id)
	if old == nil {
		return nil
	}
	t := *old
	t.Partitions = slices.Clone(old.Partitions)
	d.mine[id] = &t
	d.topics.set(d.own, id, &t)
	switch t.State {
	case StateCreating, StateReady:
		if d.Topic(t.Name) == old {
			d.names.set(d.own, t.Name, &t)
		}
	case StateDeleted:
		d.trash.set(d.own, t.trashKey(), &t)
	}
	return &t
}

func (t *Topic) trashKey() trashKey {
	return trashKey{t.Name, t.DeletedAt.UnixMilli(), t.ID}
}

// enter puts a topic under its name.
func (d *draft) enter(t *Topic) {
	d.names.set(d.own, t.Name, t)
	if c := canonicalName(t.Name); hasLookalikes(t.Name) {
		d.alike.set(d.own, c, t.ID)
	}
}

// leaveNames takes a topic from its name.
func (d *draft) leaveNames(t *Topic) {
	d.names.remove(d.own, t.Name)
	if c := canonicalName(t.Name); hasLookalikes(t.Name) {
		d.alike.remove(d.own, c)
	}
}

// forget removes the last trace of a topic.
func (d *draft) forget(id kafka.TopicID) {
	d.topics.remove(d.own, id)
	delete(d.mine, id)
}

func (d *draft) changeBrokers() {
	if !d.ownBrokers {
		d.brokers, d.ownBrokers = slices.Clone(d.brokers), true
	}
}

// count adds a partition to the loads of its brokers, or with sign -1 takes it off.
func (d *draft) count(s *kafka.PartitionState, sign int) {
	if !d.ownLoads {
		if d.loads = maps.Clone(d.loads); d.loads == nil {
			d.loads = map[kafka.NodeID]load{}
		}
		d.ownLoads = true
	}
	for _, r := range s.Replicas {
		l := d.loads[r]
		l.replicas += sign
		if r == s.Leader {
			l.leaders += sign
		}
		if d.loads[r] = l; l == (load{}) {
			delete(d.loads, r)
		}
	}
}

// minInsync is the topic's min.insync.replicas: what is set, else the default that was resolved at creation.
func (t *Topic) minInsync() int32 {
	for _, key := range []string{config.MinInsyncKey, config.DefaultMinInsyncKey} {
		if n, ok := parsePositive(t.Configs[key]); ok {
			return n
		}
	}
	return 1
}

// settle derives what no record carries. I1: the effective minimum follows config and replica set in the Apply that changes them. I4: with
// the effective minimum in sync the high watermark can advance without the ELR, so its members may not lead any more.
func settle(s *kafka.PartitionState, minInsync int32) {
	s.EffectiveMinISR = min(minInsync, int32(len(s.Replicas)-len(s.Adding)))
	if int32(len(s.ISR)) >= s.EffectiveMinISR {
		s.ELR = nil
	}
}
