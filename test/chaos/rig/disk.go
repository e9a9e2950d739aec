package rig

import (
	"fmt"
	"os"
	"syscall"
)

// smallDisk puts the node's data directory, which must not be there yet, on a file system of its own of the given size; the returned function
// takes it away when the node is down. It needs the right to mount.
func (n *Node) smallDisk(bytes int) (func() error, error) {
	if err := os.MkdirAll(n.Disk(), 0o755); err != nil {
		return nil, err
	}
	if err := syscall.Mount("tmpfs", n.Disk(), "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		return nil, fmt.Errorf("mount a disk of %d bytes: %w", bytes, err)
	}
	return func() error { return syscall.Unmount(n.Disk(), 0) }, nil
}
