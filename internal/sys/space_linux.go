package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// systemSpace asks the file system that holds name. What is reserved for root is not usable.
func systemSpace(name string) (Space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(name, &st); err != nil {
		return Space{}, &os.PathError{Op: "statfs", Path: name, Err: err}
	}
	block := st.Frsize // the unit of the counts; Bsize is only a hint for reads
	if block == 0 {
		block = st.Bsize
	}
	return Space{Total: int64(st.Blocks) * int64(block), Usable: int64(st.Bavail) * int64(block)}, nil
}
