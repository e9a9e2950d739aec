// Package group decides for consumer groups: one Shard holds all groups whose progress is kept in one partition of
// __consumer_offsets. It is pure: no goroutine, lock, clock, disk or socket. A shell (package coordinator) feeds events in by
// Step, carries the returned Effects out, and feeds every record back by Apply.
//
// Knows: members, generations, rebalances, static members, targets and assignors, offsets, their time-outs and their records. Does not
// know: topics (the caller resolves names to ids, and brings a Catalog with what needs more), authorisation, api versions (what a version implies is a field of the event), the log, or
// whether a record is committed (a reply says that it must wait: Reply.AfterCommit).
//
// Hard and soft state. Hard state is what the log says: group.stored (the newest group record) and group.offsets. Apply is the
// only code that writes it. Soft state is what the log does not say: phases, joins and syncs that wait, time-outs, members of a
// generation that is not complete; Step writes it. When an append fails the shard is thrown away and made anew from the log, so
// neither is ever undone.
//
// The contract of the shell:
//  1. Apply every record of the log from its start, then Step(Loaded{}), then other events.
//  2. Append the Records of Effects in one epoch, Apply each of them at once, and only then call Step again (it panics
//     otherwise). Every prefix of Records is a safe state, so they may be spread over several batches, in order.
//  3. Release a Reply with AfterCommit when everything appended until then is committed, and something appended after the request
//     came (a Mark, where nothing else was); the others at once.
//  4. Step(Tick{}) at NextDeadline. A deadline in the past means that there is more work of the same kind.
//  5. When a peer is gone, Step(Cancel{Token}).
//
// Invariants:
//   - I7: a member owns what the group record of its generation gives it. A generation is complete only when its record is in
//     the log; assignments are read from hard state alone, so no reply can give a partition to two members of one generation.
//   - I7: in a consumer group a partition belongs to the member whose record of what it has names it. It is given to another only after
//     that member has said that it does not own it, has left, or is fenced (consumer_reconcile.go).
//   - I7: a commit with another generation, a stale epoch, an unknown or a fenced member changes nothing.
//   - I8: offsets come from hard state, and replies that show it wait for its commit. What is not committed is answered with
//     offset -1 and no error, never with 0.
//   - I10: offsets disappear only by an explicit request, by the purge of a topic with the id they were stored under, or after
//     their retention (never under RetentionFloor) in a group without members. Expiry is in Effects.Notes.
//   - R62: a partition that is added to a topic has its start committed in every group that follows the topic, before any fetch of that
//     group is answered.
//   - I14: groups, members, pending members, protocols and records have limits (limits.go); joining, leaving, a heartbeat and a
//     timer cost O(log n), completing a rebalance O(n).
//
// Where we differ from Kafka, on purpose: the peer of a waiting join is watched, so a ghost lives for one session time-out and
// not for five minutes; a static member that comes back with other topics starts a rebalance; a static member may replace itself in
// a full group; offsets of topics that an active group no longer reads are kept; an offset stored after the group became empty
// lives for a full retention.
//
// Concurrency: none. One goroutine owns a Shard.
//
// Files: event.go, reply.go (what goes in and out), shard.go (dispatch), group.go (one group: hard state), classic_group.go,
// classic_member.go (soft state of the classic protocol), classic_join.go, classic_static.go, classic_rebalance.go,
// classic_sync.go, classic_heartbeat.go, classic_leave.go (its decisions), consumer_group.go, consumer_change.go (a consumer group,
// and what a step makes of it), consumer_event.go, catalog.go, consumer_heartbeat.go, consumer_assign.go, assignor_uniform.go,
// assignor_range.go, consumer_reconcile.go, consumer_leave.go, consumer_commit.go, consumer_describe.go (its decisions),
// consumer_record.go, consumer_apply.go (its log records), convert.go, consumer_classic.go (from one protocol to the other, and members of both in
// a group), commit.go, fetch.go, describe.go, delete.go,
// expire.go, purge.go, seek.go, growth.go (decisions on offsets and groups of any kind), position.go,
// target.go (where a seek goes), record.go, ownrecord.go and apply.go (log records, see
// docs/formats/group-records.md), load.go, timers.go, limits.go, errors.go.
package group
