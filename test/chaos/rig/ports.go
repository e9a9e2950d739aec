package rig

import (
	"fmt"
	"math/rand/v2"
	"net"
)

const (
	// portMin and portEnd are where addresses are chosen: below the range from which systems give ports to connections and to who asks for any,
	// so that nobody takes the port of a node between the choice and the start, or while the node is down.
	portMin, portEnd = 10_000, 32_000
	// portTries bounds the search for a free port.
	portTries = 1000
)

// FreeAddresses returns addresses of loopback that nobody listens at, no two the same.
func FreeAddresses(count int) ([]string, error) {
	var addresses []string
	var held []net.Listener // until all are found
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	var last error
	for range portTries {
		if len(addresses) == count {
			return addresses, nil
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", portMin+rand.IntN(portEnd-portMin)))
		if err != nil {
			last = err
			continue
		}
		held, addresses = append(held, l), append(addresses, l.Addr().String())
	}
	return nil, fmt.Errorf("no %d free ports of 127.0.0.1 from %d to %d: %w", count, portMin, portEnd, last)
}
