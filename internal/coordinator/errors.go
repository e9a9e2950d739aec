package coordinator

import "errors"

var (
	// ErrNotCoordinator: this node does not lead the group's partition, or lost it while the request was parked. What the request
	// asked for may or may not have happened; the client looks up the coordinator and tries again.
	ErrNotCoordinator = errors.New("this node is not the coordinator of the group")
	// ErrLoading: the coordinator has not read its log to the end yet; the client tries again.
	ErrLoading = errors.New("the coordinator is loading")
	// ErrNotAvailable: there is no coordinator at present: its topic does not exist yet, or the partition has no leader.
	ErrNotAvailable = errors.New("no coordinator is available")
	// ErrUnreadable: the coordinator's log is damaged or was written by a newer release. Nothing is known about the group's progress,
	// and nothing is guessed (I8); the client waits until an operator has repaired it.
	ErrUnreadable = errors.New("the progress log cannot be read")
	// ErrUncommitted: what was decided was not committed in time; it may still be.
	ErrUncommitted = errors.New("not committed in time")
	// ErrBusy: too many requests wait for this coordinator; the client tries again.
	ErrBusy = errors.New("the coordinator has too many requests waiting")
)
