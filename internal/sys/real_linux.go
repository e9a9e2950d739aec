package sys

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// noSpaceErrors are the error numbers of a full disk and of a used-up quota.
var noSpaceErrors = []error{unix.ENOSPC, unix.EDQUOT}

// bootIDFile holds a random id that the kernel draws at each boot.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// syncFile uses fdatasync: it writes the size too, and leaves out only times, which nothing here relies on.
func syncFile(f *os.File) error {
	return retryInterrupted("fdatasync", f.Name(), func() error { return unix.Fdatasync(int(f.Fd())) })
}

// syncDir makes the names in a directory durable.
func syncDir(name string) error {
	return withDir(name, func(d *os.File) error {
		return retryInterrupted("fsync", name, func() error { return unix.Fsync(int(d.Fd())) })
	})
}

// syncAll makes the whole file system durable. Since Linux 5.8 syncfs reports the write errors that happened since the
// descriptor was opened, so this one tells of errors during the call; earlier ones are told by each file's own sync.
func syncAll(name string) error {
	return withDir(name, func(d *os.File) error {
		return retryInterrupted("syncfs", name, func() error { return unix.Syncfs(int(d.Fd())) })
	})
}

// lockFile takes a lock that the kernel drops when the last descriptor of this opening is closed, kill -9 included.
func lockFile(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("%s: %w", f.Name(), ErrLocked)
	}
	if err != nil {
		return &os.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
	return nil
}

// systemBootID returns the kernel's boot id, or "" (I4).
func systemBootID() string {
	b, err := os.ReadFile(bootIDFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func withDir(name string, do func(*os.File) error) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(do(d), d.Close())
}

// retryInterrupted repeats a call that a signal cut short: EINTR says that nothing was tried, not that bytes are lost.
func retryInterrupted(op, name string, call func() error) error {
	for {
		err := call()
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return &os.PathError{Op: op, Path: name, Err: err}
		}
		return nil
	}
}
