package group

import (
	"iter"
	"maps"
	"slices"

	"strandline.dev/internal/kafka"
)

// change is a consumer group as a step would leave it. Decisions read and write the change; finish makes records of the difference, and
// Apply alone brings them into the hard state.
type change struct {
	*step
	g       *group
	c       *consumerGroup // hard state: not to be written
	catalog Catalog        // nil where topics play no part

	put     map[string]*consumerMember // copies of the members that differ; nil for one that is removed
	removed []string                   // those, in the order in which they were
	ids     []string                   // of all that are or were members, sorted; nil when not known
	epoch   MemberEpoch
	hash    int64
	why     string // of a new epoch

	targetEpoch MemberEpoch
	targets     map[string][]kafka.TopicPartition // that differ
}

func (x *step) change(g *group, catalog Catalog) *change {
	return x.changeOf(g, &g.consumer, catalog)
}

// changeOf begins a change of c, which is the group's hard state or what it becomes by records made before those of the change.
func (x *step) changeOf(g *group, c *consumerGroup, catalog Catalog) *change {
	return &change{
		step: x, g: g, c: c, catalog: catalog, put: map[string]*consumerMember{}, epoch: c.epoch, hash: c.hash, targetEpoch: c.targetEpoch,
		targets: map[string][]kafka.TopicPartition{},
	}
}

// member returns a member as it would be, nil when there is none.
func (d *change) member(id string) *consumerMember {
	if m, ok := d.put[id]; ok {
		return m
	}
	return d.c.members[id]
}

// edit returns a copy of a member to be changed, made when there is none.
func (d *change) edit(id string) *consumerMember {
	if m := d.put[id]; m != nil {
		return m
	}
	m := &consumerMember{id: id}
	if old := d.c.members[id]; old != nil {
		*m = *old
	} else {
		d.ids = nil
	}
	d.put[id] = m
	return m
}

// remove takes a member out with all that it holds. The caller begins a new epoch.
func (d *change) remove(id string) {
	d.put[id] = nil
	d.removed = append(d.removed, id)
}

// all visits the members as they would be, in the order of their ids.
func (d *change) all() iter.Seq[*consumerMember] {
	if d.ids == nil {
		d.ids = slices.AppendSeq(slices.Collect(maps.Keys(d.c.members)), maps.Keys(d.put))
		slices.Sort(d.ids)
		d.ids = slices.Compact(d.ids)
	}
	return func(yield func(*consumerMember) bool) {
		for _, id := range d.ids {
			if m := d.member(id); m != nil && !yield(m) {
				return
			}
		}
	}
}

// size is the number of members as it would be.
func (d *change) size() int {
	n := len(d.c.members)
	for id, m := range d.put {
		_, was := d.c.members[id]
		switch {
		case m != nil && !was:
			n++
		case m == nil && was:
			n--
		}
	}
	return n
}

// bump begins a new epoch, at most one in a step.
func (d *change) bump(why string) {
	if d.epoch == d.c.epoch {
		d.epoch++
		d.why = why
	}
}

// target is what a member is to have.
func (d *change) target(id string) []kafka.TopicPartition {
	if t, ok := d.targets[id]; ok {
		return t
	}
	return d.c.targets[id]
}

// isFree says whether nobody but the member holds a partition (I7).
func (d *change) isFree(tp kafka.TopicPartition, id string) bool {
	owner, held := d.c.owners[tp]
	if !held || owner == id {
		return true
	}
	m, changed := d.put[owner]
	if !changed {
		return false
	}
	if m == nil {
		return true
	}
	_, holds := m.since(tp)
	return !holds
}

// finish makes the records. Of a step that begins an epoch every prefix is a safe state: the epoch goes first, so that a coordinator that takes
// over assigns anew whatever else is missing; what a member holds goes last, and is freed before its member is forgotten. Other steps are small
// and the shell keeps them whole: a new process of a static member takes over a target that no epoch would assign again.
func (d *change) finish() {
	if d.epoch != d.c.epoch || d.hash != d.c.hash || !d.c.isStored {
		d.record(d.g, consumerEpochRecord(d.g.id, d.epoch, d.hash, d.stampMs()))
	}
	for _, id := range d.removed {
		if d.put[id] == nil {
			d.forget(id)
		}
	}
	for id, m := range sorted(d.put) {
		old := d.c.members[id]
		if m != nil && (old == nil || !old.isSubscribed || !old.isSame(&m.subscription)) {
			d.record(d.g, consumerMemberRecord(d.g.id, m))
		}
	}
	for id, target := range sorted(d.targets) {
		if !slices.Equal(target, d.c.targets[id]) {
			d.record(d.g, consumerTargetRecord(d.g.id, id, target))
		}
	}
	if d.targetEpoch != d.c.targetEpoch || !d.c.hasTarget && d.targetEpoch > 0 {
		d.record(d.g, consumerTargetEpochRecord(d.g.id, d.targetEpoch))
	}
	for id, m := range sorted(d.put) {
		if m != nil && !m.holdsAs(d.c.members[id]) {
			d.record(d.g, consumerCurrentRecord(d.g.id, m))
		}
	}
	if d.why != "" {
		d.note(d.g, Note{Kind: RebalanceStarted, Generation: Generation(d.epoch), Why: d.why})
	}
}

// forget makes the tombstones of a member that is out.
func (d *change) forget(id string) {
	if old := d.c.members[id]; old != nil {
		d.record(d.g, KV{Key: consumerKey(consumerCurrentKey, d.g.id, id)})
	}
	if _, ok := d.c.targets[id]; ok {
		d.record(d.g, KV{Key: consumerKey(consumerTargetKey, d.g.id, id)})
	}
	d.record(d.g, KV{Key: consumerKey(consumerMemberKey, d.g.id, id)})
}

// holdsAs says whether the record of what the member holds is as it is.
func (m *consumerMember) holdsAs(old *consumerMember) bool {
	return old != nil && m.epoch == old.epoch && m.previous == old.previous && m.state == old.state &&
		maps.Equal(m.assigned, old.assigned) && maps.Equal(m.revoked, old.revoked)
}
