package group

import (
	"time"

	"strandline.dev/internal/kafka"
)

// ConsumerHeartbeat is how a member of a consumer group joins it, stays in it, tells and learns what it owns, and leaves it (KIP-848).
// What is nil is as the member said before. The reply is a ConsumerHeartbeatReply.
type ConsumerHeartbeat struct {
	Token                uint64
	Group                string
	MemberID             string
	Epoch                MemberEpoch // where the member is; JoinEpoch, LeaveEpoch, LeaveStaticEpoch
	InstanceID           *string
	RackID               *string
	ClientID, ClientHost string
	RebalanceTimeout     time.Duration // negative: as before
	Topics               []string
	Pattern              *string // a regular expression, "" for none
	Reader               string  // who brings the expression, as the Catalog knows it: it matches what they may see; "" where everybody sees all
	Assignor             *string
	// Owned are the partitions that the member has and has not given up.
	Owned []kafka.TopicPartition
	// Random is fresh. It becomes the id of a member that has none (ConsumerGroupHeartbeat v0); MustHaveID refuses those (v1+).
	Random     kafka.ID
	MustHaveID bool
	Catalog    Catalog
}

// isFull says whether the member tells all about itself: it has just joined, or did not see our last answer.
func (ev *ConsumerHeartbeat) isFull() bool {
	return ev.RebalanceTimeout >= 0 && (ev.Topics != nil || ev.Pattern != nil) && ev.Owned != nil
}

// DescribeConsumerGroups asks for the state and members of consumer groups. The reply is a DescribeConsumerReply.
type DescribeConsumerGroups struct {
	Token  uint64
	Groups []string
}

func (ConsumerHeartbeat) isEvent()      {}
func (DescribeConsumerGroups) isEvent() {}

// ConsumerHeartbeatReply ends a ConsumerHeartbeat.
type ConsumerHeartbeatReply struct {
	Code     kafka.ErrorCode
	Message  string // what was wrong and what to do; "" when Code says all
	MemberID string
	Epoch    MemberEpoch
	Interval time.Duration // until the next heartbeat
	// Assigned are the partitions that the member may read, sorted; nil when they are those of the last answer.
	Assigned []kafka.TopicPartition
}

// DescribeConsumerReply ends a DescribeConsumerGroups, in the order of the request.
type DescribeConsumerReply struct{ Groups []ConsumerDescription }

// ConsumerDescription is the state of one consumer group. Code is GroupIDNotFound for a group that does not exist or is of another type.
type ConsumerDescription struct {
	Code        kafka.ErrorCode
	Group       string
	State       string
	Epoch       MemberEpoch
	TargetEpoch MemberEpoch
	Assignor    string
	Members     []DescribedConsumer
}

// DescribedConsumer is one member. Its partitions are named by topic id.
type DescribedConsumer struct {
	MemberID, InstanceID, RackID string
	ClientID, ClientHost         string
	Epoch                        MemberEpoch
	Topics                       []string
	Pattern                      string
	Assigned, Target             []kafka.TopicPartition
	IsClassic                    bool // it joined by the classic protocol
}
