package config

import (
	"math"
	"time"
)

// nodeTable lists the settings of strandline.yaml outside "kafka:" and "listeners:".
func nodeTable() []Setting {
	return []Setting{
		{Name: "node.id", Type: Int, Default: "0", DevDefault: dev("1"), Min: 0, Max: NodeIDMax, ZeroUnset: true,
			Doc:  "Identity of the node in the cluster. It is never given to another data directory.",
			node: func(n *Node) any { return &n.Node.ID }},
		{Name: "node.rack", Type: String, Default: "",
			Doc:  "Rack or zone of the node; replicas of a partition are spread over racks.",
			node: func(n *Node) any { return &n.Node.Rack }},
		{Name: "roles", Type: List, Default: "controller,broker", Enum: []string{"controller", "broker"},
			Doc:  "What the node does: controller (votes on metadata), broker (holds partitions), or both.",
			node: func(n *Node) any { return &n.Roles }},
		{Name: "data.dir", Type: String, Default: "",
			Doc:  "Directory that holds everything the node stores. `dev` uses a temporary one when it is empty.",
			node: func(n *Node) any { return &n.Data.Dir }},
		{Name: "cluster.address", Type: String, Default: "",
			Doc:  "host:port for traffic between nodes: replication, Raft and control. Other nodes dial it, or this node's entry in cluster.controllers.",
			node: func(n *Node) any { return &n.Cluster.Address }},
		{Name: "cluster.controllers", Type: List, Default: "",
			Doc:  "The controllers as id@host:port, comma-separated: 1, 3 or 5 of them. Empty means that this node is the only one.",
			node: func(n *Node) any { return &n.Cluster.Controllers }},
		{Name: "tls.cluster.cert", Type: String, Default: "",
			Doc:  "PEM file with this node's certificate for traffic between nodes, and what leads from it to the CA. The certificate must allow serving and dialling.",
			node: func(n *Node) any { return &n.TLS.Cluster.Cert }},
		{Name: "tls.cluster.key", Type: String, Default: "",
			Doc:  "PEM file with the key of tls.cluster.cert.",
			node: func(n *Node) any { return &n.TLS.Cluster.Key }},
		{Name: "tls.cluster.ca", Type: String, Default: "",
			Doc:  "PEM file with the CA of the cluster: only nodes with a certificate of it are heard.",
			node: func(n *Node) any { return &n.TLS.Cluster.CA }},
		{Name: "http.address", Type: String, Default: "127.0.0.1:8080",
			Doc:  "host:port for REST, health and metrics; \"none\" for no such port.",
			node: func(n *Node) any { return &n.HTTP.Address }},
		{Name: "broker.session.timeout", Type: Duration, Default: "2s", Min: int64(500 * time.Millisecond), Max: int64(time.Hour),
			Doc:  "How long a silent broker keeps its leaderships. Without effect on a cluster of one node.",
			node: func(n *Node) any { return &n.Broker.SessionTimeout }},
		{Name: "replica.lag.max", Type: Duration, Default: "5s", Min: int64(100 * time.Millisecond), Max: math.MaxInt64,
			Doc:  "How far behind its leader, in time, a replica may be and stay in sync. Without effect on a cluster of one node.",
			node: func(n *Node) any { return &n.Replica.LagMax }},
		{Name: "log.level", Type: String, Default: "info", Enum: []string{"debug", "info", "warn", "error"},
			Doc:  "Least severity of the messages that are logged.",
			node: func(n *Node) any { return &n.Log.Level }},
		{Name: "log.format", Type: String, Default: "auto", Enum: []string{"auto", "text", "json"},
			Doc:  "Form of log messages; auto is text on a terminal and JSON elsewhere.",
			node: func(n *Node) any { return &n.Log.Format }},
	}
}

// listenerTable lists the keys of one element of "listeners:".
func listenerTable() []Setting {
	return []Setting{
		{Name: "name", Type: String, Doc: "Name of the listener; unique on the node."},
		{Name: "address", Type: String, Doc: "host:port to bind."},
		{Name: "advertise", Type: String, Default: AdvertiseAuto,
			Doc: "host:port told to clients, or auto: the local address and port of the connection they came in on."},
		{Name: "tls", Type: Bool, Default: "false", Fixed: "this release has no TLS for clients; it arrives in a later one", Doc: "Only false is accepted."},
		{Name: "sasl", Type: List, Default: "", Fixed: "this release has no authentication; it arrives in a later one", Doc: "Only an empty list is accepted."},
	}
}

// unbuilt names the sections of strandline.yaml that later releases read. They are refused by name, so that nobody believes in a
// protection that is not there.
var unbuilt = map[string]string{
	"tls":        "this release has no TLS for clients, only between nodes (tls.cluster)",
	"auth":       "this release has no authentication",
	"encryption": "this release has no encryption at rest",
	"disk":       "this release has no disk limit",
}
