package config

import "math"

const (
	day       = "86400000" // ms
	twoWeeks  = "1209600000"
	noTiering = "there is no remote storage"
)

// defaultMinInsync is the stored config that keeps the default of min.insync.replicas as the controller resolved it when the topic was
// created (I1). It is a key of its own so that an administrator's value and the default stay apart: tools that compare what is set with
// what they set (Terraform) see no difference they did not make.
const defaultMinInsync = "strandline.default.min.insync.replicas"

// DefaultMinInsyncKey is the stored config under which the controller keeps the resolved default of min.insync.replicas (I1). Clients
// neither see nor set it.
const DefaultMinInsyncKey = defaultMinInsync

// MinInsyncKey is the topic config that PartitionState.EffectiveMinISR follows (I1).
const MinInsyncKey = "min.insync.replicas"

// topicTable lists the topic configs.
func topicTable() []Setting {
	return append(append(topicRetentionRows(), topicRecordRows()...), topicOwnRows()...)
}

func topicRetentionRows() []Setting {
	return []Setting{
		{Name: "retention.ms", Type: Long, Default: twoWeeks, Min: -1, Synonym: "log.retention.ms",
			Doc:   "How long records are kept, in milliseconds, counted from the broker's append time; -1 keeps them for ever.",
			topic: func(t *Topic) any { return &t.Retention }},
		{Name: "retention.bytes", Type: Long, Default: "-1", Min: -1, Synonym: "log.retention.bytes",
			Doc:   "Largest size of one partition in bytes; older segments are removed beyond it, but none younger than the minimum retention. -1 for no limit.",
			topic: func(t *Topic) any { return &t.RetentionBytes }},
		{Name: "cleanup.policy", Type: List, Default: "delete", Enum: []string{"delete", "compact"}, Synonym: "log.cleanup.policy",
			Doc:   "How old records are removed: delete removes whole segments by age and size, compact keeps the newest record of each key. Both may be given. An empty list removes nothing.",
			topic: func(t *Topic) any { return &t.CleanupPolicy }},
		{Name: "segment.bytes", Type: Int, Default: "1073741824", Min: 1024, Max: math.MaxInt32, Synonym: "log.segment.bytes",
			Doc:   "Size in bytes at which a new segment file is begun. Retention removes whole segments.",
			topic: func(t *Topic) any { return &t.SegmentBytes }},
		{Name: "segment.ms", Type: Long, Default: "604800000", Min: 1, Synonym: "log.roll.ms",
			Doc:   "Age in milliseconds at which a new segment file is begun.",
			topic: func(t *Topic) any { return &t.SegmentAge }},
		{Name: "file.delete.delay.ms", Type: Long, Default: "60000", Min: 0, Synonym: "log.segment.delete.delay.ms",
			Doc: "Accepted for compatibility; a removed segment is unlinked at once, and readers keep what they have open."},
		{Name: "index.interval.bytes", Type: Int, Default: "4096", Min: 0, Max: math.MaxInt32, Synonym: "log.index.interval.bytes",
			Doc:   "Distance in bytes between two entries of a segment's index.",
			topic: func(t *Topic) any { return &t.IndexInterval }},
		{Name: "segment.jitter.ms", Type: Long, Default: "0", Min: 0, Synonym: "log.roll.jitter.ms",
			Doc: "Accepted for compatibility; segments are begun at segment.ms exactly."},
		{Name: "segment.index.bytes", Type: Int, Default: "10485760", Min: 4, Max: math.MaxInt32, Synonym: "log.index.size.max.bytes",
			Doc: "Accepted for compatibility; an index is as large as its segment needs."},
		{Name: "preallocate", Type: Bool, Default: "false", Synonym: "log.preallocate",
			Doc: "Accepted for compatibility; segments grow."},
		{Name: "delete.retention.ms", Type: Long, Default: day, Min: 0, Synonym: "log.cleaner.delete.retention.ms",
			Doc:   "How long the tombstone of a key stays, in milliseconds, after compaction has removed the older records of that key. A replica or consumer that is away for longer may keep what was deleted.",
			topic: func(t *Topic) any { return &t.DeleteRetention }},
		{Name: "min.compaction.lag.ms", Type: Long, Default: "0", Min: 0, Synonym: "log.cleaner.min.compaction.lag.ms",
			Doc:   "Age in milliseconds below which a record is not compacted.",
			topic: func(t *Topic) any { return &t.MinCompactionLag }},
		{Name: "max.compaction.lag.ms", Type: Long, Default: "9223372036854775807", Min: 1, Synonym: "log.cleaner.max.compaction.lag.ms",
			Doc:   "Age in milliseconds by which a record is compacted, whatever min.cleanable.dirty.ratio is; the active segment is rolled for it.",
			topic: func(t *Topic) any { return &t.MaxCompactionLag }},
		{Name: "min.cleanable.dirty.ratio", Type: Double, Default: "0.5", Min: 0, Max: 1, Synonym: "log.cleaner.min.cleanable.ratio",
			Doc:   "Part of a log that must be uncompacted before it is compacted.",
			topic: func(t *Topic) any { return &t.MinDirtyRatio }},
		{Name: "remote.storage.enable", Type: Bool, Default: "false", Fixed: noTiering,
			Doc: "Tiered storage; only false is accepted."},
		{Name: "remote.log.copy.disable", Type: Bool, Default: "false", Fixed: noTiering,
			Doc: "Tiered storage; only false is accepted."},
		{Name: "remote.log.delete.on.disable", Type: Bool, Default: "false", Fixed: noTiering,
			Doc: "Tiered storage; only false is accepted."},
		{Name: "local.retention.ms", Type: Long, Default: "-2", Min: -2, Fixed: noTiering, Synonym: "log.local.retention.ms",
			Doc: "Tiered storage; only -2 (the same as retention.ms) is accepted."},
		{Name: "local.retention.bytes", Type: Long, Default: "-2", Min: -2, Fixed: noTiering, Synonym: "log.local.retention.bytes",
			Doc: "Tiered storage; only -2 (the same as retention.bytes) is accepted."},
	}
}

