package server

import (
	"context"
	"errors"

	"strandline.dev/internal/audit"
	"strandline.dev/internal/config"
	"strandline.dev/internal/controller"
	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/replica"
	"strandline.dev/internal/storage"
)

// errReplyType means that the controller answered an event with another event's reply: a broken invariant of ours.
var errReplyType = errors.New("the controller's reply does not fit the event")

// codes is the one error table of both doors: every sentinel of the packages below, and the protocol's code for it. A test reads those
// packages' sources and fails when one is missing. Order matters only for errors that wrap several.
var codes = []struct {
	err  error
	code kafka.ErrorCode
}{
	{replica.ErrNotLeader, kafka.NotLeaderOrFollower},
	{replica.ErrFencedEpoch, kafka.FencedLeaderEpoch},
	{replica.ErrUnknownEpoch, kafka.UnknownLeaderEpoch},
	{replica.ErrUnknownPartition, kafka.UnknownTopicOrPartition},
	{replica.ErrNotEnoughReplicas, kafka.NotEnoughReplicas},
	{replica.ErrNotEnoughReplicasAfterAppend, kafka.NotEnoughReplicasAfterAppend},
	{replica.ErrTimedOut, kafka.RequestTimedOut},
	{replica.ErrOffsetNotAvailable, kafka.OffsetNotAvailable},
	{replica.ErrOutOfRange, kafka.OffsetOutOfRange},
	{replica.ErrStorage, kafka.KafkaStorageError},
	{replica.ErrRepeats, kafka.DuplicateSequenceNumber}, // idempotent clients take it as success; others get none (produce.go repeats)
	{replica.ErrRecordIDs, kafka.KafkaStorageError},     // the code of a full disk: clients retry it
	{replica.ErrStopped, kafka.NotLeaderOrFollower},     // the node goes away: the client looks for the next leader
	{replica.ErrAcksRefused, kafka.InvalidRequiredAcks},
	{replica.ErrBadAcks, kafka.InvalidRequiredAcks},
	{replica.ErrBadTimestamp, kafka.UnsupportedVersion},

	{controller.ErrNotController, kafka.NotController},
	{controller.ErrBusy, kafka.ThrottlingQuotaExceeded},
	{controller.ErrUnknownOutcome, kafka.RequestTimedOut}, // "it may have happened": what a time-out means to clients

	{coordinator.ErrNotCoordinator, kafka.NotCoordinator},
	{coordinator.ErrLoading, kafka.CoordinatorLoadInProgress},
	{coordinator.ErrNotAvailable, kafka.CoordinatorNotAvailable},
	{coordinator.ErrUnreadable, kafka.CoordinatorNotAvailable}, // the client waits; any position would be a guess (I8)
	{coordinator.ErrUncommitted, kafka.CoordinatorNotAvailable},
	{coordinator.ErrBusy, kafka.CoordinatorNotAvailable},

	{audit.ErrUnavailable, kafka.PolicyViolation}, // not retriable, so that people read why

	{storage.ErrOutOfOrderSequence, kafka.OutOfOrderSequenceNumber},
	{storage.ErrProducerFenced, kafka.InvalidProducerEpoch},
	{storage.ErrTooLarge, kafka.RecordListTooLarge},
	{storage.ErrOutOfRange, kafka.OffsetOutOfRange},
	{storage.ErrClosed, kafka.NotLeaderOrFollower},
	{storage.ErrNoSpace, kafka.KafkaStorageError},
	{storage.ErrIDsLoading, kafka.KafkaStorageError},
	{storage.ErrIDsFull, kafka.KafkaStorageError},
	{storage.ErrTooManyFiles, kafka.KafkaStorageError},
	{storage.ErrSyncFailed, kafka.KafkaStorageError},

	{record.ErrTruncated, kafka.CorruptMessage},
	{record.ErrMalformed, kafka.CorruptMessage},
	{record.ErrMagic, kafka.InvalidRecord},
	{record.ErrChecksum, kafka.CorruptMessage},
	{record.ErrCodec, kafka.InvalidRecord},
	{record.ErrCompressed, kafka.CorruptMessage},
	{record.ErrTooLarge, kafka.MessageTooLarge},
	{record.ErrRecord, kafka.InvalidRecord},

	{config.ErrUnknown, kafka.InvalidConfig},
	{config.ErrInvalid, kafka.InvalidConfig},
	{config.ErrReadOnly, kafka.InvalidConfig},

	{context.DeadlineExceeded, kafka.RequestTimedOut},
	{context.Canceled, kafka.RequestTimedOut},
}

// kinds are the codes of refused batches.
var kinds = map[record.Kind]kafka.ErrorCode{
	record.Corrupt:                kafka.CorruptMessage,
	record.InvalidRecord:          kafka.InvalidRecord,
	record.InvalidTimestamp:       kafka.InvalidTimestamp,
	record.BatchTooLarge:          kafka.MessageTooLarge,
	record.RecordTooLarge:         kafka.MessageTooLarge,
	record.UnsupportedCompression: kafka.UnsupportedCompressionType,
}

// CodeOf returns the protocol's code of an error; false when the table does not know it.
func CodeOf(err error) (kafka.ErrorCode, bool) {
	if err == nil {
		return kafka.None, true
	}
	if invalid := (*record.InvalidError)(nil); errors.As(err, &invalid) {
		code, ok := kinds[invalid.Kind]
		return code, ok
	}
	if corrupt := (*storage.CorruptError)(nil); errors.As(err, &corrupt) {
		return kafka.KafkaStorageError, true
	}
	for _, e := range codes {
		if errors.Is(err, e.err) {
			return e.code, true
		}
	}
	return kafka.UnknownServerError, false
}

// code is CodeOf with a loud log for what is unmapped: never a time-out, never silence.
func (s *Server) code(err error, doing string) kafka.ErrorCode {
	code, ok := CodeOf(err)
	if !ok {
		s.cfg.Log.Error("an internal error has no protocol code", "doing", doing, "error", err)
	}
	return code
}
