package replica

import (
	"log/slog"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/record"
	"strandline.dev/internal/recordid"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
)

// Config is what a Host is built from. The fields from ProducerExpiry on are not required.
type Config struct {
	Dir     *storage.Dir
	Node    kafka.NodeID
	Machine sys.Machine
	Log     *slog.Logger
	Metrics *metrics.Broker
	// TopicConfig resolves the settings in force for a topic.
	TopicConfig func(*metadata.Topic) config.Topic
	// Purged reports that the directories of purged replicas are gone, at most purgeBatchMax at a time. It is called without locks from Run,
	// again every few seconds until the Image no longer asks for the purge; it must not block for long.
	Purged func([]kafka.TopicPartition)
	// ProducerExpiry is how long an idle idempotent producer is remembered; 0 means producerExpiryDefault.
	ProducerExpiry time.Duration
	// Peers carries replication to and from other nodes; NewHost registers its handlers, so it comes before Peers.Serve. nil: this node is
	// alone.
	Peers *peer.Peers
	// Submit is how this node tells the controller of ISR changes and of damage. nil: it does not.
	Submit Submit
	// LagMax is replica.lag.max; 0 means lagMaxDefault.
	LagMax time.Duration
	// CopyRate is how many bytes a second this node gives to replicas that are not in sync, as it is at the time of asking; nil: as many as
	// there are.
	CopyRate func() int64
}

// Acks of a publish.
const (
	// AcksAll answers when the batch is committed (I1).
	AcksAll int16 = -1
	// AcksNone and AcksLeader answer when the leader has appended.
	AcksNone   int16 = 0
	AcksLeader int16 = 1
)

// AppendItem is one batch of a publish. Batch is patched in place (base offset and leader epoch, outside its checksum) and is
// the caller's again when Append returns.
type AppendItem struct {
	TP    kafka.TopicPartition
	Batch record.Batch
	// IDs are the record ids that the batch carries in the header IDHeader, as recordid.Read lists them. Without them, or when the topic has
	// another header by now, Append reads them itself, under the lock of the partition; topics without a dedup window have none read.
	IDs      []recordid.Carried
	IDHeader string
	// Within is the leader epoch in which the batch was decided: in any other one it is refused (I3). Nil for a client's batch,
	// which no epoch has decided.
	Within *kafka.LeaderEpoch
}

// AppendResult is the answer for one AppendItem. With an Err other than nil, Base is NoOffset (C062).
type AppendResult struct {
	// Base is the offset of the batch's first record: for a repeat, of the original (I12). Where records of a batch repeat and others do not,
	// it is that of the batch as stored, in which the repeats are holes.
	Base kafka.Offset
	// LogStart is the first offset of the log, or NoOffset when unknown.
	LogStart kafka.Offset
	// TimestampMs is the append time in Unix milliseconds when the topic stamps it, else -1.
	TimestampMs int64
	// Repeat says that the records were stored before, by sequence or by record id, and OtherContent that one of them had another key or
	// value then: its id was used for two things, and what came now is not stored.
	Repeat, OtherContent bool
	// Cut and Originals are the verdict on the records that repeat a record id, one by one (recordid.Verdict).
	Cut       []int32
	Originals []recordid.Original
	// Reached says that the records may be in the log even where Err is set: they were appended, or repeat what was.
	Reached bool
	Err     error
	// Leader and LeaderEpoch are what this node knows of the leader, for answers that redirect the client (I13: NoNode and
	// NoEpoch when unknown).
	Leader      kafka.NodeID
	LeaderEpoch kafka.LeaderEpoch
}

// FetchItem asks for records of one partition.
type FetchItem struct {
	TP     kafka.TopicPartition
	Offset kafka.Offset
	// CurrentEpoch is the leader epoch the client believes in; NoEpoch skips the check.
	CurrentEpoch kafka.LeaderEpoch
	// LastFetchedEpoch is the epoch of the record before Offset as the client has it; NoEpoch skips the divergence check.
	LastFetchedEpoch kafka.LeaderEpoch
	// MaxBytes bounds the records of this partition.
	MaxBytes int
}

// FetchOptions holds for all items of a fetch.
type FetchOptions struct {
	// MaxBytes bounds the records of all partitions together. The first partition with records returns at least one batch,
	// however large.
	MaxBytes int
	// ReadCommitted bounds what is visible by the last stable offset instead of the high watermark.
	ReadCommitted bool
}

// FetchResult is the answer for one FetchItem, in the same place. Offsets are NoOffset when Err is not nil.
type FetchResult struct {
	// Records are whole batches, valid until the FetchBuffer they were read into is used again or released. The first may
	// start below the offset asked for.
	Records       []byte
	HighWatermark kafka.Offset
	LastStable    kafka.Offset
	LogStart      kafka.Offset
	// Diverging is set, without Err and without Records, when the client's log parts from this one at that point.
	Diverging *kafka.EpochEnd
	// Err says why there are no records. ErrOffsetNotAvailable is the one error that is worth parking on: the leader is so
	// new that its high watermark must not be shown yet (I2); Park wakes when it may be.
	Err         error
	Leader      kafka.NodeID
	LeaderEpoch kafka.LeaderEpoch
}

// Role is what this node does for a partition.
type Role uint8

const (
	// Idle: the log is open, and nothing may be done with it yet (no Image applied, or this process is not registered).
	Idle Role = iota
	// Leading: this node leads in the partition's leader epoch.
	Leading
	// Following: another node leads, or none does.
	Following
	// Kept: the topic is deleted and within its recovery window; the data is kept and served to nobody.
	Kept
	// Offline: the log is damaged or could not be opened; it is served to nobody (I11).
	Offline
)

// String returns the role in lower case, as describe commands show it.
func (r Role) String() string {
	switch r {
	case Idle:
		return "idle"
	case Leading:
		return "leading"
	case Following:
		return "following"
	case Kept:
		return "kept"
	case Offline:
		return "offline"
	}
	return "unknown"
}

// PartitionStatus describes a partition on this node.
type PartitionStatus struct {
	TP kafka.TopicPartition
	// Start, HW, End and Stored are the log's offsets: first, high watermark, written end, stored end.
	Start, HW, End, Stored kafka.Offset
	// RecordIDs is the number of record ids remembered; 0 where none are kept, as on replicas that are not in sync.
	RecordIDs int
	// Size is in bytes.
	Size  int64
	Epoch kafka.LeaderEpoch
	Role  Role
	// Leader is the leader by the last Image, or NoNode.
	Leader kafka.NodeID
	// Lost is when this node last ended a leadership of it, zero for never in this process.
	Lost time.Time
	// Problem says why the partition is Offline; empty otherwise.
	Problem string
}

// Special timestamps of ListOffset (protocol.md 3.5).
const (
	LatestTimestamp          int64 = -1
	EarliestTimestamp        int64 = -2
	MaxTimestamp             int64 = -3
	EarliestLocalTimestamp   int64 = -4
	LatestTieredTimestamp    int64 = -5
	EarliestPendingTimestamp int64 = -6
)
