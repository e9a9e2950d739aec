package group

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// Apply takes one record of the progress log into the state: in a replay, and on the leader at once after the append. A nil value
// is a tombstone. at is the record's own time stamp; it stands in for one that old values lack. Key and value are copied. The
// error wraps ErrUnknownRecord or ErrMalformed and changes nothing: the shard is then of no use (I8).
func (s *Shard) Apply(key, value []byte, at time.Time) error {
	if len(key) < 2 {
		return fmt.Errorf("%w: a key of %d bytes", ErrMalformed, len(key))
	}
	switch version := int16(binary.BigEndian.Uint16(key)); version {
	case 0, offsetKeyVersion:
		return s.applyOffset(key, value, at)
	case groupKeyVersion:
		return s.applyGroup(key, value, at)
	case undoKeyVersion, widthKeyVersion:
		return s.applyOwn(version, key, value, at)
	case consumerEpochKey, consumerTopicsKey, consumerMemberKey, consumerTargetEpochKey, consumerTargetKey, consumerCurrentKey, consumerPatternKey:
		return s.applyConsumer(version, key, value, at)
	default:
		return fmt.Errorf("%w: key version %d", ErrUnknownRecord, version)
	}
}

func (s *Shard) applyOffset(key, value []byte, at time.Time) error {
	k, o, err := readOffset(key, value, at)
	if err != nil {
		return err
	}
	if o.offset < 0 { // we store no negative one; from elsewhere it can only mean that there is none
		if g := s.groups[k.Group]; g != nil {
			g.removeOffset(k.Topic, k.Partition)
			s.applied(g)
		}
		return nil
	}
	g := s.applicable(k.Group)
	g.setOffset(k.Topic, k.Partition, o)
	s.applied(g)
	return nil
}

// readOffset reads the record of an offset; a tombstone is the offset NoOffset.
func readOffset(key, value []byte, at time.Time) (k kmsg.OffsetCommitKey, o committed, err error) {
	if err := k.ReadFrom(key); err != nil {
		return k, o, fmt.Errorf("%w: key of an offset: %v", ErrMalformed, err)
	}
	if value == nil {
		return k, committed{offset: kafka.NoOffset, epoch: kafka.NoEpoch}, nil
	}
	if err := checkValueVersion(value, offsetValueVersion); err != nil {
		return k, o, fmt.Errorf("offset of group %q: %w", k.Group, err)
	}
	var v kmsg.OffsetCommitValue
	if err := v.ReadFrom(value); err != nil {
		return k, o, fmt.Errorf("%w: offset of group %q: %v", ErrMalformed, k.Group, err)
	}
	o = committed{offset: kafka.Offset(v.Offset), epoch: kafka.NoEpoch, metadata: v.Metadata, atMs: v.CommitTimestamp, topic: v.TopicID}
	if v.Version >= 3 {
		o.epoch = kafka.LeaderEpoch(v.LeaderEpoch)
	}
	if o.atMs < 0 {
		o.atMs = at.UnixMilli()
	}
	return k, o, nil
}

func (s *Shard) applyGroup(key, value []byte, at time.Time) error {
	var k kmsg.GroupMetadataKey
	if err := k.ReadFrom(key); err != nil {
		return fmt.Errorf("%w: key of a group: %v", ErrMalformed, err)
	}
	if value == nil {
		if g := s.groups[k.Group]; g != nil {
			g.stored = nil
			s.applied(g)
		}
		return nil
	}
	if err := checkValueVersion(value, groupValueVersion+1); err != nil { // 4 has the fields of 3 in the flexible encoding
		return fmt.Errorf("group %q: %w", k.Group, err)
	}
	var v kmsg.GroupMetadataValue
	if err := v.ReadFrom(bytes.Clone(value)); err != nil { // members keep parts of it
		return fmt.Errorf("%w: group %q: %v", ErrMalformed, k.Group, err)
	}
	r, err := readGroup(&v, at)
	if err != nil {
		return fmt.Errorf("group %q: %w", k.Group, err)
	}
	g := s.applicable(k.Group)
	g.stored = r
	s.applied(g)
	return nil
}

// checkValueVersion refuses values of a newer release: fields that we do not know could change what the others mean.
func checkValueVersion(value []byte, newest int16) error {
	if len(value) < 2 {
		return fmt.Errorf("%w: a value of %d bytes", ErrMalformed, len(value))
	}
	if version := int16(binary.BigEndian.Uint16(value)); version < 0 || version > newest {
		return fmt.Errorf("%w: value version %d", ErrUnknownRecord, version)
	}
	return nil
}

func readGroup(v *kmsg.GroupMetadataValue, at time.Time) (*storedGroup, error) {
	r := &storedGroup{
		protocolType: v.ProtocolType, protocol: orEmpty(v.Protocol), leader: orEmpty(v.Leader), generation: Generation(v.Generation),
		sinceMs: v.CurrentStateTimestamp, members: make([]storedMember, len(v.Members)), index: make(map[string]int, len(v.Members)),
	}
	if r.sinceMs < 0 {
		r.sinceMs = at.UnixMilli()
	}
	instances := map[string]bool{}
	for i := range v.Members {
		m := &v.Members[i]
		r.members[i] = storedMember{
			id: m.MemberID, instance: orEmpty(m.InstanceID), clientID: m.ClientID, clientHost: m.ClientHost,
			rebalanceMs: m.RebalanceTimeoutMillis, sessionMs: m.SessionTimeoutMillis, subscription: m.Subscription, assignment: m.Assignment,
		}
		instance := r.members[i].instance
		if _, twice := r.index[m.MemberID]; twice || m.MemberID == "" || instance != "" && instances[instance] {
			return nil, fmt.Errorf("%w: member %q of instance %q is there twice, or has no id", ErrMalformed, m.MemberID, instance)
		}
		r.index[m.MemberID] = i
		instances[instance] = true
	}
	return r, nil
}

// applicable returns the group that a record is about.
func (s *Shard) applicable(id string) *group {
	if g := s.groups[id]; g != nil {
		return g
	}
	return s.add(id)
}

// applied settles a record: on the leader, Step goes on when all are.
func (s *Shard) applied(g *group) {
	if g.owed > 0 {
		g.owed--
		s.owed--
	}
	s.forgetEmpty(g)
}

func (g *group) setOffset(topic string, partition int32, o committed) {
	if g.offsets == nil {
		g.offsets = map[string]map[int32]committed{}
	}
	if g.offsets[topic] == nil {
		g.offsets[topic] = map[int32]committed{}
	}
	g.offsets[topic][partition] = o
}

func (g *group) removeOffset(topic string, partition int32) {
	delete(g.offsets[topic], partition)
	if len(g.offsets[topic]) == 0 {
		delete(g.offsets, topic)
	}
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
