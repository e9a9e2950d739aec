package metadata

import (
	"slices"
	"time"

	"strandline.dev/internal/kafka"
)

func (d *draft) applyTopic(r TopicRecord) error {
	switch {
	case r.ID.IsZero() || r.ID == kafka.MetadataPartition.Topic || d.TopicByID(r.ID) != nil:
		return bad("topic %q: id %s is taken", r.Name, r.ID)
	case r.Name == "" || r.Partitions < 1:
		return bad("topic %q with %d partitions", r.Name, r.Partitions)
	}
	t := &Topic{
		ID: r.ID, Name: r.Name, Owner: r.Owner, State: StateCreating, Created: time.UnixMilli(r.CreatedMs).UTC(), Internal: r.Internal,
		expected: r.Partitions, Configs: map[string]string{},
	}
	if !r.Unnamed {
		if d.Topic(r.Name) != nil {
			return bad("topic %q: the name is taken", r.Name)
		}
		d.enter(t)
	}
	d.mine[r.ID] = t
	d.topics.set(d.own, r.ID, t)
	return nil
}

func (d *draft) applyPartition(r PartitionRecord) error {
	t := d.change(r.Topic)
	if t == nil || t.State == StatePurging {
		return bad("partition %d of topic %s, which is not there", r.Partition, r.Topic)
	}
	s := r.State
	if why := stateFault(&s); why != "" {
		return bad("partition %d of %s: %s", r.Partition, t.Name, why)
	}
	settle(&s, t.minInsync())
	switch n := int32(len(t.Partitions)); {
	case r.Partition < 0 || r.Partition > n:
		return bad("partition %d of %s, which has %d", r.Partition, t.Name, n)
	case r.Partition == n:
		t.Partitions = append(t.Partitions, s)
		d.partitions++
	default:
		old := t.Partitions[r.Partition]
		if why := stepFault(&old, &s); why != "" {
			return bad("partition %d of %s: %s", r.Partition, t.Name, why)
		}
		d.count(&old, -1)
		d.moved(t, r.Partition, old.Replicas, s.Replicas)
		t.Partitions[r.Partition] = s
	}
	d.count(&s, 1)
	return nil
}

// stateFault says why a partition can never be in a state, or "".
func stateFault(s *kafka.PartitionState) string {
	within := func(list []kafka.NodeID) bool {
		for i, n := range list {
			if slices.Contains(list[:i], n) || !slices.Contains(s.Replicas, n) {
				return false
			}
		}
		return true
	}
	switch {
	case len(s.Replicas) == 0 || !within(s.Replicas) || slices.Min(s.Replicas) < 0:
		return "replicas are empty, repeated or negative"
	case !within(s.ISR) || !within(s.ELR) || !within(s.LastKnown) || !within(s.Adding) || !within(s.Removing):
		return "a list has a node that is no replica, or has one twice"
	case slices.ContainsFunc(s.ISR, func(n kafka.NodeID) bool { return slices.Contains(s.ELR, n) }):
		return "a node is in ISR and ELR"
	case len(s.Adding) >= len(s.Replicas):
		return "every replica is being added"
	case s.Leader != kafka.NoNode && !slices.Contains(s.ISR, s.Leader): // I4
		return "the leader is not in the ISR"
	case s.LeaderEpoch < 0 || s.PartitionEpoch < 0:
		return "an epoch is negative"
	}
	return ""
}

// stepFault says why one state cannot follow another, or "". I3: a change of leader has a new leader epoch; epochs only rise.
func stepFault(old, next *kafka.PartitionState) string {
	switch {
	case next.PartitionEpoch <= old.PartitionEpoch:
		return "the partition epoch does not rise"
	case next.LeaderEpoch < old.LeaderEpoch:
		return "the leader epoch goes back"
	case next.Leader != old.Leader && next.LeaderEpoch == old.LeaderEpoch:
		return "another leader in the same leader epoch"
	}
	return ""
}

// moved keeps the purges of a partition whose replica set changed: a replica that left deletes its directory, one that came back keeps it.
func (d *draft) moved(t *Topic, partition int32, old, next []kafka.NodeID) {
	for _, n := range old {
		if !slices.Contains(next, n) {
			d.addPurge(purgeKey{n, t.ID, partition})
		}
	}
	for _, n := range next {
		if !slices.Contains(old, n) {
			d.donePurge(purgeKey{n, t.ID, partition})
		}
	}
}

