// Package isr decides the replication of one partition: on its leader how far the high watermark may be, whether an acks=all publish is
// admitted, who is in sync, and where a follower's log parts from the leader's; on a follower what to do with what the leader says.
// It is pure: no goroutine, lock, clock, disk or socket. A shell feeds events in (Stored, Fetched, Reported, Tick, Propose, Update) and
// carries the returned Effects out.
//
// Knows: one leader epoch of one partition: the committed PartitionState, a proposed but not yet committed ISR, and for each
// replica the end offset that counts as stored. Does not know: records, the flush policy (a stored end arrives already judged
// by it), other partitions, or who asked.
//
// Invariants:
//   - I1, I2: the high watermark never exceeds the smallest stored end in the maximal ISR (committed ∪ proposed), never moves
//     back, and moves only while the committed ISR has at least the effective min ISR members (highwatermark.go).
//   - I1: ISR and effective min ISR are taken from one PartitionState, never mixed from two.
//   - I3: a Leader lives for one leader epoch. A new epoch, even of the same node, is a new Leader; events of another epoch
//     are ignored, and so is what an older process of a replica said.
//   - I3: an open ISR change ends only with a newer partition epoch (proposal.go).
//   - I4: a replica that lost bytes it had counted for leaves ISR and ELR (progress.go, shrink.go).
//   - I5: a follower cuts at the point that the leader names, by epochs (diverge.go, follower.go).
//   - I2: until the high watermark has reached the start of the epoch it is not shown as "latest" (Withheld).
//
// Concurrency: none. The owner calls it under its own lock.
//
// Files: leader.go (state, events), highwatermark.go (the watermark rule), admission.go (acks=all, visibility), progress.go
// (what a replica counts for), lag.go (what a replica in sync must have), silence.go (who cannot be heard), shrink.go, expand.go, proposal.go (ISR changes), diverge.go
// (the leader's judgement of a follower's log), follower.go (a follower's rules).
package isr
