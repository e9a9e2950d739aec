package controller

import "errors"

var (
	// ErrNotController means that another node is the active controller, that this one has stopped, or that its reign ended before the decision.
	// Nothing was decided.
	ErrNotController = errors.New("this node is not the active controller")
	// ErrUnknownOutcome means that the change was decided but this node stopped leading, or the caller stopped waiting, before
	// it was committed. It may have happened or not. Retriable: ask again, or repeat what is idempotent.
	ErrUnknownOutcome = errors.New("the outcome of the metadata change is unknown")
	// ErrBusy means that too many changes wait. Nothing was decided. Retriable.
	ErrBusy = errors.New("too many metadata changes are waiting")
	// ErrRefused means that the records of a decision cannot be applied: a defect, reported before anything was appended.
	ErrRefused = errors.New("the decision's records cannot be applied")
)
