// Package node is the composition root: it builds the parts of one node, connects them, starts and stops them in order.
//
// Knows: which part needs which, and the order of start and stop. Does not know: any rule of the broker.
//
// Start: bind every listener (a taken port is found before any file is touched), open the data directory, recover the metadata log and
// the partition logs, hear other nodes, register with the active controller naming the replicas that may have lost bytes (I4), lead only in
// epochs granted after that registration (I3), then accept clients. A start that waits for other nodes says for whom in /readyz. Stop is the
// reverse, and begins with handing over: others lead before this node stops serving. Only when logs are flushed the clean-shutdown marker is
// written.
//
// Concurrency: Start and Stop are called once, by one goroutine. What runs in it is listed in ARCHITECTURE.md
// (Goroutines).
//
// Files: node.go (options, Start, Stop), parts.go (what is built, in order), register.go (registration and readiness), cluster.go (other
// nodes: who is heard, where they are), handover.go (a planned stop), together.go (a cluster in one process), files.go (shares of the
// process's file descriptors), errors.go.
package node
