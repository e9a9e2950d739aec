// Package coordinator is the shell around the group core: it runs one group.Shard for every partition of __consumer_offsets
// that this node leads, keeps the shard's records in that partition's log, and hands decisions to whoever asked.
//
// Knows: which partition a group belongs to, when this node leads it, how to load a shard from the log, append its records and
// wait for their commit, and how the topic is created. Does not know: any rule of groups (package group), requests and
// versions (package server), or how records become durable (package replica).
//
// Life of a shard. It belongs to one leader epoch of its partition: Update starts it when the Image gives the epoch to this
// node and the host has taken it up; it loads (requests are answered with ErrLoading), serves, and ends with the epoch.
// Every new epoch is a new shard (I3). An append that fails, or a commit that does not come, ends it too: what it has decided
// may not be in the log, so it is thrown away and loaded anew.
//
// Invariants:
//   - I8: a reply that shows or confirms progress is released when everything appended until then is committed, and with it a record
//     that was appended after the request came: a coordinator that was replaced without knowing it has none committed any more, so it
//     never shows progress that a newer one has moved on from (decision 0018). A log that cannot be read to its end is ErrUnreadable
//     for everybody; no shard ever serves a part of its log.
//   - I3: a shard appends in its own epoch only (AppendItem.Within); a deposed one changes nothing and its requests get the
//     retriable ErrNotCoordinator, never a failure.
//   - I10: offsets of a deleted topic go when the Image names its id as purged, never because a topic is absent.
//   - I14: the inbox, the batches in flight, loads and log lines are bounded by limits.go.
//
// Concurrency: all methods may be called from any goroutine. A shard has at most one goroutine, which starts with the first
// event and ends when there is nothing to do and no timer is due; an idle shard costs one armed timer. It alone touches
// the core. A parked request costs list entries, never a goroutine. The locks here (Coordinator.mu, shard.mu, creation.mu, patternCache.mu)
// are leaf locks: nothing is called while one is held; patternCache.costly, under which names are matched, is taken before its mu.
//
// Files: coordinator.go (Config, Update, Submit), partition.go (which partition, which node), catalog.go (the topics, for consumer groups), shard.go (the loop), wait.go
// (a request's answer), mark.go (is this still the coordinator?), load.go, append.go, timers.go, growth.go (new partitions of topics),
// backlog.go (what groups have not read), topic.go (creation), notes.go (log lines), limits.go, errors.go.
package coordinator
