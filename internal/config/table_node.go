package config

import (
	"math"
	"time"
)

// nodeTable lists the settings of strandline.yaml outside "kafka:" and "listeners:".
func nodeTable() []Setting {
	return []Setting{
		{Name: "node.id", Type: Int, Default: "0", DevDefault: dev("1"), Min: 0, Max: NodeIDMax, ZeroUnset: true,
			Doc:  "Identity of the node in the cluster. A node whose data directory is empty takes the place of the directory that had this number, when that has not been heard of for 10 s.",
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
		{Name: "disk.limit.bytes", Type: Long, Default: "0",
			Doc:  "How many bytes the files in data.dir may take, its trash and quarantine included, its reserve not, before records of user topics are refused; 0 is no such limit. Over the last tenth before a disk limit, at most 1 GiB, publishes are slowed.",
			node: func(n *Node) any { return &n.Disk.LimitBytes }},
		{Name: "disk.limit.percent", Type: Long, Default: "0", Max: 100,
			Doc:  "How full the disk of data.dir may be, in percent of its capacity and whoever fills it, before records of user topics are refused; 0 is no such limit. Whatever the limits, they are refused when no more is free than metadata and group progress need: 64 MiB, on a small disk 1/32.",
			node: func(n *Node) any { return &n.Disk.LimitPercent }},
		{Name: "encryption.keyring", Type: String, Default: "",
			Doc:  "Keyring file (`strandline keyring create`). With one, segments, the metadata log and its snapshots are encrypted as they are written; what is there already stays as it is. A key that is added is used by the next file; a key may be removed only when no file is sealed with it any more. Empty: nothing is encrypted.",
			node: func(n *Node) any { return &n.Encryption.Keyring }},
		{Name: "cluster.address", Type: String, Default: "",
			Doc:  "host:port for traffic between nodes: replication, Raft and control. Other nodes dial it, or this node's entry in cluster.controllers.",
			node: func(n *Node) any { return &n.Cluster.Address }},
		{Name: "cluster.controllers", Type: List, Default: "",
			Doc:  "The controllers as id@host:port, comma-separated: 1, 3 or 5 of them. Empty means that this node is the only one.",
			node: func(n *Node) any { return &n.Cluster.Controllers }},
		{Name: "tls.cluster.cert", Type: String, Default: "",
			Doc:  "PEM file with this node's certificate for traffic between nodes, and what leads from it to the CA. It must allow serving and dialling, and carry the URI strandline://node/<node.id> among its alternative names. Files that change are taken up within seconds.",
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
		{Name: "canary.interval", Type: Duration, Default: "0s", Min: 0, Max: int64(time.Hour),
			Doc:  "How often this node publishes a record of its own, in the topic __strandline_canary, and reads it back, to measure what a publish takes from end to end (strandline_publish_end_to_end_seconds); from 1s, 0s for never.",
			node: func(n *Node) any { return &n.Canary.Interval }},
		{Name: "log.level", Type: String, Default: "info", Enum: []string{"debug", "info", "warn", "error"},
			Doc:  "Least severity of the messages that are logged.",
			node: func(n *Node) any { return &n.Log.Level }},
		{Name: "log.format", Type: String, Default: "auto", Enum: []string{"auto", "text", "json"},
			Doc:  "Form of log messages; auto is text on a terminal and JSON elsewhere.",
			node: func(n *Node) any { return &n.Log.Format }},
		{Name: "log.slow.request", Type: Duration, Default: "1s", Min: 0, Max: int64(time.Hour),
			Doc:  "How long a request may take before it is logged, with where the time went; 0s for no such lines. Long polls are left out.",
			node: func(n *Node) any { return &n.Log.SlowRequest }},
	}
}

// listenerTable lists the keys of one element of "listeners:".
func listenerTable() []Setting {
	return []Setting{
		{Name: "name", Type: String, Doc: "Name of the listener; unique on the node."},
		{Name: "address", Type: String, Doc: "host:port to bind."},
		{Name: "advertise", Type: String, Default: AdvertiseAuto,
			Doc: "host:port told to clients, or auto: the local address and port of the connection they came in on."},
		{Name: "tls", Type: Bool, Default: "false", Doc: "Whether the listener speaks TLS (1.2 and 1.3), with tls.cert."},
		{Name: "mtls", Type: String, Default: CertNone, Enum: certModes,
			Doc: "Whether clients show a certificate of tls.ca, which says who they are. With sasl, SASL says it."},
		{Name: "sasl", Type: List, Default: "", Enum: SASLMechanisms, Doc: "Mechanisms by which clients authenticate; empty: they are not asked."},
	}
}
