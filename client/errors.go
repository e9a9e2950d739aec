package client

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

var (
	// ErrOptions means that the options cannot work together. Nothing was started.
	ErrOptions = errors.New("bad options")
	// ErrAbandoned means that a function did not return although its context had ended; its record is delivered again, maybe while it still
	// works on it.
	ErrAbandoned = errors.New("a function did not end with its context")
)

// Retriable says whether doing the same again may succeed: that of the first error in the chain that knows.
func Retriable(err error) bool {
	var e interface{ Retriable() bool }
	return errors.As(err, &e) && e.Retriable()
}

// OutcomeUnknown says whether what was asked for may have been done all the same: that of the first error in the chain that knows.
func OutcomeUnknown(err error) bool {
	var e interface{ OutcomeUnknown() bool }
	return errors.As(err, &e) && e.OutcomeUnknown()
}

// PublishError means that a record was not acknowledged. Unless OutcomeUnknown, it is certain that it is not stored.
type PublishError struct {
	Topic     string
	Partition int32 // -1: none was chosen
	RecordID  string
	Attempts  int
	Err       error

	unknown, again bool
}

func (e *PublishError) Error() string {
	said := "was not stored"
	if e.unknown {
		said = "may or may not be stored: publish it again with the same record id"
	}
	return fmt.Sprintf("record %q to topic %q %s: %v", e.RecordID, e.Topic, said, e.Err)
}

func (e *PublishError) Unwrap() error { return e.Err }

// Retriable says whether publishing the same record with the same id again may succeed, and does no harm where ids are remembered.
func (e *PublishError) Retriable() bool { return e.again }

// OutcomeUnknown says whether the record may be stored.
func (e *PublishError) OutcomeUnknown() bool { return e.unknown }

// PartitionError means that a worker stopped a partition before the record at Offset, which is not committed; other partitions go on. Err is
// a *RangeError, a *SchemaError, a *PoisonError, or what a broker said. The next owner of the partition begins at the same record.
type PartitionError struct {
	Topic     string
	Partition int32
	Offset    int64 // the next to process
	Err       error
}

func (e *PartitionError) Error() string {
	return fmt.Sprintf("topic %q partition %d stopped at offset %d: %v", e.Topic, e.Partition, e.Offset, e.Err)
}

func (e *PartitionError) Unwrap() error { return e.Err }

// Retriable is false: somebody has to look first.
func (e *PartitionError) Retriable() bool { return false }

// OutcomeUnknown is false: what was committed is known.
func (e *PartitionError) OutcomeUnknown() bool { return false }

// RangeError means that the broker does not have the offset at which a partition was to go on; it has [Start, End), both -1 if it did not
// say. If Start > Offset, the records [Offset, Start) are gone, as after a longer stop than the topic's retention. If End < Offset, the
// partition has lost records that were there, or its topic was made anew. Nothing is skipped: set the group's offset (strandline group seek)
// once it is decided what to do about what is gone.
type RangeError struct{ Offset, Start, End int64 }

func (e *RangeError) Error() string {
	switch {
	case e.Start < 0:
		return fmt.Sprintf("offset %d is out of range", e.Offset)
	case e.Offset < e.Start:
		return fmt.Sprintf("offset %d is out of range: the partition has [%d, %d), so %d offsets are gone", e.Offset, e.Start, e.End, e.Start-e.Offset)
	}
	return fmt.Sprintf("offset %d is out of range: the partition has [%d, %d), so its end has moved back", e.Offset, e.Start, e.End)
}

// SchemaError means that the header schema-version of a record names a version that WorkerOptions.KnownSchema does not know; "" is no header.
type SchemaError struct{ Version string }

func (e *SchemaError) Error() string { return fmt.Sprintf("schema version %q is not known", e.Version) }

// PoisonError means that a record could not be processed, and Err is what the last of the attempts said.
type PoisonError struct {
	Attempts int
	Err      error
}

func (e *PoisonError) Error() string { return fmt.Sprintf("after %d attempts: %v", e.Attempts, e.Err) }

func (e *PoisonError) Unwrap() error { return e.Err }

// GroupError means that a worker could not be or remain a member of its group, or that its last commit was not acknowledged.
type GroupError struct {
	Group string
	Err   error

	last, unknown bool // the last commit is meant; it may be stored
}

func (e *GroupError) Error() string {
	if e.last && e.unknown {
		return fmt.Sprintf("group %q: the last commit may or may not be stored; what it covers may be delivered again: %v", e.Group, e.Err)
	}
	if e.last {
		return fmt.Sprintf("group %q: the last commit was refused; what it covers is delivered again: %v", e.Group, e.Err)
	}
	return fmt.Sprintf("group %q: %v", e.Group, e.Err)
}

func (e *GroupError) Unwrap() error { return e.Err }

// Retriable says whether a new worker may do better without a change by somebody; what a last commit did not cover is delivered again.
func (e *GroupError) Retriable() bool { return e.last || kerr.IsRetriable(e.Err) }

// OutcomeUnknown says whether a commit may be stored although it was not acknowledged.
func (e *GroupError) OutcomeUnknown() bool { return e.unknown }