func (d *draft) applyTopicState(r TopicStateRecord) error {
	t := d.change(r.ID)
	if t == nil {
		return bad("state of an unknown topic %s", r.ID)
	}
	if r.State != StatePurging && int32(len(t.Partitions)) < t.expected { // visible only when whole (R2)
		return bad("topic %s has %d of %d partitions", t.Name, len(t.Partitions), t.expected)
	}
	if r.Version < t.Version {
		return bad("topic %s: version %d after %d", t.Name, r.Version, t.Version)
	}
	old := t.State
	t.expected = 0
	switch {
	case r.State == StateReady && (old == StateCreating || old == StateReady):
	case r.State == StateReady && old == StateDeleted:
		return d.restore(t, r)
	case r.State == StateDeleted && (old == StateReady || old == StateCreating):
		if d.Topic(t.Name) == t { // an Unnamed topic of a snapshot has no name to leave
			d.leaveNames(t)
		}
		t.State, t.Version = StateDeleted, r.Version
		t.DeletedAt, t.PurgeAt, t.DeletedBy = time.UnixMilli(r.AtMs).UTC(), time.UnixMilli(r.PurgeAtMs).UTC(), r.DeletedBy
		d.trash.set(d.own, t.trashKey(), t)
		return nil
	case r.State == StatePurging && old != StatePurging:
		d.purge(t, r)
		return nil
	default:
		return bad("topic %s: from %s to %s", t.Name, old, r.State)
	}
	t.State, t.Version = r.State, r.Version
	return nil
}

// restore takes a topic from the trash.
func (d *draft) restore(t *Topic, r TopicStateRecord) error {
	name := t.Name
	if r.Name != "" {
		name = r.Name
	}
	if d.Topic(name) != nil {
		return bad("topic %s: the name %s is taken", t.ID, name)
	}
	d.trash.remove(d.own, t.trashKey())
	t.Name, t.State, t.Version = name, StateReady, r.Version
	t.DeletedAt, t.PurgeAt, t.DeletedBy = time.Time{}, time.Time{}, ""
	d.enter(t)
	return nil
}

// purge takes a topic from names and trash and asks every replica to delete its directory (I10).
func (d *draft) purge(t *Topic, r TopicStateRecord) {
	switch {
	case t.State == StateDeleted:
		d.trash.remove(d.own, t.trashKey())
	case d.Topic(t.Name) == t:
		d.leaveNames(t)
	}
	t.State, t.Version = StatePurging, r.Version
	t.DeletedAt, t.PurgeAt = time.UnixMilli(r.AtMs).UTC(), time.UnixMilli(r.PurgeAtMs).UTC()
	t.DeletedBy = r.DeletedBy
	d.partitions -= len(t.Partitions)
	for p := range t.Partitions {
		d.count(&t.Partitions[p], -1)
		for _, n := range t.Partitions[p].Replicas {
			d.addPurge(purgeKey{n, t.ID, int32(p)})
		}
	}
	if t.pending == 0 {
		d.forget(t.ID)
	}
}

func (d *draft) applyReplicaPurge(r ReplicaPurgeRecord) error {
	key := purgeKey{r.Node, r.Topic, r.Partition}
	if r.Done {
		d.donePurge(key)
		return nil
	}
	if d.TopicByID(r.Topic) == nil {
		return bad("purge of a replica of an unknown topic %s", r.Topic)
	}
	d.addPurge(key)
	return nil
}

func (d *draft) addPurge(k purgeKey) {
	if _, twice := d.purges.get(k); twice {
		return
	}
	d.purges.set(d.own, k, struct{}{})
	if t := d.change(k.topic); t != nil {
		t.pending++
	}
}

// donePurge takes off a pending purge; the last one of a purged topic removes the topic.
func (d *draft) donePurge(k purgeKey) {
	if _, ok := d.purges.get(k); !ok {
		return
	}
	d.purges.remove(d.own, k)
	t := d.change(k.topic)
	if t == nil {
		return
	}
	if t.pending--; t.pending == 0 && t.State == StatePurging {
		d.forget(t.ID)
	}
}
