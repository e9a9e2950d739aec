// Package controller runs the metadata decisions on the node that leads the quorum.
//
// Knows: when a decision may be made (this node leads and its Image holds everything earlier terms committed), on what (the
// working Image), how decisions become raft entries, and when an answer may leave. Does not know: the rules (metadata), how
// entries become durable and agreed (quorum).
//
// Life of a change: Submit puts the event into the inbox; a round takes what is there, decides each event on the working
// Image, applies its records to the working Image at once, and proposes all records of the round as one entry; the answers
// wait until the entry is committed. The next round does not wait for that. An answer without records waits too, for the
// last entry that was proposed before it: it may tell of something that is not committed yet.
//
// Records are applied before they are proposed: what cannot be applied here is never appended (C080).
//
// Other nodes: a broker keeps a session with the active controller by heartbeats, and is fenced when they stop for broker.session.timeout, or at
// once when its connection breaks and nobody listens at its address any more. A node that wins an election dials every unfenced broker before
// it decides anything. Events of other nodes come as messages; Link is the side that sends them.
//
// Invariants:
//   - An answer leaves only when everything it tells of is committed, in the term it was decided in.
//   - A proposal carries the term and the index it was decided for, and is refused in any other: broker epochs in it are
//     indexes.
//   - An entry that the quorum appends itself, a change of its voters, is taken into the working Image before anything else is decided.
//   - Leadership lost: the working Image is dropped, what waits for a commit is answered ErrUnknownOutcome, never "failed".
//   - While this node leads, what it hears of broken control connections between two reigns is kept for the next, at most goneMax of them; a dead broker
//     that nobody told of is fenced when its session ends.
//   - At most one registration of a broker is in a round, so broker epochs differ (I3).
//   - A decision over quorum.EntryBytesMax is split at record borders. Every prefix of a decision is a safe state: a topic
//     is visible only by its last record. FinishTopics, the first decision of every reign, removes what is half made.
//   - Inbox, round and what waits for commits are bounded (I14).
//   - A node has events decided only for itself; the principal of an administrative one is believed, because only nodes of the cluster are
//     heard (I15).
//   - Link repeats what was not decided. What may have been decided it repeats only if a second decision does no harm; else it says that the
//     outcome is unknown.
//
// Concurrency: one goroutine, inside Run, owns everything but the sessions, which heartbeats touch from their own goroutines so that they never
// wait for a decision. Probes are goroutines of Run. Submit, Gone and all of Link may be called from any goroutine; Link.Run has two.
//
// Files: controller.go (Submit, Run), reign.go (the loop's state in one term), round.go (decide and propose), stamp.go (what the shell adds to an
// event: time, ids, seeds), session.go and liveness.go (who lives), tend.go (what nobody asks for), serve.go and messages.go (other nodes), ends.go and recover.go (what replicas hold, for recovery), link.go
// and link_session.go (how a node reaches the active controller, and keeps its session).
package controller
