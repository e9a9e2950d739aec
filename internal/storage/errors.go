package storage

import (
	"errors"
	"fmt"
)

var (
	// ErrOutOfRange means an offset below the log's start or above its end.
	ErrOutOfRange = errors.New("offset out of range")
	// ErrClosed means the log or directory was closed; nothing was changed.
	ErrClosed = errors.New("log is closed")
	// ErrNoSpace means the disk is full; the append was undone by truncation and may be retried.
	ErrNoSpace = errors.New("no space left on the data directory's disk")
	// ErrSyncFailed means a sync of this log failed once; that is final, also across restarts (I11).
	ErrSyncFailed = errors.New("a sync of this log failed")
	// ErrTooManyFiles means that a sync has to make room for another open segment; nothing was appended, and it may be retried.
	ErrTooManyFiles = errors.New("too many segment files are open")
	// ErrOutOfOrderSequence means a producer's sequence does not follow its last one; nothing was appended.
	ErrOutOfOrderSequence = errors.New("out of order producer sequence")
	// ErrProducerFenced means a batch of an older producer epoch; nothing was appended.
	ErrProducerFenced = errors.New("producer epoch is fenced")
	// ErrTooLarge means a batch that does not fit in a segment; nothing was appended.
	ErrTooLarge = errors.New("batch is larger than a segment")
	// ErrInvalidAppend means batches that do not continue the log: a wrong first offset, a gap, or an older leader epoch.
	ErrInvalidAppend = errors.New("batches do not continue the log")
	// ErrIDsLoading means that the record ids in the log are not all read yet, so that a repeat could not be told; nothing was appended.
	ErrIDsLoading = errors.New("the record ids of the last dedup window are still being read")
	// ErrIDsFull means that no more record ids can be remembered until some have passed their window; nothing was appended.
	ErrIDsFull = errors.New("too many record ids within strandline.dedup.window.ms: no more can be remembered yet")
	// ErrWrongIdentity means the directory belongs to another cluster or node.
	ErrWrongIdentity = errors.New("data directory belongs to another node or cluster")
	// ErrIdentityLost means the directory holds data but no readable identity; it is never invented.
	ErrIdentityLost = errors.New("data directory holds data but its identity cannot be read")
	// ErrForeign means the path is no data directory and holds other files. Nothing was changed: a mistyped path must not fill
	// somebody's home with ours.
	ErrForeign = errors.New("holds other files and is not a data directory")
	// ErrExists means the log is already open, or the target of a move exists.
	ErrExists = errors.New("log exists already")
	// ErrNotFound means there is no such log directory.
	ErrNotFound = errors.New("no such log")
	// ErrGone: the data directory is no longer where it was opened; nothing more is acknowledged and the node has to stop.
	ErrGone = errors.New("the data directory is gone")
)

// CorruptError reports bytes that are not what was written. It takes one log out of service, never the process.
type CorruptError struct {
	File string // path of the damaged file
	Pos  int64  // byte position of the first bad byte known, 0 when unknown
	Why  string // what is wrong, in words
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: damaged at byte %d: %s", e.File, e.Pos, e.Why)
}
