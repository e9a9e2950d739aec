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
// Invariants:
//   - An answer leaves only when everything it tells of is committed, in the term it was decided in.
//   - A proposal carries the term and the index it was decided for, and is refused in any other: broker epochs in it are
//     indexes.
//   - Leadership lost: the working Image is dropped, what waits for a commit is answered ErrUnknownOutcome, never "failed".
//   - At most one registration of a broker is in a round, so broker epochs differ (I3).
//   - A decision over quorum.EntryBytesMax is split at record borders. Every prefix of a decision is a safe state: a topic
//     is visible only by its last record. FinishTopics, the first decision of every reign, removes what is half made.
//   - Inbox, round and what waits for commits are bounded (I14).
//
// Concurrency: one goroutine, inside Run, owns everything. Submit may be called from any goroutine.
//
// Files: controller.go (Submit, Run), reign.go (the loop's state in one term), round.go (decide and propose), stamp.go (what
// the shell adds to an event: time, ids, seeds), link.go (how a node reaches the active controller).
package controller
