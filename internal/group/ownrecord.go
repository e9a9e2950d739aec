package group

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// The records that are ours and not Kafka's; their key versions are far above Kafka's (docs/formats/group-records.md).
const (
	undoKeyVersion  = 10001 // what the last seek of a group replaced in a partition
	widthKeyVersion = 10002 // how many partitions of a topic the shard knows
	widthVersion    = 0
)

func undoKey(group string, p topicPartition) []byte {
	k := kmsg.OffsetCommitKey{Version: undoKeyVersion, Group: group, Topic: p.topic, Partition: p.partition}
	return k.AppendTo(nil)
}

// value is the value of the record of a committed offset, and of one that was replaced.
func (c committed) value() []byte {
	v := kmsg.NewOffsetCommitValue()
	v.Version, v.Offset, v.LeaderEpoch, v.Metadata = offsetValueVersion, int64(c.offset), int32(c.epoch), c.metadata
	v.CommitTimestamp, v.TopicID = c.atMs, c.topic
	return v.AppendTo(nil)
}

func widthKey(id kafka.TopicID) []byte {
	return append(binary.BigEndian.AppendUint16(nil, widthKeyVersion), id[:]...)
}

func widthRecord(id kafka.TopicID, w width) KV {
	var e wire.Encoder
	e.Header(widthKeyVersion, widthVersion)
	e.String(w.name)
	e.Int32(w.count)
	e.NoTags()
	return KV{Key: widthKey(id), Value: e.B}
}

// applyOwn takes in a record of ours.
func (s *Shard) applyOwn(version int16, key, value []byte, at time.Time) error {
	if version == undoKeyVersion {
		return s.applyUndo(key, value, at)
	}
	return s.applyWidth(key, value)
}

func (s *Shard) applyUndo(key, value []byte, at time.Time) error {
	k, o, err := readOffset(key, value, at)
	if err != nil {
		return err
	}
	p := topicPartition{k.Topic, k.Partition}
	if value == nil {
		if g := s.groups[k.Group]; g != nil {
			delete(g.undo, p)
			s.applied(g)
		}
		return nil
	}
	g := s.applicable(k.Group)
	if g.undo == nil {
		g.undo = map[topicPartition]committed{}
	}
	g.undo[p] = o
	s.applied(g)
	return nil
}

func (s *Shard) applyWidth(key, value []byte) error {
	if len(key) != 2+len(kafka.TopicID{}) {
		return fmt.Errorf("%w: key of a width with %d bytes", ErrMalformed, len(key))
	}
	id := kafka.TopicID(key[2:])
	if value == nil {
		delete(s.widths, id)
	} else {
		d := wire.NewDecoder(value)
		d.ExpectHeader(widthKeyVersion, widthVersion)
		w := width{name: d.String(), count: d.Int32()}
		d.Tags(nil)
		if err := d.Done(); err != nil || w.count < 0 {
			return fmt.Errorf("%w: width of topic %v: %d partitions, %v", ErrMalformed, id, w.count, err)
		}
		s.widths[id] = w
	}
	if s.owed > 0 {
		s.owed--
	}
	return nil
}

// sortedPartitions visits a map by topic and partition.
func sortedPartitions[V any](m map[topicPartition]V) iter.Seq2[topicPartition, V] {
	return func(yield func(topicPartition, V) bool) {
		keys := slices.SortedFunc(maps.Keys(m), func(a, b topicPartition) int {
			return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
		})
		for _, k := range keys {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
