//go:build !linux

package sys

import "net"

// HungUp reports whether the peer of a connection has closed its side while bytes are unread. Only Linux can tell; elsewhere a gone peer
// is noticed when its bytes have been read.
func HungUp(net.Conn) bool { return false }
