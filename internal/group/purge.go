package group

import "strandline.dev/internal/kafka"

// topicsDeleted removes the offsets that were stored under the ids of purged topics, a batch at a time.
func (x *step) topicsDeleted(ids []kafka.TopicID) {
	gone := make(map[kafka.TopicID]bool, len(ids))
	for _, id := range ids {
		gone[id] = !id.IsZero()
	}
	for name, g := range sorted(x.groups) {
		for p, o := range g.sortedOffsets() {
			if gone[o.topic] {
				x.purge = append(x.purge, offsetRef{group: name, topic: p.topic, partition: p.partition, id: o.topic})
			}
		}
		for p, o := range sortedPartitions(g.undo) {
			if gone[o.topic] {
				x.purge = append(x.purge, offsetRef{group: name, topic: p.topic, partition: p.partition, id: o.topic, isUndo: true})
			}
		}
	}
	x.forgetWidths(ids)
	x.purgeSome()
}

// purgeSome makes one batch of what is to be purged. What has changed since it was listed stays.
func (x *step) purgeSome() {
	for len(x.purge) > 0 && len(x.out.Records) < recordsMax {
		ref := x.purge[0]
		x.purge = x.purge[1:]
		g := x.find(ref.group)
		if g == nil {
			continue
		}
		p := topicPartition{ref.topic, ref.partition}
		if o, ok := g.undo[p]; ref.isUndo && ok && o.topic == ref.id {
			x.record(g, KV{Key: undoKey(g.id, p)})
		}
		if o, ok := g.offsets[ref.topic][ref.partition]; !ref.isUndo && ok && o.topic == ref.id {
			x.record(g, offsetTombstone(g.id, p))
		}
	}
	if len(x.purge) > 0 {
		x.arm(&x.purging, 0)
		return
	}
	x.purge = nil
}
