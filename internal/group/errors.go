package group

import "errors"

var (
	// ErrUnknownRecord means that a record's key or value has a version that this release does not know: the progress log was written
	// by a newer one. The shard must not be used: it would answer guessed positions (I8).
	ErrUnknownRecord = errors.New("unknown record version")
	// ErrMalformed means that a record cannot be read although its version is known. The shard must not be used (I8).
	ErrMalformed = errors.New("malformed record")
	// ErrPosition means that a text is no position.
	ErrPosition = errors.New("position")
)
