package group

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"strandline.dev/internal/kafka"
)

// group is one group: hard state of any kind of group, and the soft state of the classic protocol. With members it is of one type: its
// classic part is empty, or its consumer part is (convert.go takes it from one to the other).
type group struct {
	id string

	// Hard state: Apply alone writes it.
	stored  *storedGroup // nil when no record of the group is in the log
	offsets map[string]map[int32]committed
	undo    map[topicPartition]committed // what the last seek replaced; NoOffset where nothing was stored

	owed     int // records of this group that the current step made
	classic  classicGroup
	consumer consumerGroup
	expiry   timer
}

// storedGroup is the newest group record.
type storedGroup struct {
	protocolType string
	protocol     string
	leader       string
	generation   Generation
	sinceMs      int64 // wall clock when the record was made: for a group without members, since when it has none
	members      []storedMember
	index        map[string]int // by member id
}

// storedMember is a member as its generation was completed.
type storedMember struct {
	id, instance         string
	clientID, clientHost string
	rebalanceMs          int32 // -1 in the oldest records: as the session
	sessionMs            int32
	subscription         []byte
	assignment           []byte
}

// assignment returns what a member owns: nothing when the record does not have it.
func (r *storedGroup) assignment(memberID string) []byte {
	if i, ok := r.index[memberID]; ok {
		return r.members[i].assignment
	}
	return nil
}

// committed is a stored offset.
type committed struct {
	offset   kafka.Offset
	epoch    kafka.LeaderEpoch
	metadata string
	atMs     int64         // wall clock of the commit
	topic    kafka.TopicID // zero in records of before topic ids
}

// isOf says whether the offset belongs to the topic that has this id now (P41). Offsets of before topic ids belong to any.
func (c committed) isOf(current kafka.TopicID) bool { return c.topic.IsZero() || c.topic == current }

// offsetRef names an offset and the topic id it was stored under.
type offsetRef struct {
	group     string
	topic     string
	partition int32
	id        kafka.TopicID
	isUndo    bool // what a seek replaced there
}

// add creates a group without any state.
func (s *Shard) add(id string) *group {
	g := &group{id: id}
	g.expiry = timer{kind: expiryTimer, group: g}
	g.classic.joinTimer = timer{kind: joinTimer, group: g}
	g.classic.syncTimer = timer{kind: syncTimer, group: g}
	s.groups[id] = g
	return g
}

// forgetEmpty removes a group that has no state left, hard or soft. Nothing is lost by it.
func (s *Shard) forgetEmpty(g *group) {
	c := &g.classic
	if g.owed > 0 || g.stored != nil || len(g.offsets) > 0 || len(g.undo) > 0 || len(c.members) > 0 || len(c.pending) > 0 || c.phase != empty ||
		g.consumer.isThere() {
		return
	}
	s.timers.disarm(&g.expiry)
	s.timers.disarm(&c.joinTimer)
	s.timers.disarm(&c.syncTimer)
	if s.groups[g.id] == g {
		delete(s.groups, g.id)
	}
}

// isActive says whether the group has members, or is about to: its position is theirs to move.
func (g *group) isActive() bool { return g.classic.phase != empty || len(g.consumer.members) > 0 }

// emptySinceMs is when the group lost its last member, by the wall clock; 0 when the log does not say.
func (g *group) emptySinceMs() int64 {
	since := g.consumer.sinceMs
	if g.stored != nil {
		since = max(since, g.stored.sinceMs)
	}
	return since
}

// topicPartition names a partition as clients do.
type topicPartition struct {
	topic     string
	partition int32
}

// sortedOffsets visits the stored offsets by topic and partition.
func (g *group) sortedOffsets() iter.Seq2[topicPartition, committed] {
	return func(yield func(topicPartition, committed) bool) {
		for topic, partitions := range sorted(g.offsets) {
			for p, o := range sorted(partitions) {
				if !yield(topicPartition{topic, p}, o) {
					return
				}
			}
		}
	}
}

// sorted visits a map in the order of its keys: whatever can be seen outside must not depend on the order of a map.
func sorted[K cmp.Ordered, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
