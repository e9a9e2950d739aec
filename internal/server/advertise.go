package server

import (
	"fmt"
	"net"
	"net/netip"
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
// REST dialled no listener: it is told of this node what it is told of others, with the dialled IP where the listener is bound to every address.
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
	case mine && call.Listener != "" && call.Local.IsValid():
		return Endpoint{call.Local.Addr().String(), int32(call.Local.Port())}, true
	case !ok:
		return Endpoint{}, false
	case call.Local.IsValid() && (s.cfg.Dev || mine && everyAddress(registered.Host)):
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

// everyAddress says that host is what a listener on every address of its machine is bound to: nobody can dial it.
func everyAddress(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsUnspecified()
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
// can use it: the client is connected already. A node that the active controller does not answer names that one while it knows who that is: the
// client may reach whom it cannot.
func (s *Server) controllerID(img *metadata.Image) kafka.NodeID {
	usable := func(b *metadata.Broker) bool { return b != nil && !b.Fenced }
	me := img.Broker(s.cfg.Node)
	leader := img.Broker(s.cfg.Quorum.Leadership().Leader)
	switch {
	case usable(leader) && s.cutOff():
		return leader.ID
	case usable(me):
		return me.ID
	}
	for b := range img.Brokers() {
		if usable(b) {
			return b.ID
		}
	}
	return kafka.NoNode
}

// cutOff says that no active controller has answered this node for longer than unansweredMax.
func (s *Server) cutOff() bool { return s.cfg.Unanswered != nil && s.cfg.Unanswered() > unansweredMax }

// rackOf returns the rack of b as the protocol has it.
func rackOf(b *metadata.Broker) *string {
	if b.Rack == "" {
		return nil
	}
	return &b.Rack
}
