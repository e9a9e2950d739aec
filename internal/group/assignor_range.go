package group

import (
	"cmp"
	"slices"

	"strandline.dev/internal/kafka"
)

// assignRange gives each reader of a topic one run of its partitions, in the order of instance ids or member ids, so that members that
// read the same topics get the same numbers of each.
func assignRange(members []assignable, partitions map[kafka.TopicID]int32) map[string][]kafka.TopicPartition {
	order := slices.Clone(members)
	name := func(m assignable) string { return cmp.Or(m.instance, m.id) }
	slices.SortFunc(order, func(a, b assignable) int {
		return cmp.Or(cmp.Compare(name(a), name(b)), cmp.Compare(a.id, b.id))
	})
	readers := map[kafka.TopicID][]string{}
	for _, m := range order {
		for _, id := range m.topics.sorted {
			readers[id] = append(readers[id], m.id)
		}
	}
	out := map[string][]kafka.TopicPartition{}
	for id, who := range readers {
		quota, extra, next := int(partitions[id])/len(who), int(partitions[id])%len(who), int32(0)
		for i, member := range who {
			n := quota
			if i < extra {
				n++
			}
			for range n {
				out[member] = append(out[member], kafka.TopicPartition{Topic: id, Partition: next})
				next++
			}
		}
	}
	return out
}
