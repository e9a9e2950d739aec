package replica

import "errors"

// The errors of this package. Besides them Append passes on storage.ErrOutOfOrderSequence, storage.ErrProducerFenced and
// storage.ErrTooLarge.
var (
	// ErrNotLeader: this node does not lead the partition, or stopped leading it while the request was parked. The client
	// looks up the leader and retries.
	ErrNotLeader = errors.New("not the leader of the partition")
	// ErrFencedEpoch: the client names a leader epoch older than ours; it looks up the leader and retries.
	ErrFencedEpoch = errors.New("leader epoch of the request is older than the partition's")
	// ErrUnknownEpoch: the client names a leader epoch this node has not heard of yet; it retries.
	ErrUnknownEpoch = errors.New("leader epoch of the request is not known here yet")
	// ErrUnknownPartition: this node holds no such partition, or its topic is deleted.
	ErrUnknownPartition = errors.New("unknown partition")
	// ErrNotEnoughReplicas: the committed ISR is below the effective min ISR; nothing was appended (I1).
	ErrNotEnoughReplicas = errors.New("in-sync replicas below min.insync.replicas")
	// ErrNotEnoughReplicasAfterAppend: the ISR fell below its minimum after the append and before it was committed; the record
	// may or may not survive.
	ErrNotEnoughReplicasAfterAppend = errors.New("in-sync replicas fell below min.insync.replicas after the append")
	// ErrTimedOut: not committed within the time the client gave; the record may or may not survive.
	ErrTimedOut = errors.New("not committed in time")
	// ErrOffsetNotAvailable: the leader is new and its high watermark is not settled (I2); the client retries.
	ErrOffsetNotAvailable = errors.New("high watermark is not settled yet")
	// ErrOutOfRange: the offset is below the start or above the end of the log.
	ErrOutOfRange = errors.New("offset out of range")
	// ErrStorage: the log can not be read or written: damaged, offline, full, or its disk is stalled. Retriable; the message
	// says which.
	ErrStorage = errors.New("storage error")
	// ErrRepeats: every record of the batch is stored already, by their ids, but not one behind the other, so that no offset answers all.
	// Nothing was appended, and nothing is missing: to the client it is a success without an offset.
	ErrRepeats = errors.New("every record of the batch is stored already, at offsets that do not follow each other")
	// ErrRecordIDs: whether the record ids of the batch repeat cannot be said, or they cannot be remembered, now; nothing was appended, and the
	// client retries. The message says which.
	ErrRecordIDs = errors.New("record ids cannot be taken now")
	// ErrStopped: the host is stopping, or the request was cancelled.
	ErrStopped = errors.New("stopped")
	// ErrAcksRefused: the topic refuses publishes with so weak acks (strandline.acks.minimum); nothing was appended.
	ErrAcksRefused = errors.New("acks weaker than the topic's strandline.acks.minimum")
	// ErrBadAcks: acks is not -1, 0 or 1; nothing was appended.
	ErrBadAcks = errors.New("acks must be -1, 0 or 1")
	// ErrBadTimestamp: a negative timestamp that means nothing to ListOffset.
	ErrBadTimestamp = errors.New("unknown special timestamp")
)
