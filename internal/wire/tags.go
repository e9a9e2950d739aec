package wire

// Tagged fields of our own in messages of the protocol. Who does not know a tag skips it, as the protocol asks of everybody; the numbers lie
// far above any that Kafka is likely to use.
const (
	// TagRecordIDs, in a partition of DescribeLogDirs, is how many record ids this replica remembers: 8 bytes, big endian. It is left out
	// where that is none.
	TagRecordIDs uint32 = 10_000
	// TagReplicaEnds, in a partition of DescribeLogDirs, is where this replica stands: its first offset, the high watermark that it knows and the
	// end of its log, 8 bytes each, big endian. It is left out where the log is not open.
	TagReplicaEnds uint32 = 10_001
	// TagDiskRoom, in a directory of DescribeLogDirs, is the disk limit that is reached first: what is in use of it and what it is, 8 bytes each, big
	// endian, then why records of user topics are refused, as text; none says that they are taken. It is left out where nobody knows.
	TagDiskRoom uint32 = 10_020
	// TagOutcome, in a Produce request (9+), asks for the same tag in each partition of the answer: an Outcome. Its value is one byte: 1 says that the
	// batches carry record ids, which a topic without a dedup window is to refuse. docs/formats/produce-outcome.md.
	TagOutcome uint32 = 10_010
)
