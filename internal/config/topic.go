package config

import (
	"time"
)

// Unlimited is the duration that means "no limit": the value -1 of retention.ms.
const Unlimited time.Duration = -1

// Flush is what "stored" means for a replica's acknowledgement (I1).
type Flush uint8

// The flush policies.
const (
	// FlushSynced counts a replica only when the bytes are on disk.
	FlushSynced Flush = iota
	// FlushReplicated counts a replica when it has appended: Kafka's contract.
	FlushReplicated
)

// String returns the config value.
func (f Flush) String() string {
	if f == FlushReplicated {
		return "replicated"
	}
	return "synced"
}

// TimestampType says whose clock stamps the records of a topic.
type TimestampType uint8

// The timestamp types.
const (
	// CreateTime keeps the producer's timestamps.
	CreateTime TimestampType = iota
	// LogAppendTime replaces them by the broker's append time.
	LogAppendTime
)

// String returns the config value.
func (t TimestampType) String() string {
	if t == LogAppendTime {
		return "LogAppendTime"
	}
	return "CreateTime"
}

// Topic is the resolved configuration of one topic: what is set on it, else what the broker gives, else the default.
type Topic struct {
	// Retention is how long records are kept, counted from the broker's append time; Unlimited for ever.
	Retention time.Duration
	// RetentionBytes bounds a partition, in bytes; -1 for no bound.
	RetentionBytes int64
	// MinimumRetention is the age below which size and disk pressure remove nothing; min(this, Retention) counts (I9).
	MinimumRetention time.Duration
	SegmentBytes     int64
	SegmentAge       time.Duration
	// MaxBatchBytes bounds one record batch as sent, in bytes.
	MaxBatchBytes int
	// MaxRecordBytes bounds key + value + headers of one record, uncompressed, in bytes.
	MaxRecordBytes  int
	Flush           Flush
	TimestampType   TimestampType
	TimestampBefore time.Duration // how far a producer's timestamp may lie behind the broker's clock
	TimestampAfter  time.Duration // how far it may lie ahead
	// CompressionType is "producer" (store as sent) or a codec.
	CompressionType string
	// CleanupPolicy has "delete", "compact", or both. Empty keeps everything.
	CleanupPolicy []string
	// DeleteRetention is how long tombstones stay once they are compacted.
	DeleteRetention time.Duration
	// MinCompactionLag is the age below which a record is not compacted, MaxCompactionLag the one by which it is.
	MinCompactionLag, MaxCompactionLag time.Duration
	// MinDirtyRatio is the part of a log that must be uncompacted before it is compacted.
	MinDirtyRatio float64
	// MinInsync is min.insync.replicas; PartitionState.EffectiveMinISR is what counts (I1).
	MinInsync int
	// AcksMinimum is "0", "1" or "all": weaker publishes are refused.
	AcksMinimum string
	// DeleteRecovery is how long the deleted topic can be restored.
	DeleteRecovery time.Duration
	// DedupWindow is how long a record id is remembered (I12); 0 is off.
	DedupWindow time.Duration
	// DedupHeader is the header that carries it.
	DedupHeader string
	// IndexInterval is the distance of two index entries, in bytes.
	IndexInterval int64
}

// ResolveTopic gives the configuration of a topic whose stored overrides are given. An error wraps ErrInvalid: a stored value that this
// release does not accept.
func ResolveTopic(overrides map[string]string, broker Broker, dev bool) (Topic, error) {
	var t Topic
	for _, s := range topicRows {
		if s.topic == nil {
			continue
		}
		if err := s.store(s.topic(&t), topicValue(s, overrides, &broker, dev)); err != nil {
			return Topic{}, err
		}
	}
	return t, nil
}

// topicValue is the value that counts for a topic: what is set on it, else what the broker gives, else the default.
func topicValue(s *Setting, overrides map[string]string, broker *Broker, dev bool) string {
	if v, ok := overrides[s.Name]; ok {
		return v
	}
	if s.Name == MinInsyncKey {
		if v, ok := overrides[defaultMinInsync]; ok {
			return v
		}
	}
	if s.Synonym != "" {
		v, _ := broker.value(rowsByName[ScopeBroker][s.Synonym])
		return v
	}
	return s.DefaultFor(dev)
}

// ValidateTopic checks overrides as a client sends them. The error names key, value, reason and what is allowed; it wraps ErrUnknown or
// ErrInvalid.
func ValidateTopic(overrides map[string]string) error {
	return checkAll(ScopeTopic, overrides)
}
