package sys

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// HungUp reports whether the peer of a connection has closed its side, also while bytes that it sent before are still unread: reading
// would show the end only behind them. It does not block. What is no socket of this system never counts as hung up.
func HungUp(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	if err := raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		gone = err == nil && n > 0 && p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	}); err != nil {
		return false // closed by ourselves: whoever did it knows
	}
	return gone
}
