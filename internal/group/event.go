package group

import (
	"time"

	"strandline.dev/internal/kafka"
)

// Event is what happens to a shard. The set is closed: the types of this file.
type Event interface{ isEvent() }

// Generation numbers the completed joins of a group: commits and heartbeats carry it. NoGeneration stands for a client that is
// no member.
type Generation int32

// NoGeneration is the protocol's value for a client that is no member.
const NoGeneration Generation = -1

// Protocol is one way of assigning partitions that a member offers, with what the member tells the group's leader for it.
type Protocol struct {
	Name     string
	Metadata []byte
}

// Join asks to become or to stay a member. The reply is a JoinReply, perhaps much later.
type Join struct {
	Token          uint64 // names the reply; unique in this shard, never 0
	Group          string
	MemberID       string // "" for a new member
	InstanceID     string // "" for a dynamic member
	ClientID       string
	ClientHost     string // with its leading slash, as DescribeGroups shows it
	ProtocolType   string
	Protocols      []Protocol // in the member's order of preference
	SessionTimeout time.Duration
	// RebalanceTimeout is how long others wait for this member to rejoin; 0 or less stands for SessionTimeout (JoinGroup v0).
	RebalanceTimeout time.Duration
	Random           kafka.ID // fresh: becomes part of a new member's id
	RequireMemberID  bool     // JoinGroup v4+: a new dynamic member is first told its id (KIP-394)
	CanSkip          bool     // JoinGroup v9+: the client understands SkipAssignment (KIP-814)
	Reason           string   // the client's words for the log; "" if it gave none
	Catalog          Catalog
}

// Sync asks for the member's assignment; the leader brings all assignments. The reply is a SyncReply.
type Sync struct {
	Token       uint64
	Group       string
	MemberID    string
	InstanceID  string
	Generation  Generation
	Protocol    *ProtocolChoice // what the member believes was chosen; nil below SyncGroup v5
	Assignments []MemberAssignment
	Catalog     Catalog
}

// ProtocolChoice is the type and the chosen protocol of a generation.
type ProtocolChoice struct{ Type, Name string }

// MemberAssignment is what the leader gives one member.
type MemberAssignment struct {
	MemberID   string
	Assignment []byte
}

// Heartbeat keeps a member's session alive. The reply is a HeartbeatReply.
type Heartbeat struct {
	Token      uint64
	Group      string
	MemberID   string
	InstanceID string
	Generation Generation
}

// Leave takes members out of a group. The reply is a LeaveReply.
type Leave struct {
	Token   uint64
	Group   string
	Members []LeavingMember
}

// LeavingMember names a member by its id, by its instance id (an administrator's removal), or by both.
type LeavingMember struct {
	MemberID   string
	InstanceID string
	Reason     string
}

// CommitOffsets stores the next offsets to read. The reply is a CommitReply.
type CommitOffsets struct {
	Token      uint64
	Group      string
	MemberID   string
	InstanceID string
	Generation Generation
	// KnowsGroupIDNotFound says that the client understands GROUP_ID_NOT_FOUND (OffsetCommit v9+).
	KnowsGroupIDNotFound bool
	Topics               []CommitTopic
}

// CommitTopic is the commit of one topic. ID is the topic's current id, resolved by the caller.
type CommitTopic struct {
	Name       string
	ID         kafka.TopicID
	Width      int32 // how many partitions the topic has; 0 when not known
	Partitions []CommitPartition
}

// CommitPartition is the commit of one partition. A Refused other than kafka.None is the caller's verdict (unknown partition, not
// authorised): the partition is answered with it and not stored.
type CommitPartition struct {
	Partition   int32
	Offset      kafka.Offset
	LeaderEpoch kafka.LeaderEpoch
	Metadata    string
	Refused     kafka.ErrorCode
}

