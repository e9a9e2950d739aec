package group

import (
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Versions of the records that we write; apply.go reads older ones too.
const (
	offsetKeyVersion   = 1
	offsetValueVersion = 4 // with the topic's id
	groupKeyVersion    = 2
	groupValueVersion  = 3 // with instance ids
)

// groupRecord is the record of a group as it is now; assignment gives what each member owns.
func groupRecord(g *group, stampMs int64, assignment func(*member) []byte) KV {
	c := &g.classic
	v := kmsg.NewGroupMetadataValue()
	v.Version, v.ProtocolType, v.Generation, v.CurrentStateTimestamp = groupValueVersion, c.protocolType, int32(c.generation), stampMs
	v.Protocol, v.Leader = nullable(c.protocol), nullable(c.leaderID())
	v.Members = make([]kmsg.GroupMetadataValueMember, 0, len(c.members))
	for m := range c.all() {
		r := kmsg.NewGroupMetadataValueMember()
		r.MemberID, r.InstanceID, r.ClientID, r.ClientHost = m.id, nullable(m.instance), m.clientID, m.clientHost
		r.RebalanceTimeoutMillis, r.SessionTimeoutMillis = millis(m.rebalance), millis(m.session)
		r.Subscription, r.Assignment = m.metadata(c.protocol), assignment(m)
		v.Members = append(v.Members, r)
	}
	return KV{Key: groupKey(g.id), Value: v.AppendTo(nil)}
}

// offsetRecord is the record of one committed offset.
func offsetRecord(group string, t *CommitTopic, p *CommitPartition, stampMs int64) KV {
	c := committed{offset: p.Offset, epoch: p.LeaderEpoch, metadata: p.Metadata, atMs: stampMs, topic: t.ID}
	return KV{Key: offsetKey(group, topicPartition{t.Name, p.Partition}), Value: c.value()}
}

func offsetTombstone(group string, p topicPartition) KV { return KV{Key: offsetKey(group, p)} }

// Mark is a record that changes nothing wherever it is applied: it deletes the group without a name, which never has members. Once a mark is
// committed, whoever appended it was the coordinator when it did (I8).
func Mark() KV { return groupTombstone("") }

func groupTombstone(group string) KV { return KV{Key: groupKey(group)} }

func offsetKey(group string, p topicPartition) []byte {
	k := kmsg.OffsetCommitKey{Version: offsetKeyVersion, Group: group, Topic: p.topic, Partition: p.partition}
	return k.AppendTo(nil)
}

func groupKey(group string) []byte {
	k := kmsg.GroupMetadataKey{Version: groupKeyVersion, Group: group}
	return k.AppendTo(nil)
}

// nullable is how records say "none".
func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func millis(d time.Duration) int32 { return int32(min(d.Milliseconds(), math.MaxInt32)) }
