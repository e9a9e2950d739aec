// Package replica holds the partitions of this node: it is the shell around the isr core and storage.Log. Publishes and
// fetches cross it (Host.Append, Host.Read), and what has to wait waits in its one wait list. Copies on other nodes fetch from it and
// report to it, and it fetches from the leaders of the partitions it follows.
//
// Knows: which partitions this node leads, follows or merely keeps, their logs, and who waits for what. Does not know:
// sockets, requests, names of topics in requests, authorisation, or how metadata is agreed on; it is handed Images.
//
// Invariants:
//   - I2: the high watermark of a partition comes from the isr core alone and never moves back on a leader.
//   - I1, I3: ISR changes go to the controller and stay open in the core until a newer partition epoch is seen.
//   - I3: this node leads only in an epoch found in an Image that holds this process's own registration. Every new epoch, even
//     of the same leader, builds the core anew and fails everything parked at once.
//   - I4: a damaged log leads nothing and serves nothing; Recover names every log that may have lost reported bytes.
//   - I4, I11: damage found while running is reported; the replica is built anew from its leader once nothing counts on it and another
//     one leads (repair.go).
//   - I5: a follower cuts its log where its leader says that they part, before any watermark of that leader (pull.go).
//   - I6: clients read below the high watermark only.
//   - I12: what is appended is judged by sequence and record id first, and a repeat is confirmed when its original is committed.
//   - I9: followers inherit append times and log starts; DeleteRecords is answered when the ISR has raised its starts. Retention
//     runs on leaders, never past the high watermark, and pauses while the wall clock is not to be trusted.
//   - I10: a log is dropped only for a purge recorded in the Image. A directory the Image does not name is set aside, and
//     only after the Image holds this process's registration; it is moved back when its topic turns up.
//
// Concurrency: Host and Produce/FetchWait methods may be called from any goroutine, but Recover, SetBrokerEpoch, Reconcile
// and Close from one at a time. Lock order: host -> partition -> log. No lock is held over a sync, a channel wait or the
// opening of a log. A parked request costs list entries, never a goroutine. Stored ends arrive on the syncer's goroutine,
// which never waits for a partition: whoever holds the partition takes them in when letting go (partition.go unlock). A follower's log is
// changed under the partition's lock by appends, and without it, while the partition is busy, by what waits for the disk: truncation and
// rebuilding. Locks of sessions, fetchers and chores are leaves below the partition's.
//
// Files: api.go (what callers pass and get), host.go (lifecycle), recover.go, reconcile.go, partition.go (state, lock),
// lead.go (roles), append.go, recordids.go (repeats by record id), fileroom.go (bounded open files), read.go, buffer.go, offsets.go, epochs.go, deleterecords.go, describe.go, wait.go, produce.go, park.go, timers.go,
// retention.go, compact.go, trash.go, watchdog.go, yield.go (a full disk); for copies replication.go (what is shared), messages.go, followers.go, session.go and pace.go (the leader's
// side), fetcher.go and pull.go (the follower's), proposals.go (ISR changes, damage reports, lag), starts.go (log starts), repair.go.
package replica
