package group

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// applyConsumer takes in a record of a consumer group.
func (s *Shard) applyConsumer(version int16, key, value []byte, at time.Time) error {
	named := 1
	switch version {
	case consumerTopicsKey, consumerPatternKey:
		return nil
	case consumerMemberKey, consumerTargetKey, consumerCurrentKey:
		named = 2
	}
	names, ok := readConsumerKey(key[2:], named)
	if !ok {
		return fmt.Errorf("%w: key of a consumer group, version %d", ErrMalformed, version)
	}
	var apply func(*consumerGroup)
	if value == nil {
		apply = removal(version, names)
	} else {
		if err := checkValueVersion(value, consumerValueVersion); err != nil {
			return fmt.Errorf("consumer group %q: %w", names[0], err)
		}
		d := wire.NewDecoder(value[2:])
		apply = readConsumer(version, names, d, at)
		if err := d.Done(); err != nil {
			return fmt.Errorf("%w: consumer group %q, version %d: %v", ErrMalformed, names[0], version, err)
		}
	}
	g := s.groups[names[0]]
	if g == nil {
		if value == nil {
			return nil
		}
		g = s.add(names[0])
	}
	apply(&g.consumer)
	s.applied(g)
	return nil
}

func readConsumerKey(b []byte, n int) (names []string, ok bool) {
	for range n {
		if len(b) < 2 || len(b)-2 < int(binary.BigEndian.Uint16(b)) {
			return nil, false
		}
		end := 2 + int(binary.BigEndian.Uint16(b))
		names = append(names, string(b[2:end]))
		b = b[end:]
	}
	return names, len(b) == 0
}

// removal is what a tombstone does.
func removal(version int16, names []string) func(*consumerGroup) {
	return func(c *consumerGroup) {
		switch version {
		case consumerEpochKey:
			c.isStored, c.epoch, c.hash, c.sinceMs = false, 0, 0, 0
		case consumerMemberKey:
			c.setSubscription(names[1], nil)
		case consumerTargetEpochKey:
			c.hasTarget, c.targetEpoch = false, 0
		case consumerTargetKey:
			c.setTarget(names[1], nil)
		case consumerCurrentKey:
			c.setCurrent(names[1], nil)
		}
	}
}

// readConsumer reads a value. What it returns is to be done when all of the value was read.
func readConsumer(version int16, names []string, d *wire.Decoder, at time.Time) func(*consumerGroup) {
	switch version {
	case consumerEpochKey:
		return readConsumerEpoch(d, at)
	case consumerMemberKey:
		s := readSubscription(d)
		return func(c *consumerGroup) { c.setSubscription(names[1], s) }
	case consumerTargetEpochKey:
		epoch := MemberEpoch(d.Int32())
		d.Tags(nil)
		return func(c *consumerGroup) { c.hasTarget, c.targetEpoch = true, epoch }
	case consumerTargetKey:
		target := sortedHoldings(readPartitions(d))
		d.Tags(nil)
		if target == nil {
			target = []kafka.TopicPartition{}
		}
		return func(c *consumerGroup) { c.setTarget(names[1], target) }
	default:
		m := &consumerMember{
			epoch: MemberEpoch(d.Int32()), previous: MemberEpoch(d.Int32()), state: memberState(d.Int8()), assigned: readPartitions(d), revoked: readPartitions(d),
		}
		d.Tags(nil)
		if m.state < settled || m.state > waiting {
			d.Fail(wire.ErrMalformed)
		}
		return func(c *consumerGroup) { c.setCurrent(names[1], m) }
	}
}

func readConsumerEpoch(d *wire.Decoder, at time.Time) func(*consumerGroup) {
	epoch, hash, since := MemberEpoch(d.Int32()), int64(0), at.UnixMilli()
	d.Tags(func(t wire.Tag) {
		switch {
		case t.Number == tagHash && len(t.Value) == 8:
			hash = int64(binary.BigEndian.Uint64(t.Value))
		case t.Number == tagSince && len(t.Value) == 8:
			since = int64(binary.BigEndian.Uint64(t.Value))
		}
	})
	return func(c *consumerGroup) { c.isStored, c.epoch, c.hash, c.sinceMs = true, epoch, hash, since }
}

// readSubscription reads a member's own record. The arguments of a literal are read in their order.
func readSubscription(d *wire.Decoder) *subscription {
	s := &subscription{instance: orEmpty(d.NullableString()), rack: orEmpty(d.NullableString()), clientID: d.String(), clientHost: d.String()}
	s.topics = wire.ReadArray(d, 1, (*wire.Decoder).String)
	slices.Sort(s.topics)
	s.pattern, s.rebalanceMs, s.assignor = orEmpty(d.NullableString()), d.Int32(), orEmpty(d.NullableString())
	d.Tags(func(t wire.Tag) {
		switch t.Number {
		case tagReader:
			s.reader = string(t.Value)
		case tagClassic:
			var err error
			if s.classic, err = readClassicWords(t.Value); err != nil {
				d.Fail(err)
			}
		}
	})
	return s
}

// protocolBytesMin is the least that a protocol takes: two lengths, and no tags.
const protocolBytesMin = 3

// readClassicWords reads what a member of the classic protocol says; nil, as Kafka may write for one of the consumer protocol.
func readClassicWords(b []byte) (*classicWords, error) {
	d := wire.NewDecoder(b)
	if d.Int8() != isPresent {
		return nil, d.Done()
	}
	w := &classicWords{sessionMs: d.Int32()}
	w.protocols = wire.ReadArray(d, protocolBytesMin, func(d *wire.Decoder) Protocol {
		p := Protocol{Name: d.String(), Metadata: bytes.Clone(d.Bytes())}
		d.Tags(nil)
		return p
	})
	d.Tags(nil)
	if len(w.protocols) == 0 {
		d.Fail(wire.ErrMalformed)
	}
	return w, d.Done()
}

// partitionBytesMin is the least that a topic takes in a list of partitions: its id, a length, and no tags.
const partitionBytesMin = 18

// readPartitions reads partitions with the epochs since which they are held; 0, which passes for any, where there are none.
func readPartitions(d *wire.Decoder) holdings {
	var h holdings
	for range d.ArrayLen(partitionBytesMin) {
		id := d.ID()
		partitions := wire.ReadArray(d, 4, (*wire.Decoder).Int32)
		var epochs []int32
		d.Tags(func(t wire.Tag) {
			if t.Number == tagSinceEach {
				inner := wire.NewDecoder(t.Value)
				epochs = wire.ReadArray(inner, 4, (*wire.Decoder).Int32)
				if err := inner.Done(); err != nil {
					d.Fail(err)
				}
			}
		})
		for i, p := range partitions {
			if h == nil {
				h = holdings{}
			}
			since := MemberEpoch(0)
			if i < len(epochs) {
				since = MemberEpoch(epochs[i])
			}
			h[kafka.TopicPartition{Topic: id, Partition: p}] = since
		}
	}
	return h
}
