package storage

import (
	"log/slog"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/sys"
)

// DirOptions says which directory to open and with what.
type DirOptions struct {
	Machine sys.Machine
	Path    string
	// Log receives what the directory has to say; nil discards it.
	Log *slog.Logger
	// Metrics may be nil.
	Metrics *metrics.Storage
	// ReserveBytes is the size of the reserve (see reserve.go), less on a small disk; 0 keeps none.
	ReserveBytes int64
	// LimitBytes is how much the directory may hold, and LimitPercent how full its disk may be, before records of user topics are refused (see
	// limit.go); 0 is no such limit.
	LimitBytes, LimitPercent int64
	// OpenFilesMax bounds the open segment files; 0 means OpenFilesMaxDefault.
	OpenFilesMax int64
}

// Identity says whose directory it is.
type Identity struct {
	// ClusterID is "" while the directory belongs to no cluster.
	ClusterID string
	// NodeID is kafka.NoNode while the directory belongs to no cluster.
	NodeID kafka.NodeID
	// DirectoryID is minted once for an empty directory.
	DirectoryID kafka.DirectoryID
	// FormatVersion is the version of the directory's layout.
	FormatVersion int
}

// CloseOptions says how a directory is left.
type CloseOptions struct {
	// Clean asks for the clean-shutdown marker; it is written only if every log was loaded, flushed and undamaged.
	Clean bool
	// BrokerEpoch goes into the marker.
	BrokerEpoch kafka.BrokerEpoch
}

// FlushPolicy says when a record counts as stored.
type FlushPolicy uint8

const (
	// Synced counts a record when it is on disk.
	Synced FlushPolicy = iota
	// Replicated counts a record when it is written.
	Replicated
)

func (p FlushPolicy) String() string {
	if p == Replicated {
		return "replicated"
	}
	return "synced"
}

// LogOptions configure a log. Zero sizes and times take the defaults of limits.go.
type LogOptions struct {
	Policy FlushPolicy
	// SegmentBytes is the size at which a segment is rolled.
	SegmentBytes int64
	// SegmentAge rolls a segment this long after its first append; 0 means never.
	SegmentAge time.Duration
	// IndexInterval is the number of bytes between index entries.
	IndexInterval int64
	// ProducerExpiry is how long an idle producer is remembered; 0 means the default.
	ProducerExpiry time.Duration
	// Essential lets the log go on when the disk is full: its appends may spend the reserve, and are not refused when it is spent. The
	// metadata log always is.
	Essential bool
	// Start is the first offset of a log that does not exist yet.
	Start kafka.Offset
	// OnStored is called without locks, on the syncer's goroutine (for the metadata log: inside Sync), when StoredEnd moved,
	// with err == nil; and once with ErrSyncFailed wrapped when a sync failed. Never from inside an append or a truncation, and not
	// after Close. It must not block.
	OnStored func(end kafka.Offset, err error)
}

// Recovery reports what opening a log found.
type Recovery struct {
	// Damaged is a *CorruptError, or nil.
	Damaged error
	// Truncated counts the bytes of a torn tail that were cut.
	Truncated int64
	// Unclean says that the log may have lost bytes it had reported as stored (I4): damage, or the policy `replicated`
	// without a clean shutdown and under another boot id.
	Unclean bool
	// SyncPointPolicy is the policy under which the ends of the last run were reported.
	SyncPointPolicy FlushPolicy
	// HighWatermark is a lower bound of the high watermark.
	HighWatermark kafka.Offset
}

// Appended says where a batch went.
type Appended struct {
	// Base is the offset of the first record, End the one after the last.
	Base, End kafka.Offset
	// TimestampMs is the append time for topics with log append time, else -1.
	TimestampMs int64
}

// SequenceCheck is the answer of Log.CheckSequence.
type SequenceCheck struct {
	// Duplicate says that the batch is stored already, at [Base, End).
	Duplicate   bool
	Base, End   kafka.Offset
	TimestampMs int64 // as in Appended
}

// ReadLimits bound one Read.
type ReadLimits struct {
	// MaxBytes bounds the bytes appended to dst.
	MaxBytes int
	// AtLeastOne returns the first batch even if it is larger than MaxBytes.
	AtLeastOne bool
}

// TimestampOffset is a record found by time.
type TimestampOffset struct {
	TimestampMs int64
	Offset      kafka.Offset
	Epoch       kafka.LeaderEpoch
}

// RetentionPolicy says what may be removed. Ages count from the append time.
type RetentionPolicy struct {
	// Age removes segments whose youngest record is older; <= 0 means no limit by age.
	Age time.Duration
	// MinimumAge protects younger records from every limit (I9); <= 0 means no protection.
	MinimumAge time.Duration
	// Bytes removes the oldest segments while the log is larger; <= 0 means no limit by size.
	Bytes int64
}

// ProducerEntry is what a log remembers of one idempotent producer.
type ProducerEntry struct {
	ID    kafka.ProducerID
	Epoch kafka.ProducerEpoch
	// Batches are the last batches, oldest first, at most producerBatchesMax.
	Batches []ProducerBatch
	// LastAppendMs is the append time of the newest one, in milliseconds since the Unix epoch.
	LastAppendMs int64
	// OpenTransaction is the first offset of the producer's open transaction, or NoOffset.
	OpenTransaction kafka.Offset
}

// ProducerBatch is one remembered batch.
type ProducerBatch struct {
	FirstSequence, LastSequence int32
	Base, End                   kafka.Offset
	TimestampMs                 int64 // as in Appended
}

// DumpedBatch is one batch as DumpLog finds it.
type DumpedBatch struct {
	File     string
	Pos      int64
	Header   BatchHeader
	Checksum error // nil, or what is wrong with the bytes
}

// BatchHeader are the fields of a batch that can be read without its records.
type BatchHeader struct {
	Base, End     kafka.Offset
	Bytes         int64
	Epoch         kafka.LeaderEpoch
	Attributes    int16
	BaseTimestamp int64
	MaxTimestamp  int64
	ProducerID    kafka.ProducerID
	ProducerEpoch kafka.ProducerEpoch
	BaseSequence  int32
	Count         int32
	CRC           uint32
}

// newest is the largest timestamp of the batch's records, -1 if it has none: compaction leaves batches without any.
func (h BatchHeader) newest() int64 {
	if h.Count == 0 {
		return -1
	}
	return h.MaxTimestamp
}

// VerifyReport is the result of VerifyLog.
type VerifyReport struct {
	Segments   int
	Batches    int64
	Bytes      int64
	Start, End kafka.Offset
	// Problems are all *CorruptError, at most verifyProblemsMax.
	Problems []error
}
