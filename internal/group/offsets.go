package group

import (
	"time"

	"strandline.dev/internal/kafka"
)

// ListOffsets asks for all that groups have committed, with whether they have members. The reply is an OffsetsReply.
type ListOffsets struct {
	Token uint64
	// Group is the one to be listed; "" lists all, in the order of their names behind After, until Limit offsets are there.
	Group, After string
	Limit        int
	// CurrentID gives the id that a topic name has now; the zero id when there is no such topic.
	CurrentID func(topic string) kafka.TopicID
}

func (ListOffsets) isEvent() {}

// OffsetsReply ends a ListOffsets. More says that there are further groups.
type OffsetsReply struct {
	Groups []GroupOffsets
	More   bool
}

// GroupOffsets is one group.
type GroupOffsets struct {
	Group   string
	Members int
	Offsets []StoredOffset
	// Undo is what the last seek replaced, of topics that exist; Offset is NoOffset where nothing was stored.
	Undo []StoredOffset
}

// StoredOffset is a committed offset.
type StoredOffset struct {
	Topic     string
	ID        kafka.TopicID
	Partition int32
	Offset    kafka.Offset
	Since     time.Duration // since it was committed, by whichever clock says less
}

// listOffsets decides on a ListOffsets.
func (x *step) listOffsets(ev *ListOffsets) {
	r := &OffsetsReply{}
	if g := x.groups[ev.Group]; ev.Group != "" && g != nil {
		r.Groups = append(r.Groups, x.offsetsOf(g, ev.CurrentID))
	}
	listed := 0
	for id, g := range sorted(x.groups) {
		if ev.Group != "" || listed >= ev.Limit {
			r.More = ev.Group == ""
			break
		}
		if id > ev.After && len(g.offsets) > 0 {
			r.Groups = append(r.Groups, x.offsetsOf(g, ev.CurrentID))
			listed += len(r.Groups[len(r.Groups)-1].Offsets)
		}
	}
	if ev.Group == "" {
		x.reply(ev.Token, r) // for the metrics, every 10 s: it confirms nothing to anybody, so it waits for no mark (decision 0018)
		return
	}
	x.replyAfterCommit(ev.Token, r)
}

func (x *step) offsetsOf(g *group, currentID func(string) kafka.TopicID) GroupOffsets {
	out := GroupOffsets{Group: g.id, Members: g.memberCount()}
	add := func(list []StoredOffset, p topicPartition, o committed) []StoredOffset {
		id := currentID(p.topic)
		if id.IsZero() || !o.isOf(id) {
			return list
		}
		return append(list, StoredOffset{Topic: p.topic, ID: id, Partition: p.partition, Offset: o.offset, Since: max(x.age(o.atMs), 0)})
	}
	for p, o := range g.sortedOffsets() {
		out.Offsets = add(out.Offsets, p, o)
	}
	for p, o := range sortedPartitions(g.undo) {
		out.Undo = add(out.Undo, p, o)
	}
	return out
}

// memberCount is how many members the group has.
func (g *group) memberCount() int { return len(g.classic.members) + len(g.consumer.members) }
