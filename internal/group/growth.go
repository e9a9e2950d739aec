package group

import (
	"slices"

	"strandline.dev/internal/kafka"
)

// A partition that is added to a topic has no committed offset in any group, and a consumer that starts at the end where there is none
// would skip what was written into it before it noticed (R62). So for every group that follows the topic at that moment the coordinator
// commits the start of the new partitions: they are read from their first record, whatever the consumer's policy is.
//
// The shard keeps how many partitions it knows of each topic in its log (a width), so that a growth is seen by whichever coordinator
// comes next. The width is written behind the last of the commits: a shard that was interrupted does it again. Until a group has
// its commits its fetches are answered with a retriable error, never with "no offset".

// width is how many partitions of a topic the shard knows.
type width struct {
	name  string
	count int32
}

// growth is a topic that has grown, with the groups that are still to get their commits.
type growth struct {
	Widened
	groups []string
}

// topicsWidened takes in that topics have more partitions than before.
func (x *step) topicsWidened(ev *TopicsWidened) {
	topics := slices.Clone(ev.Topics)
	for id, w := range x.widths {
		if n := ev.widthOf(id); n > w.count {
			topics = append(topics, Widened{Name: w.name, ID: id, From: w.count, To: n})
		}
	}
	slices.SortFunc(topics, func(a, b Widened) int { return slices.Compare(a.ID[:], b.ID[:]) })
	for _, t := range topics {
		known, isKnown := x.widths[t.ID]
		if isKnown {
			t.From = known.count
		}
		isListed := slices.ContainsFunc(x.growing, func(g growth) bool { return g.ID == t.ID && g.To >= t.To })
		if t.To <= t.From || isListed || len(x.growing) >= growthsMax {
			continue // what does not fit is found again by its width, with the next event
		}
		grown := growth{Widened: t}
		for name, g := range sorted(x.groups) {
			if g.follows(t.Name, t.ID, ev.Catalog) {
				grown.groups = append(grown.groups, name)
			}
		}
		if isKnown || len(grown.groups) > 0 {
			x.growing = append(x.growing, grown)
		}
	}
	x.growSome()
}

func (ev *TopicsWidened) widthOf(id kafka.TopicID) int32 {
	if ev.Width == nil {
		return 0
	}
	return ev.Width(id)
}

// growSome makes one batch of the commits, and the width of a topic behind its last one.
func (x *step) growSome() {
	for len(x.growing) > 0 && len(x.out.Records) < recordsMax {
		t := &x.growing[0]
		if len(t.groups) == 0 {
			x.out.Records = append(x.out.Records, widthRecord(t.ID, width{t.Name, t.To}))
			x.growing = x.growing[1:]
			continue
		}
		if g := x.find(t.groups[0]); g != nil {
			x.grow(g, &t.Widened)
		}
		t.groups = t.groups[1:]
	}
	if len(x.growing) > 0 {
		x.arm(&x.growTimer, 0)
	}
}

// grow commits the start of the new partitions of one group. What is committed already stays.
func (x *step) grow(g *group, t *Widened) {
	added := 0
	for p := t.From; p < t.To; p++ {
		if o, ok := g.offsets[t.Name][p]; ok && o.isOf(t.ID) {
			continue
		}
		start := committed{offset: 0, epoch: kafka.NoEpoch, atMs: x.stampMs(), topic: t.ID}
		x.record(g, KV{Key: offsetKey(g.id, topicPartition{t.Name, p}), Value: start.value()})
		added++
	}
	if added > 0 {
		x.note(g, Note{Kind: PartitionsAdded, Topic: t.Name, Partition: t.From, Count: added})
	}
}

// awaitsGrowth says whether a group is still to get commits for new partitions.
func (s *Shard) awaitsGrowth(id string) bool {
	return slices.ContainsFunc(s.growing, func(t growth) bool { return slices.Contains(t.groups, id) })
}

// noteWidth makes a topic known with the first offset that is committed in it.
func (x *step) noteWidth(t *CommitTopic) {
	if _, isKnown := x.widths[t.ID]; isKnown || t.Width <= 0 || t.ID.IsZero() {
		return
	}
	x.out.Records = append(x.out.Records, widthRecord(t.ID, width{t.Name, t.Width}))
}

// forgetWidths removes what is known of purged topics.
func (x *step) forgetWidths(ids []kafka.TopicID) {
	for _, id := range ids {
		if _, isKnown := x.widths[id]; isKnown {
			x.out.Records = append(x.out.Records, KV{Key: widthKey(id)})
		}
		x.growing = slices.DeleteFunc(x.growing, func(t growth) bool { return t.ID == id })
	}
}

// follows says whether a group reads a topic, as far as its offsets and its members tell.
func (g *group) follows(name string, id kafka.TopicID, catalog Catalog) bool {
	for _, o := range g.offsets[name] {
		if o.topic == id {
			return true
		}
	}
	if len(g.consumer.members) > 0 {
		return g.consumer.reads(catalog)(name)
	}
	c := &g.classic
	return c.phase != empty && c.protocolType == consumerType && c.reads()(name)
}
