//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package sys

import (
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// noSpaceErrors are the error numbers of a full disk and of a used-up quota.
var noSpaceErrors = []error{unix.ENOSPC, unix.EDQUOT}

// tooManyFilesErrors say that there is no descriptor left.
var tooManyFilesErrors = []error{unix.EMFILE, unix.ENFILE}

// bootIDName is macOS's random id of the running boot; the other systems have none and read as "".
const bootIDName = "kern.bootsessionuuid"

// syncFile uses package os: on macOS that is F_FULLFSYNC, because fsync there does not reach the disk.
func syncFile(f *os.File) error { return f.Sync() }

// syncDir makes the names in a directory durable.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// syncAll is not there: sync(2) may return before the writing is done.
func syncAll(name string) error {
	return &os.PathError{Op: "syncfs", Path: name, Err: errors.ErrUnsupported}
}

// lockFile takes a lock that the kernel drops with the descriptor.
func lockFile(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	if err := raw.Control(func(fd uintptr) { refused = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) }); err != nil {
		return &os.PathError{Op: "flock", Path: f.Name(), Err: os.ErrClosed}
	}
	if errors.Is(refused, unix.EWOULDBLOCK) {
		return fmt.Errorf("%s: %w", f.Name(), ErrLocked)
	}
	if refused != nil {
		return &os.PathError{Op: "flock", Path: f.Name(), Err: refused}
	}
	return nil
}

// systemBootID returns the kernel's boot id, or "" (I4).
func systemBootID() string {
	id, err := unix.Sysctl(bootIDName)
	if err != nil {
		return ""
	}
	return id
}

// refusedError is the error number of a dial that nobody listens for.
const refusedError = unix.ECONNREFUSED

// systemOpenFiles is RLIMIT_NOFILE. The Go runtime has raised the soft limit to the hard one by then; the hard one is the operator's.
func systemOpenFiles() int64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return int64(min(uint64(l.Cur), math.MaxInt64)) // signed on some systems
}
