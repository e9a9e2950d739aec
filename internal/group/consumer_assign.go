package group

import (
	"bytes"
	"maps"
	"slices"

	"strandline.dev/internal/kafka"
)

// The assignors of this package, by the names that members ask for.
const (
	uniformAssignor = "uniform"
	rangeAssignor   = "range"
)

// assignor gives each member of a group its partitions. Members are sorted by id.
type assignor func(members []assignable, partitions map[kafka.TopicID]int32) map[string][]kafka.TopicPartition

var assignors = map[string]assignor{uniformAssignor: assignUniform, rangeAssignor: assignRange}

// assignable is a member as an assignor sees it.
type assignable struct {
	id, instance string
	topics       *topicSet
	has          []kafka.TopicPartition // its target until now
}

// topicSet is what a subscription comes to. Members that ask for the same share it.
type topicSet struct {
	sorted []kafka.TopicID
	set    map[kafka.TopicID]struct{}
}

// assign makes a target for the newest epoch, when there is none.
func (d *change) assign() {
	if d.targetEpoch == d.epoch {
		return
	}
	partitions := map[kafka.TopicID]int32{}
	shared := map[string]*topicSet{}
	var members []assignable
	for m := range d.all() {
		key := m.key()
		if shared[key] == nil {
			shared[key] = d.topicSet(&m.subscription, partitions)
		}
		members = append(members, assignable{id: m.id, instance: m.instance, topics: shared[key], has: d.target(m.id)})
	}
	given := assignors[d.assignor()](members, partitions)
	for _, m := range members {
		target := given[m.id]
		slices.SortFunc(target, comparePartitions)
		if _, has := d.c.targets[m.id]; !has || !slices.Equal(target, d.c.targets[m.id]) {
			if target == nil {
				target = []kafka.TopicPartition{}
			}
			d.targets[m.id] = target
		} else {
			delete(d.targets, m.id)
		}
	}
	d.targetEpoch = d.epoch
}

// topicSet resolves a subscription by the catalog; it counts the partitions of what it finds.
func (d *change) topicSet(s *subscription, partitions map[kafka.TopicID]int32) *topicSet {
	t := &topicSet{set: map[kafka.TopicID]struct{}{}}
	for _, name := range d.names(s) {
		if id, n, ok := d.catalog.Topic(name); ok {
			t.set[id] = struct{}{}
			partitions[id] = n
		}
	}
	t.sorted = slices.SortedFunc(maps.Keys(t.set), func(a, b kafka.TopicID) int { return bytes.Compare(a[:], b[:]) })
	return t
}

// names are the topics that a subscription asks for, by name and by expression.
func (d *change) names(s *subscription) []string {
	if s.pattern == "" {
		return s.topics
	}
	return append(slices.Clone(s.topics), d.catalog.Matching(s.pattern, s.reader)...)
}

// hashTopics is a number for the topics that the members read: their names, ids and partitions, and who sees which (FNV-1a).
func (d *change) hashTopics() int64 {
	asked := map[string]struct{}{}
	done := map[string]struct{}{}
	narrowed := map[string][]string{} // what those whose expression does not match all see
	for m := range d.all() {
		key := m.key()
		if _, again := done[key]; again {
			continue
		}
		done[key] = struct{}{}
		names := d.names(&m.subscription)
		for _, name := range names {
			asked[name] = struct{}{}
		}
		if m.reader != "" {
			narrowed[key] = names
		}
	}
	h := uint64(14695981039346656037)
	add := func(parts ...string) {
		for _, part := range parts {
			for i := range len(part) {
				h = (h ^ uint64(part[i])) * 1099511628211
			}
		}
	}
	for name := range sorted(asked) {
		id, n, ok := d.catalog.Topic(name)
		if !ok {
			continue
		}
		add(name, "\x00", string(id[:]), string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}))
	}
	for key := range sorted(narrowed) { // a right that goes from one reader changes what it is to read, though others read the topic still
		add(key, "\x00")
		for _, name := range narrowed[key] {
			add(name, "\x00")
		}
	}
	return int64(h)
}

// assignor is the one that most members ask for, of those the one that is configured first; without a wish the first.
func (d *change) assignor() string {
	votes := map[string]int{}
	for m := range d.all() {
		votes[m.subscription.assignor]++
	}
	chosen := d.cfg.Assignors[0]
	for _, name := range d.cfg.Assignors {
		if votes[name] > votes[chosen] {
			chosen = name
		}
	}
	return chosen
}
