package group

import (
	"encoding/binary"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// The records of consumer groups, by the versions of their keys. They are Kafka's own; kmsg has none of them.
const (
	consumerEpochKey       = 3 // the group
	consumerTopicsKey      = 4 // of releases of Kafka before 4.1: read over
	consumerMemberKey      = 5
	consumerTargetEpochKey = 6
	consumerTargetKey      = 7  // of one member
	consumerCurrentKey     = 8  // of one member
	consumerPatternKey     = 16 // what an expression matched: read over, we look again
)

// Numbers of tagged fields.
const (
	tagHash      = 0    // of an epoch
	tagClassic   = 0    // of a member: what one of the classic protocol says
	tagSince     = 4096 // of an epoch, ours: when it began
	tagReader    = 4097 // of a member, ours: whose rights narrow what its pattern matches
	tagSinceEach = 0    // of partitions: the epoch since which each is held
)

// consumerValueVersion is the version of all values.
const consumerValueVersion = 0

func consumerKey(version int16, names ...string) []byte {
	k := binary.BigEndian.AppendUint16(nil, uint16(version))
	for _, name := range names {
		k = binary.BigEndian.AppendUint16(k, uint16(len(name)))
		k = append(k, name...)
	}
	return k
}

// consumerValue begins a value.
func consumerValue() *wire.Encoder {
	e := &wire.Encoder{}
	e.Int16(consumerValueVersion)
	return e
}

func consumerEpochRecord(group string, epoch MemberEpoch, hash, stampMs int64) KV {
	e := consumerValue()
	e.Int32(int32(epoch))
	e.Tags(wire.Tag{Number: tagHash, Value: int64Bytes(hash)}, wire.Tag{Number: tagSince, Value: int64Bytes(stampMs)})
	return KV{Key: consumerKey(consumerEpochKey, group), Value: e.B}
}

func int64Bytes(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

func consumerMemberRecord(group string, m *consumerMember) KV {
	e := consumerValue()
	e.NullableString(nullable(m.instance))
	e.NullableString(nullable(m.rack))
	e.String(m.clientID)
	e.String(m.clientHost)
	wire.AppendArray(e, m.topics, (*wire.Encoder).String)
	e.NullableString(nullable(m.pattern))
	e.Int32(m.rebalanceMs)
	e.NullableString(nullable(m.subscription.assignor))
	var tags []wire.Tag
	if m.classic != nil {
		tags = append(tags, wire.Tag{Number: tagClassic, Value: m.classic.value()})
	}
	if m.reader != "" {
		tags = append(tags, wire.Tag{Number: tagReader, Value: []byte(m.reader)})
	}
	e.Tags(tags...)
	return KV{Key: consumerKey(consumerMemberKey, group, m.id), Value: e.B}
}

// isPresent is the byte before a structure that could be null.
const isPresent = 1

func (w *classicWords) value() []byte {
	e := &wire.Encoder{}
	e.Int8(isPresent)
	e.Int32(w.sessionMs)
	wire.AppendArray(e, w.protocols, func(e *wire.Encoder, p Protocol) {
		e.String(p.Name)
		e.Bytes(p.Metadata)
		e.NoTags()
	})
	e.NoTags()
	return e.B
}

func consumerTargetEpochRecord(group string, epoch MemberEpoch) KV {
	e := consumerValue()
	e.Int32(int32(epoch))
	e.NoTags()
	return KV{Key: consumerKey(consumerTargetEpochKey, group), Value: e.B}
}

func consumerTargetRecord(group, member string, target []kafka.TopicPartition) KV {
	e := consumerValue()
	appendPartitions(e, target, nil)
	e.NoTags()
	return KV{Key: consumerKey(consumerTargetKey, group, member), Value: e.B}
}

func consumerCurrentRecord(group string, m *consumerMember) KV {
	e := consumerValue()
	e.Int32(int32(m.epoch))
	e.Int32(int32(m.previous))
	e.Int8(int8(m.state))
	appendPartitions(e, sortedHoldings(m.assigned), m.assigned)
	appendPartitions(e, sortedHoldings(m.revoked), m.revoked)
	e.NoTags()
	return KV{Key: consumerKey(consumerCurrentKey, group, m.id), Value: e.B}
}

// appendPartitions writes sorted partitions topic by topic, with the epoch of each where held has them.
func appendPartitions(e *wire.Encoder, sorted []kafka.TopicPartition, held holdings) {
	wire.AppendArray(e, byTopic(sorted), func(e *wire.Encoder, part []kafka.TopicPartition) {
		e.ID(part[0].Topic)
		wire.AppendArray(e, part, func(e *wire.Encoder, tp kafka.TopicPartition) { e.Int32(tp.Partition) })
		if held == nil {
			e.NoTags()
			return
		}
		epochs := &wire.Encoder{}
		wire.AppendArray(epochs, part, func(e *wire.Encoder, tp kafka.TopicPartition) { e.Int32(int32(held[tp])) })
		e.Tags(wire.Tag{Number: tagSinceEach, Value: epochs.B})
	})
}

// byTopic cuts sorted partitions into the runs of one topic each.
func byTopic(sorted []kafka.TopicPartition) (runs [][]kafka.TopicPartition) {
	for start, i := 0, 1; i <= len(sorted); i++ {
		if i == len(sorted) || sorted[i].Topic != sorted[start].Topic {
			runs = append(runs, sorted[start:i])
			start = i
		}
	}
	return runs
}