func topicRecordRows() []Setting {
	codecs := []string{"producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"}
	return []Setting{
		{Name: MinInsyncKey, Type: Int, Default: "1", Min: 1, Max: ReplicationFactorMax,
			Doc:   "In-sync replicas an acks=all publish needs; never more than the topic has replicas. The default is fixed at creation: 2 with three or more replicas, else 1.",
			topic: func(t *Topic) any { return &t.MinInsync }},
		{Name: defaultMinInsync, Type: Int, Default: "1", Min: 1, Max: ReplicationFactorMax, hidden: true,
			Doc: "The default of min.insync.replicas that was resolved at creation."},
		{Name: "max.message.bytes", Type: Int, Default: "1114112", Min: 0, Max: math.MaxInt32, Synonym: "message.max.bytes",
			Doc:   "Largest record batch as sent, in bytes. The default has room for one record of strandline.max.record.bytes.",
			topic: func(t *Topic) any { return &t.MaxBatchBytes }},
		{Name: "message.timestamp.type", Type: String, Default: "CreateTime", Enum: []string{"CreateTime", "LogAppendTime"}, Synonym: "log.message.timestamp.type",
			Doc:   "Whose clock stamps records: CreateTime keeps the producer's timestamps, LogAppendTime replaces them by the broker's. Retention goes by append time in both cases.",
			topic: func(t *Topic) any { return &t.TimestampType }},
		{Name: "message.timestamp.before.max.ms", Type: Long, Default: "9223372036854775807", Min: 0, Synonym: "log.message.timestamp.before.max.ms",
			Doc:   "How far a producer's timestamp may lie behind the broker's clock, in milliseconds. Without effect with LogAppendTime.",
			topic: func(t *Topic) any { return &t.TimestampBefore }},
		{Name: "message.timestamp.after.max.ms", Type: Long, Default: "3600000", Min: 0, Synonym: "log.message.timestamp.after.max.ms",
			Doc:   "How far a producer's timestamp may lie ahead of the broker's clock, in milliseconds. Without effect with LogAppendTime.",
			topic: func(t *Topic) any { return &t.TimestampAfter }},
		{Name: "compression.type", Type: String, Default: "producer", Enum: codecs, Synonym: "compression.type",
			Doc:   "Codec of stored batches; producer stores them as they were sent, which costs the broker nothing.",
			topic: func(t *Topic) any { return &t.CompressionType }},
		{Name: "compression.gzip.level", Type: Int, Default: "-1", Min: -1, Max: 9, Synonym: "compression.gzip.level",
			Doc: "Accepted for compatibility; the codec's default level is used."},
		{Name: "compression.lz4.level", Type: Int, Default: "9", Min: 1, Max: 17, Synonym: "compression.lz4.level",
			Doc: "Accepted for compatibility; the codec's default level is used."},
		{Name: "compression.zstd.level", Type: Int, Default: "3", Min: -131072, Max: 22, Synonym: "compression.zstd.level",
			Doc: "Accepted for compatibility; the codec's default level is used."},
		{Name: "flush.messages", Type: Long, Default: "9223372036854775807", Min: 1, Synonym: "log.flush.interval.messages",
			Doc: "Accepted for compatibility; strandline.flush decides when records are on disk."},
		{Name: "flush.ms", Type: Long, Default: "9223372036854775807", Min: 0, Synonym: "log.flush.interval.ms",
			Doc: "Accepted for compatibility; strandline.flush decides when records are on disk."},
		{Name: "unclean.leader.election.enable", Type: Bool, Default: "false", Synonym: "unclean.leader.election.enable",
			Fixed: "a replica that may miss acknowledged records never leads",
			Doc:   "Only false is accepted: elections are always clean."},
		{Name: "leader.replication.throttled.replicas", Type: List, Default: "",
			Doc: noThrottle},
		{Name: "follower.replication.throttled.replicas", Type: List, Default: "",
			Doc: noThrottle},
	}
}

