package group

import "strandline.dev/internal/kafka"

// fetch decides on an OffsetFetch. Where nothing is stored the answer is offset -1 and no error, also for a group that does not
// exist (I8: never a guess). An offset that was stored under another topic id belongs to a topic that is gone.
func (x *step) fetch(ev *FetchOffsets) {
	r := &FetchReply{}
	g := x.groups[ev.Group]
	switch {
	case len(ev.Group) > groupIDBytesMax:
		r.Code = kafka.InvalidGroupID
	case x.awaitsGrowth(ev.Group):
		r.Code = kafka.CoordinatorLoadInProgress // in a moment; "no offset" would let it skip records (R62)
	case g != nil && ev.Member != nil && g.consumer.isThere() && g.consumer.mayFetch(ev.Member) != kafka.None:
		r.Code = g.consumer.mayFetch(ev.Member)
	case !ev.All:
		for _, t := range ev.Topics {
			r.Topics = append(r.Topics, fetchTopic(g, t))
		}
	case g != nil:
		r.Topics = fetchAll(g, ev.CurrentID)
	}
	x.replyAfterCommit(ev.Token, r)
}

func fetchTopic(g *group, t FetchTopic) FetchedTopic {
	out := FetchedTopic{Name: t.Name, ID: t.ID, Partitions: make([]FetchedPartition, len(t.Partitions))}
	for i, p := range t.Partitions {
		out.Partitions[i] = FetchedPartition{Partition: p, Offset: kafka.NoOffset, LeaderEpoch: kafka.NoEpoch}
		if g == nil {
			continue
		}
		if c, ok := g.offsets[t.Name][p]; ok && c.isOf(t.ID) {
			out.Partitions[i] = c.fetched(p)
		}
	}
	return out
}

func fetchAll(g *group, currentID func(string) kafka.TopicID) []FetchedTopic {
	var out []FetchedTopic
	for name, partitions := range sorted(g.offsets) {
		t := FetchedTopic{Name: name, ID: currentID(name)}
		for p, c := range sorted(partitions) {
			if c.isOf(t.ID) {
				t.Partitions = append(t.Partitions, c.fetched(p))
			}
		}
		if len(t.Partitions) > 0 {
			out = append(out, t)
		}
	}
	return out
}

func (c committed) fetched(partition int32) FetchedPartition {
	return FetchedPartition{Partition: partition, Offset: c.offset, LeaderEpoch: c.epoch, Metadata: c.metadata}
}
