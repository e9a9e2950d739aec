package sys

import "errors"

var (
	// ErrLocked means that another process, or another open file of this one, holds the lock.
	ErrLocked = errors.New("file is locked by another process")
	// ErrTooLarge means that a file holds more bytes than its reader was told to expect, so it is not what it claims to be.
	ErrTooLarge = errors.New("file is larger than its limit")
)

// IsNoSpace reports whether err says that the disk, or this user's share of it, is full. Such a failure is undone by
// truncation and may be retried, unlike a failed sync (I11).
func IsNoSpace(err error) bool {
	for _, full := range noSpaceErrors {
		if errors.Is(err, full) {
			return true
		}
	}
	return false
}

// IsTooManyFiles reports whether err says that this process, or the machine, has no descriptor left to open a file or socket with.
// Whatever was to be done with it has not been begun, and may be tried again.
func IsTooManyFiles(err error) bool {
	for _, none := range tooManyFilesErrors {
		if errors.Is(err, none) {
			return true
		}
	}
	return false
}

// IsRefused reports whether a dial failed because nobody listens at the address.
func IsRefused(err error) bool { return errors.Is(err, refusedError) }
