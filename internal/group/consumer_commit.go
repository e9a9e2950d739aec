package group

import (
	"slices"

	"strandline.dev/internal/kafka"
)

// mayCommit says whether the sender of a commit is a member, whatever the partitions (P31).
func (c *consumerGroup) mayCommit(ev *CommitOffsets) kafka.ErrorCode {
	m := c.members[ev.MemberID]
	switch {
	case m == nil:
		return kafka.UnknownMemberID
	case m.classic != nil && MemberEpoch(ev.Generation) != m.epoch:
		return kafka.IllegalGeneration
	case m.classic != nil:
		return kafka.None
	case !ev.KnowsGroupIDNotFound: // OffsetCommit below v9: its clients do not know the errors of this protocol
		return kafka.UnsupportedVersion
	case ev.Generation < 0 || MemberEpoch(ev.Generation) > m.epoch:
		return kafka.StaleMemberEpoch
	}
	return kafka.None
}

// mayCommitOf is the verdict on one partition. A member may have heard of its newest epoch, or not yet (C059): an older one passes for
// what the member has had since then without a break. Whatever the epoch, nobody moves the offset of a partition that is another's (I7).
func (c *consumerGroup) mayCommitOf(ev *CommitOffsets, tp kafka.TopicPartition) kafka.ErrorCode {
	m, epoch := c.members[ev.MemberID], MemberEpoch(ev.Generation)
	since, holds := m.since(tp)
	owner := c.owners[tp]
	switch {
	case owner != "" && owner != m.id && m.classic != nil:
		return kafka.IllegalGeneration // its client knows no other error that makes it join again
	case owner != "" && owner != m.id:
		return kafka.StaleMemberEpoch
	case epoch == m.epoch || holds && since <= epoch:
		return kafka.None
	}
	return kafka.StaleMemberEpoch
}

// mayFetch says whether a member may ask for offsets: one that is not in the group any more, or in another epoch of it, is to learn that
// before it begins to read.
func (c *consumerGroup) mayFetch(by *FetchingMember) kafka.ErrorCode {
	m := c.members[by.ID]
	switch {
	case m == nil:
		return kafka.UnknownMemberID
	case m.epoch != by.Epoch:
		return kafka.StaleMemberEpoch
	}
	return kafka.None
}

// reads returns a test for the topics that the members read: those they name, and those that their expressions give them.
func (c *consumerGroup) reads(catalog Catalog) func(topic string) bool {
	type matching struct{ pattern, reader string }
	all := map[matching]bool{}
	for _, m := range c.members {
		if m.pattern != "" {
			all[matching{m.pattern, m.reader}] = true
		}
	}
	return func(topic string) bool {
		for _, m := range c.members {
			if _, named := slices.BinarySearch(m.topics, topic); named {
				return true
			}
		}
		for m := range all {
			if catalog.Gives(m.pattern, m.reader, topic) {
				return true
			}
		}
		return false
	}
}
