package metrics

import "github.com/prometheus/client_golang/prometheus"

// Peer are the instruments of the cluster listener and of calls to other nodes.
type Peer struct {
	// Connections is the number of open connections to and from other nodes.
	Connections prometheus.Gauge
	// Broken counts connections to and from other nodes that ended without being closed by this node.
	Broken prometheus.Counter
	// Refused counts connections that were closed before a hello was accepted, for the reasons the log names.
	Refused *prometheus.CounterVec
	// Dropped counts one-way messages that were not sent.
	Dropped prometheus.Counter
}

func newPeer(p *prometheus.Registry) *Peer {
	return &Peer{
		Connections: gauge(p, "strandline_peer_connections_open", "Open connections to and from other nodes."),
		Broken:      counter(p, "strandline_peer_connections_broken_total", "Connections to and from other nodes that broke."),
		Refused:     counters(p, "strandline_peer_connections_refused_total", "Connections between nodes whose hello was not accepted.", "reason"),
		Dropped:     counter(p, "strandline_peer_messages_dropped_total", "One-way messages to other nodes that were not sent."),
	}
}
