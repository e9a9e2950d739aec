package sys

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// noSpaceErrors are the error numbers of a full disk and of a used-up quota.
var noSpaceErrors = []error{unix.ENOSPC, unix.EDQUOT}

// tooManyFilesErrors say that there is no descriptor left.
var tooManyFilesErrors = []error{unix.EMFILE, unix.ENFILE}

// bootIDFile holds a random id that the kernel draws at each boot.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// syncFile uses fdatasync: it writes the size too, and leaves out only times, which nothing here relies on.
func syncFile(f *os.File) error {
	return onDescriptor("fdatasync", f, unix.Fdatasync)
}

// syncDir makes the names in a directory durable.
func syncDir(name string) error {
	return withDir(name, func(d *os.File) error { return onDescriptor("fsync", d, unix.Fsync) })
}

// wholes are the descriptors that syncfs is called on, one for each directory it was ever called for: one a process.
var wholes struct {
	sync.Mutex
	dirs map[string]*os.File
}

// syncAll makes the whole file system durable. Since Linux 5.8 syncfs reports each write error once to every descriptor that was open
// when it happened, so the descriptor is kept: one opened for each call would miss an error that somebody else's sync has been told.
func syncAll(name string) error {
	wholes.Lock()
	d := wholes.dirs[name]
	if d == nil {
		var err error
		if d, err = os.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0); err != nil {
			wholes.Unlock()
			return err
		}
		if wholes.dirs == nil {
			wholes.dirs = map[string]*os.File{}
		}
		wholes.dirs[name] = d
	}
	wholes.Unlock()
	return onDescriptor("syncfs", d, unix.Syncfs)
}

// lockFile takes a lock that the kernel drops when the last descriptor of this opening is closed, kill -9 included.
func lockFile(f *os.File) error {
	err := onDescriptor("flock", f, func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("%s: %w", f.Name(), ErrLocked)
	}
	return err
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
	d, err := os.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(d), d.Close())
}

// onDescriptor calls the system with a file's descriptor, which stays this file's until the call returns: with Fd a Close
// at the wrong moment would let the call sync another file that got the same number, and report success for this one. A
// call that a signal cut short is repeated: EINTR says that nothing was tried, not that bytes are lost.
func onDescriptor(op string, f *os.File, call func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		for {
			if failed = call(int(fd)); !errors.Is(failed, unix.EINTR) {
				return
			}
		}
	})
	if err != nil { // the only reason, under a name of package poll that nobody outside can compare
		return &os.PathError{Op: op, Path: f.Name(), Err: os.ErrClosed}
	}
	if failed != nil {
		return &os.PathError{Op: op, Path: f.Name(), Err: failed}
	}
	return nil
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