// FetchOffsets asks for stored offsets. The reply is a FetchReply.
type FetchOffsets struct {
	Token  uint64
	Group  string
	Member *FetchingMember // nil for who does not say
	Topics []FetchTopic    // ignored when All
	All    bool            // everything that is stored for the topics that exist
	// CurrentID gives the id that a topic name has now; the zero id when there is no such topic. Needed when All.
	CurrentID func(topic string) kafka.TopicID
}

// FetchingMember is the member of a consumer group that asks for offsets; a group of another type does not compare it.
type FetchingMember struct {
	ID    string
	Epoch MemberEpoch
}

// FetchTopic asks for the partitions of one topic. ID is the id that the topic has now, zero when there is none.
type FetchTopic struct {
	Name       string
	ID         kafka.TopicID
	Partitions []int32
}

// DescribeGroups asks for the state and members of groups. The reply is a DescribeReply.
type DescribeGroups struct {
	Token  uint64
	Groups []string
}

// ListGroups asks for the groups of the shard. Empty filters match all; they are compared without regard to case. The reply is a
// ListReply.
type ListGroups struct {
	Token  uint64
	States []string
	Types  []string
}

// DeleteGroups removes groups without members, with their offsets. The reply is a DeleteReply.
type DeleteGroups struct {
	Token  uint64
	Groups []string
}

// DeleteOffsets removes offsets of topics that the group does not read at present. The reply is a DeleteOffsetsReply.
type DeleteOffsets struct {
	Token   uint64
	Group   string
	Topics  []TopicPartitions
	Catalog Catalog // what the expressions of members give them
}

// TopicPartitions names partitions of a topic.
type TopicPartitions struct {
	Name       string
	Partitions []int32
}

// SeekOffsets moves a group without members, by an operator's wish: to the offsets given or, with Undo, back to what the last seek
// replaced. All partitions move, or none. The reply is a SeekReply.
type SeekOffsets struct {
	Token  uint64
	Group  string
	Topics []CommitTopic // nil when Undo
	Undo   bool
	// MayMove judges the topics of an undo, which its caller does not name; nil allows all.
	MayMove func(topic string) bool
}

// TopicsWidened says that topics have more partitions than before. Topics names what the caller saw; Width gives the present number of any
// topic, 0 when there is none, for growth that nobody here saw. Catalog says what the expressions of members give them.
type TopicsWidened struct {
	Topics  []Widened
	Width   func(kafka.TopicID) int32
	Catalog Catalog
}

// Widened is one topic that grew: the partitions [From, To) are new.
type Widened struct {
	Name     string
	ID       kafka.TopicID
	From, To int32
}

// Cancel says that nobody waits any more for the reply with this token.
type Cancel struct{ Token uint64 }

// TopicsDeleted says that topics were purged for good, by a committed metadata record that names their ids (I10): offsets stored under
// these ids go too. Deletion into the trash is not this event.
type TopicsDeleted struct{ IDs []kafka.TopicID }

// Loaded ends the replay of the log: the shard begins to decide. Sessions of stored members start anew.
type Loaded struct{}

// Tick lets the timers that are due act.
type Tick struct {
	// RecordsKept says how long a topic keeps its records; 0 means that there is no such topic, negative means for ever, and is also the
	// answer while the wall clock is not to be trusted. Offsets live at least as long. Nil stands for 0.
	RecordsKept func(kafka.TopicID) time.Duration
}

func (Join) isEvent()           {}
func (Sync) isEvent()           {}
func (Heartbeat) isEvent()      {}
func (Leave) isEvent()          {}
func (CommitOffsets) isEvent()  {}
func (FetchOffsets) isEvent()   {}
func (DescribeGroups) isEvent() {}
func (ListGroups) isEvent()     {}
func (DeleteGroups) isEvent()   {}
func (DeleteOffsets) isEvent()  {}
func (Cancel) isEvent()         {}
func (TopicsDeleted) isEvent()  {}
func (SeekOffsets) isEvent()    {}
func (TopicsWidened) isEvent()  {}
func (Loaded) isEvent()         {}
func (Tick) isEvent()           {}
