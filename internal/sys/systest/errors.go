package systest

import (
	"errors"
	"syscall"
)

var (
	// ErrCrashed means that the machine this file system belonged to has lost power or its process has died: nothing more
	// happens on it. What survived is in the FS that Crash returned.
	ErrCrashed = errors.New("machine has crashed")
	// ErrIO is the input/output error of a broken disk, for use with FailAt and Hook.
	ErrIO error = syscall.EIO
	// ErrNoSpace is the error of a full disk.
	ErrNoSpace error = syscall.ENOSPC
)

// SyncFault, returned by a hook for OpSyncAll, says that one file was at fault: its pending pages are dropped, those of all
// others stay pending.
type SyncFault struct {
	Name   string // path of the file whose pages are dropped
	Hidden bool   // when set, the next Sync of that file does not tell
	Err    error
}

// Error implements error.
func (f *SyncFault) Error() string { return f.Err.Error() }

// Unwrap gives the cause.
func (f *SyncFault) Unwrap() error { return f.Err }

// ShortWrite, returned by a hook for OpWrite, lets the first Bytes bytes through before Err.
type ShortWrite struct {
	Bytes int
	Err   error
}

// Error implements error.
func (w *ShortWrite) Error() string { return w.Err.Error() }

// Unwrap gives the cause.
func (w *ShortWrite) Unwrap() error { return w.Err }
