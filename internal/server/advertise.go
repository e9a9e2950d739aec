package server

import (
	"fmt"
	"net"
	"strconv"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// Endpoint is where a client reaches a node.
type Endpoint struct {
	Host string
	Port int32
}

// Endpoint says where the client of call reaches a node, by contract section 2 `advertise`; false when the node is not registered or
// has no such listener. It is the one function behind Metadata, DescribeCluster, the leader hints of Produce and Fetch, and REST.
//
// This node: the listener's advertised address, or with `auto` the address that the client dialled, which it can reach for certain.
// Another node: the address it registered; under `dev` all nodes share one machine, so the dialled IP with the other node's port.
func (s *Server) Endpoint(img *metadata.Image, node kafka.NodeID, call *Call) (Endpoint, bool) {
	b := img.Broker(node)
	if b == nil {
		return Endpoint{}, false
	}
	return s.endpointOf(b, call)
}

func (s *Server) endpointOf(b *metadata.Broker, call *Call) (Endpoint, bool) {
	mine := b.ID == s.cfg.Node
	registered, ok := listenerOf(b, call.Listener)
	switch {
	case mine && call.Advertise != Endpoint{}:
		return call.Advertise, true
	case mine && call.Local.IsValid():
		return Endpoint{call.Local.Addr().String(), int32(call.Local.Port())}, true
	case !ok:
		return Endpoint{}, false
	case s.cfg.Dev && call.Local.IsValid():
		return Endpoint{call.Local.Addr().String(), registered.Port}, true
	}
	return registered, true
}

// listenerOf returns the address that b registered under name; "" stands for b's first listener.
func listenerOf(b *metadata.Broker, name string) (Endpoint, bool) {
	for _, l := range b.Listeners {
		if name == "" || l.Name == name {
			return Endpoint{l.Host, l.Port}, true
		}
	}
	return Endpoint{}, false
}

// parseAdvertise reads a listener's advertised address; the zero Endpoint stands for `auto`.
func parseAdvertise(text string) (Endpoint, error) {
	if text == "" || text == "auto" {
		return Endpoint{}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return Endpoint{}, fmt.Errorf("advertise %q: want host:port or auto: %w", text, err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || host == "" {
		return Endpoint{}, fmt.Errorf("advertise %q: want host:port or auto", text)
	}
	return Endpoint{host, int32(n)}, nil
}

// controllerID is the node that clients are to send administrative requests to. Any node takes them, so it is this one while clients
// can use it: the client is connected already.
func (s *Server) controllerID(img *metadata.Image) kafka.NodeID {
	if b := img.Broker(s.cfg.Node); b != nil && !b.Fenced {
		return b.ID
	}
	for b := range img.Brokers() {
		if !b.Fenced {
			return b.ID
		}
	}
	return kafka.NoNode
}

// rackOf returns the rack of b as the protocol has it.
func rackOf(b *metadata.Broker) *string {
	if b.Rack == "" {
		return nil
	}
	return &b.Rack
}
