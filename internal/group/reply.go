package group

import "strandline.dev/internal/kafka"

// Effects is what a Step asks of the shell.
type Effects struct {
	Records []KV    // to be appended in this order, and applied at once
	Replies []Reply // in the order in which they arose
	Notes   []Note  // for the log, the console and the metrics
}

// KV is one record of the progress log. A nil Value deletes the key.
type KV struct{ Key, Value []byte }

// Reply answers the request with this token.
type Reply struct {
	Token uint64
	// Response is a pointer to one of the reply types of this file.
	Response any
	// AfterCommit says that the reply shows or confirms hard state: it is held until everything appended so far is committed, and something that
	// was appended after the request came, a Mark if nothing else was (I8).
	AfterCommit bool
}

// NoteKind says what a Note is about.
type NoteKind uint8

// The kinds of notes.
const (
	RebalanceStarted   NoteKind = iota + 1 // Why is the cause: who came, left, or fell silent
	RebalanceCompleted                     // the generation has its assignments, or has no members
	MemberRemoved                          // Member is out; Why says by whom
	OffsetExpired                          // Topic and Partition; the text names the offset (I10: expiry is never silent)
	OffsetsMoved                           // by a seek: Count partitions
	PartitionsAdded                        // Count partitions of Topic, from Partition on, are new and are read from their start
	GroupRemoved                           // by request or because nothing was left of it
	GroupConverted                         // with its members; Why says to what
	GroupNotConverted                      // to the consumer protocol, for which a member had come; Why says why not
)

// Note is something that an operator wants to know and no client is told.
type Note struct {
	Kind       NoteKind
	Group      string
	Generation Generation
	Member     string
	Topic      string
	Partition  int32
	Count      int
	Why        string
}

// JoinReply ends a Join. Members is filled for the leader alone.
type JoinReply struct {
	Code         kafka.ErrorCode
	Generation   Generation
	ProtocolType string // "" when Code is not None
	Protocol     string // the chosen one; "" when Code is not None
	Leader       string
	SkipAssign   bool // the leader gets the members but must not assign (KIP-814)
	MemberID     string
	Members      []JoinedMember
}

// JoinedMember is what the leader learns about a member.
type JoinedMember struct {
	MemberID   string
	InstanceID string // "" for a dynamic member
	Metadata   []byte
}

// SyncReply ends a Sync.
type SyncReply struct {
	Code         kafka.ErrorCode
	ProtocolType string // "" when Code is not None
	Protocol     string
	Assignment   []byte
}

// HeartbeatReply ends a Heartbeat.
type HeartbeatReply struct{ Code kafka.ErrorCode }

// LeaveReply ends a Leave. Members are in the order of the request; Code is about the group.
type LeaveReply struct {
	Code    kafka.ErrorCode
	Members []LeftMember
}

// LeftMember is the outcome for one member.
type LeftMember struct {
	MemberID   string
	InstanceID string
	Code       kafka.ErrorCode
}

// CommitReply ends a CommitOffsets: topics and partitions in the order of the request.
type CommitReply struct{ Topics []TopicCodes }

// TopicCodes holds the outcome for the partitions of one topic.
type TopicCodes struct {
	Name       string
	ID         kafka.TopicID // zero where the request had none
	Partitions []PartitionCode
}

// PartitionCode is the outcome for one partition.
type PartitionCode struct {
	Partition int32
	Code      kafka.ErrorCode
}

// FetchReply ends a FetchOffsets.
type FetchReply struct {
	Code   kafka.ErrorCode
	Topics []FetchedTopic
}

// FetchedTopic holds the stored offsets of one topic.
type FetchedTopic struct {
	Name       string
	ID         kafka.TopicID
	Partitions []FetchedPartition
}

// FetchedPartition is a stored offset, or kafka.NoOffset with kafka.NoEpoch when there is none.
type FetchedPartition struct {
	Partition   int32
	Offset      kafka.Offset
	LeaderEpoch kafka.LeaderEpoch
	Metadata    string
}

// DescribeReply ends a DescribeGroups, in the order of the request.
type DescribeReply struct{ Groups []Description }

// Description is the state of one group. Code is GroupIDNotFound, with State "Dead", for a group that does not exist (DescribeGroups
// below v6 answers None).
type Description struct {
	Code         kafka.ErrorCode
	Group        string
	State        string
	ProtocolType string
	Protocol     string // "" unless Stable
	Members      []DescribedMember
}

// DescribedMember is one member. Metadata and Assignment are empty unless the group is Stable.
type DescribedMember struct {
	MemberID   string
	InstanceID string // "" for a dynamic member
	ClientID   string
	ClientHost string
	Metadata   []byte
	Assignment []byte
}

// ListReply ends a ListGroups, in the order of the names.
type ListReply struct{ Groups []ListedGroup }

// ListedGroup is one group of a list.
type ListedGroup struct {
	Group        string
	ProtocolType string
	State        string
	Type         string // "classic" or "consumer"
}

// SeekReply ends a SeekOffsets. Code is GroupIDNotFound when there is nothing to undo.
type SeekReply struct {
	Code  kafka.ErrorCode
	Moved int // partitions
}

// DeleteReply ends a DeleteGroups, in the order of the request.
type DeleteReply struct{ Groups []GroupCode }

// GroupCode is the outcome for one group.
type GroupCode struct {
	Group string
	Code  kafka.ErrorCode
}

// DeleteOffsetsReply ends a DeleteOffsets.
type DeleteOffsetsReply struct {
	Code   kafka.ErrorCode
	Topics []TopicCodes
}