func topicOwnRows() []Setting {
	return []Setting{
		{Name: "strandline.minimum.retention.ms", Type: Long, Default: twoWeeks, DevDefault: dev("0"), Min: 0,
			Doc:   "No record younger than this (or than retention.ms, if that is less) is removed by size or disk pressure, in milliseconds.",
			topic: func(t *Topic) any { return &t.MinimumRetention }},
		{Name: "strandline.flush", Type: String, Default: "synced", DevDefault: dev("replicated"), Enum: []string{"synced", "replicated"},
			Doc:   "What stored means for an acknowledgement: synced is on disk, replicated is appended (Kafka's contract).",
			topic: func(t *Topic) any { return &t.Flush }},
		{Name: "strandline.max.record.bytes", Type: Int, Default: "1048576", Min: 0, Max: math.MaxInt32,
			Doc:   "Largest key + value + headers of one record, uncompressed, in bytes.",
			topic: func(t *Topic) any { return &t.MaxRecordBytes }},
		{Name: "strandline.dedup.window.ms", Type: Long, Default: "0", Min: 0,
			Doc:   "How long a record id is remembered, in milliseconds, in each partition by itself; a record that repeats one meanwhile is not stored again and is answered with the original's offset. 0 is off. No record younger than this is removed by age, size or disk pressure. topic create sets 120000 unless told otherwise; Kafka's CreateTopics sets nothing.",
			topic: func(t *Topic) any { return &t.DedupWindow }},
		{Name: "strandline.dedup.header", Type: String, Default: "record-id",
			Doc:   "The record header that carries the record id; of several headers of that name the last counts. A record without one, or with an empty value, is no repeat of any other.",
			topic: func(t *Topic) any { return &t.DedupHeader }},
		{Name: "strandline.delete.recovery.ms", Type: Long, Default: day, DevDefault: dev("0"), Min: 0,
			Doc:   "How long the deleted topic can be restored, in milliseconds.",
			topic: func(t *Topic) any { return &t.DeleteRecovery }},
		{Name: "strandline.acks.minimum", Type: String, Default: "0", Enum: []string{"0", "1", "all"},
			Doc:   "Publishes with weaker acks are refused.",
			topic: func(t *Topic) any { return &t.AcksMinimum }},
	}
}
