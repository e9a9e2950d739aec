package rig

import (
	"fmt"
	"os"
	"syscall"
)

// SmallDisk puts the node's data directory, which must be empty, on a file system of its own of the given size; Close of the returned
// function takes it away. It needs the right to mount.
func (n *Node) SmallDisk(bytes int) (func() error, error) {
	if err := os.MkdirAll(n.Dir, 0o755); err != nil {
		return nil, err
	}
	if err := syscall.Mount("tmpfs", n.Dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		return nil, fmt.Errorf("mount a disk of %d bytes: %w", bytes, err)
	}
	return func() error { return syscall.Unmount(n.Dir, 0) }, nil
}
