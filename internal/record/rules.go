package record

import "time"

// Rules are what a topic and a request's version allow a client's batch to be. The zero value of a limit means "no limit" except
// where it says otherwise.
type Rules struct {
	// MaxBatchBytes is the largest batch as sent, in bytes.
	MaxBatchBytes int
	// MaxRecordBytes is the largest record, in bytes: its key, value, header keys and header values, uncompressed.
	MaxRecordBytes int
	// MaxDecompressedBytes caps what the batch may decompress to; 0 means DecompressedLimit(MaxBatchBytes).
	MaxDecompressedBytes int
	// RequireKey refuses records without a key (compacted topics).
	RequireKey bool
	// ZstdAllowed is false for Produce requests below version 7.
	ZstdAllowed bool
	// AllowControl accepts control batches: never for clients.
	AllowControl bool
	// AllowTransactional accepts transactional batches.
	AllowTransactional bool
	// LogAppendTime says that the leader will stamp the records, so the client's timestamps are not judged.
	LogAppendTime bool
	// TimestampBefore and TimestampAfter bound how far a timestamp may lie before and after NowMs; 0 means no bound.
	TimestampBefore, TimestampAfter time.Duration
	// NowMs is the broker's time in milliseconds since the Unix epoch.
	NowMs int64
}
