// Package replica holds the partitions of this node: it is the shell around the isr core and storage.Log. Publishes and
// fetches cross it (Host.Append, Host.Read), and what has to wait waits in its one wait list.
//
// Knows: which partitions this node leads, follows or merely keeps, their logs, and who waits for what. Does not know:
// sockets, requests, names of topics in requests, authorisation, or how metadata is agreed on; it is handed Images.
//
// Invariants:
//   - I2: the high watermark of a partition comes from the isr core alone and never moves back on a leader.
//   - I3: this node leads only in an epoch found in an Image that holds this process's own registration. Every new epoch, even
//     of the same leader, builds the core anew and fails everything parked at once.
//   - I4: a damaged log leads nothing and serves nothing; Recover names every log that may have lost reported bytes.
//   - I6: clients read below the high watermark only.
//   - I9: retention runs on leaders, never past the high watermark, and pauses while the wall clock is not to be trusted.
//   - I10: a log is dropped only for a purge recorded in the Image. A directory the Image does not name is set aside, and
//     only after the Image holds this process's registration; it is moved back when its topic turns up.
//
// Concurrency: Host and Produce/FetchWait methods may be called from any goroutine, but Recover, SetBrokerEpoch, Reconcile
// and Close from one at a time. Lock order: host -> partition -> log. No lock is held over a sync, a channel wait or the
// opening of a log. A parked request costs list entries, never a goroutine. Stored ends arrive on the syncer's goroutine,
// which never waits for a partition: whoever holds the partition takes them in when letting go (partition.go unlock).
//
// Files: api.go (what callers pass and get), host.go (lifecycle), recover.go, reconcile.go, partition.go (state, lock),
// lead.go (roles), append.go, read.go, buffer.go, offsets.go, epochs.go, deleterecords.go, describe.go, wait.go, produce.go, park.go, timers.go,
// retention.go, trash.go, watchdog.go.
package replica
