//go:build !linux

package sys

import "net"

// Readable reports whether a read from the connection would return at once. Only Linux can tell; elsewhere the answer is no.
func Readable(net.Conn) bool { return false }
