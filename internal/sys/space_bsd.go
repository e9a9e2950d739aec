//go:build darwin || freebsd || dragonfly

package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// systemSpace asks the file system that holds name. FreeBSD counts below zero when only root may still write.
func systemSpace(name string) (Space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(name, &st); err != nil {
		return Space{}, &os.PathError{Op: "statfs", Path: name, Err: err}
	}
	return Space{Total: int64(st.Blocks) * int64(st.Bsize), Usable: max(0, int64(st.Bavail)) * int64(st.Bsize)}, nil
}
