package sys

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// noSpaceErrors are the two codes of a full disk.
var noSpaceErrors = []error{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL}

// tooManyFilesErrors say that there is no descriptor left.
var tooManyFilesErrors = []error{windows.ERROR_TOO_MANY_OPEN_FILES}

// syncFile uses package os, which is FlushFileBuffers.
func syncFile(f *os.File) error { return f.Sync() }

// syncDir only checks that the directory is there: NTFS journals names by itself and a directory cannot be flushed.
func syncDir(name string) error {
	_, err := os.Stat(name)
	return err
}

// syncAll is not there: flushing a volume needs administrator rights.
func syncAll(name string) error {
	return &os.PathError{Op: "syncfs", Path: name, Err: errors.ErrUnsupported}
}

// lockFile locks one byte far beyond any content: Windows locks are mandatory, and the lock file stays readable this way.
func lockFile(f *os.File) error {
	far := &windows.Overlapped{OffsetHigh: 1 << 30}
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	err = raw.Control(func(fd uintptr) { refused = windows.LockFileEx(windows.Handle(fd), flags, 0, 1, 0, far) })
	if err != nil {
		return &os.PathError{Op: "lock", Path: f.Name(), Err: os.ErrClosed}
	}
	if errors.Is(refused, windows.ERROR_LOCK_VIOLATION) {
		return fmt.Errorf("%s: %w", f.Name(), ErrLocked)
	}
	if refused != nil {
		return &os.PathError{Op: "lock", Path: f.Name(), Err: refused}
	}
	return nil
}

// systemBootID is "": Windows has no boot id that a power cut is sure to change, and "" never matches (I4).
func systemBootID() string { return "" }

// refusedError is the code of a dial that nobody listens for.
const refusedError = windows.WSAECONNREFUSED

// systemOpenFiles: Windows bounds handles by memory only.
func systemOpenFiles() int64 { return 0 }
