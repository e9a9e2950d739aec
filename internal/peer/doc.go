// Package peer calls another node over the cluster listener.
//
// Knows: framing, the hello that begins each connection, connections (one for each pair of nodes, direction and class), deadlines,
// limits, mutual TLS, and what is known of the outcome when a call fails. Format: docs/formats/peer.md.
//
// Does not know: what a message means. Message structs live with their owners; only their numbers are here (kinds.go).
//
// Invariants:
//   - Errors say what did not happen. Whatever wraps ErrUnreachable means that the message was never sent, so nothing was decided
//     by it; ErrBroken means that the outcome is unknown.
//   - I3, I4: nothing is taken from a connection before its hello is accepted: protocol version, cluster id, the node expected behind
//     the address, and the owner's Admit, which refuses processes older than the one known. Recheck asks Admit again.
//   - Nodes that do not both know their cluster exchange only messages of class Admin (forming).
//   - One-way messages are handled in the order they were sent on one connection, also while a request of it is parked. A message
//     that was not sent may be lost: after ErrBusy, ErrUnreachable, or with its connection.
//   - I14: queues, requests in flight, connections and frames are bounded (limits.go); a length is judged before anything is
//     allocated for it, and a buffer grows with the bytes that arrived.
//   - I15: with TLS, a peer that cannot show a certificate of the cluster's CA for the node it says it is, is not heard. The Kafka port
//     knows none of these kinds, and a Kafka client on the cluster port is named and closed.
//
// Concurrency: all methods may be called from any goroutine. A connection has two goroutines, reader and writer; a request that
// arrives has one more until it is answered. Locks are leaves and are never held over the network.
//
// Files: peers.go (the exported surface), kinds.go, message.go, hello.go, frame.go, lane.go (outgoing: dial, back-off), conn.go,
// pending.go (calls that wait), serve.go (incoming), tls.go, lines.go (log lines about refused connections), limits.go, errors.go.
package peer
