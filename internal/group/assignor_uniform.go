package group

import (
	"cmp"
	"slices"

	"strandline.dev/internal/kafka"
)

// balancePassesMax bounds how often the balancing of members with different subscriptions goes over them all. Each pass moves partitions
// from members that have too many; a few are enough in practice, and what is left after them is still a valid assignment.
const balancePassesMax = 16

// assignUniform gives every member nearly the same number of partitions, and leaves as many as it can where they are (R56).
func assignUniform(members []assignable, partitions map[kafka.TopicID]int32) map[string][]kafka.TopicPartition {
	if len(members) == 0 {
		return nil
	}
	u := newUniform(members, partitions)
	same := true
	for i := range members {
		same = same && members[i].topics == members[0].topics
	}
	if same {
		u.fillEqually()
	} else {
		u.fillLeast()
		u.balance()
	}
	out := make(map[string][]kafka.TopicPartition, len(members))
	for i, m := range members {
		out[m.id] = u.given[i]
	}
	return out
}

// uniform is an assignment in the making.
type uniform struct {
	members []assignable
	given   [][]kafka.TopicPartition // by index of member
	free    []kafka.TopicPartition
	readers map[kafka.TopicID][]int
}

// newUniform begins with what members have and may keep.
func newUniform(members []assignable, partitions map[kafka.TopicID]int32) *uniform {
	u := &uniform{members: members, given: make([][]kafka.TopicPartition, len(members)), readers: map[kafka.TopicID][]int{}}
	taken := map[kafka.TopicPartition]struct{}{}
	for i, m := range members {
		for _, id := range m.topics.sorted {
			u.readers[id] = append(u.readers[id], i)
		}
		for _, tp := range m.has {
			_, reads := m.topics.set[tp.Topic]
			_, twice := taken[tp]
			if reads && !twice && tp.Partition < partitions[tp.Topic] {
				taken[tp] = struct{}{}
				u.given[i] = append(u.given[i], tp)
			}
		}
	}
	for id := range u.readers {
		for p := range partitions[id] {
			tp := kafka.TopicPartition{Topic: id, Partition: p}
			if _, ok := taken[tp]; !ok {
				u.free = append(u.free, tp)
			}
		}
	}
	slices.SortFunc(u.free, func(a, b kafka.TopicPartition) int { // what few can read goes first
		return cmp.Or(cmp.Compare(len(u.readers[a.Topic]), len(u.readers[b.Topic])), comparePartitions(a, b))
	})
	return u
}

// fillEqually serves members that all read the same: each gets the quota, some one more. What a member has above it is freed.
func (u *uniform) fillEqually() {
	total := len(u.free)
	for _, g := range u.given {
		total += len(g)
	}
	quota, extra := total/len(u.given), total%len(u.given)
	limits := make([]int, len(u.given))
	for i, g := range u.given { // who has more keeps it, while some may
		limits[i] = quota
		if len(g) > quota && extra > 0 {
			limits[i]++
			extra--
		}
		if len(g) > limits[i] {
			u.free = append(u.free, g[limits[i]:]...)
			u.given[i] = g[:limits[i]:limits[i]]
		}
	}
	slices.SortFunc(u.free, comparePartitions)
	for i := range u.given {
		if limits[i] == quota && extra > 0 {
			limits[i]++
			extra--
		}
		n := min(limits[i]-len(u.given[i]), len(u.free))
		u.given[i] = append(u.given[i], u.free[:n]...)
		u.free = u.free[n:]
	}
}

// fillLeast gives each free partition to the reader with the fewest.
func (u *uniform) fillLeast() {
	for _, tp := range u.free {
		i := u.least(tp.Topic)
		u.given[i] = append(u.given[i], tp)
	}
	u.free = nil
}

// least is the reader of a topic that has the fewest partitions.
func (u *uniform) least(id kafka.TopicID) int {
	return slices.MinFunc(u.readers[id], func(a, b int) int { return cmp.Compare(len(u.given[a]), len(u.given[b])) })
}

// balance moves partitions to readers that have at least two fewer, until there are none.
func (u *uniform) balance() {
	for range balancePassesMax {
		moved := false
		for i := range u.given {
			for k := len(u.given[i]) - 1; k >= 0; k-- {
				tp := u.given[i][k]
				j := u.least(tp.Topic)
				if len(u.given[i])-len(u.given[j]) < 2 {
					continue
				}
				u.given[i] = slices.Delete(u.given[i], k, k+1)
				u.given[j] = append(u.given[j], tp)
				moved = true
			}
		}
		if !moved {
			return
		}
	}
}
