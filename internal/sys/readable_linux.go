package sys

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Readable reports whether a read from the connection would return at once. It does not block, and takes nothing. What is no socket of
// this system never counts as readable.
func Readable(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	ready := false
	if err := raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		ready = err == nil && n > 0
	}); err != nil {
		return true // closed by ourselves: a read says so at once
	}
	return ready
}
