// Package audit keeps what happened about access, in the topic __strandline_audit: failed logins, denials, administrative changes.
//
// Knows: entries and their format (docs/formats/audit.md), the chain of hashes in each partition, which events become one entry, and that nothing
// is changed unless it was written down before.
// Does not know: what is an administrative change, who may do what, how a partition is replicated.
//
// Invariants:
//   - I15, P45: a change whose entry is not committed is not made (Trail.Begin). Denials and failed logins are counted, none is left out; they are
//     written within about a second, or later while the trail is away: a process that is killed loses those that are not delivered, and no change.
//   - A chain has one writer: the leader of its partition, within its leader epoch (I3). Its next entry names the hash of the one before, which a
//     new leader reads from the log, when all of that is committed. An entry's sequence is its offset.
//   - I14: what waits, what is folded, texts and reads are bounded by limits.go.
//   - The trail never audits its own writes, so it cannot wait for itself.
//
// Concurrency: Trail may be used by any goroutine. Run has one goroutine that delivers this node's entries, and one for each chain, which appends.
// Its lock is a leaf.
//
// Files: entry.go, chain.go, fold.go, trail.go (what this node has to say), keeper.go (the chains led here), reading.go (what all
// chains say, joined), topic.go, messages.go, limits.go,
// errors.go.
package audit
