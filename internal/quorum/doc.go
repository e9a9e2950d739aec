// Package quorum is the shell of the metadata consensus: it runs the raft core of go.etcd.io/raft over a storage.Log and
// publishes the Images that the committed records make.
//
// Knows: how a raft entry, a vote, a snapshot and the table of voters lie on disk; in which order they must be made durable;
// what nodes say to each other about them; how the first cluster id comes to be (forming); how voters are taken in, replaced and
// taken out. Does not know: what a metadata record means (metadata), who decides (controller), how bytes reach a disk (storage,
// sys) or another node (peer).
//
// Every node runs it. A member (voter or learner) takes part in raft; any other node is an observer, whose raft core is in no
// configuration and is fed with what it fetches.
//
// The storage of raft is asynchronous (AsyncStorageWrites): the loop hands entries, votes and snapshots to the append
// goroutine as messages, each carrying the answers it releases. The alternative, a Ready loop that waits for each sync, is
// simpler by one queue, but then a tick, a heartbeat and the next proposal wait behind the disk, and entries cannot share a
// sync. Here everything that queued up while the disk was busy is written and synced at once.
//
// Invariants:
//   - An answer to another node, or to raft itself, leaves only after the vote and the entries it stands on are durable.
//   - The vote file is replaced before an entry of its term is written, so no log holds a term that the vote file does not
//     know.
//   - A prefix of the log is dropped only when two durable snapshots cover it, so one damaged snapshot loses nothing.
//   - Entries are in the log and in its copy, and both are synced, before an answer that stands on them leaves; so one damaged file
//     loses nothing. A cut of the tail reaches both.
//   - A start rebuilds a log or a vote only when nothing acknowledged can be lost and no second leader of a term can come of it;
//     else it refuses by name, at every start alike.
//   - Images are committed records only and their versions rise (I13). A record that cannot be applied stops this node's
//     quorum before it could get into a snapshot.
//   - Who takes part is decided by ConfState and the table of voters together; both change by the same entry, and a snapshot with
//     both is durable before anything more is sent. A directory in no table counts for nothing, nor does an older process of one (I3).
//   - A node that is not in its own configuration hears no raft message: an observer's log holds committed entries only.
//   - The directory id is durable before it is told, a table before it is confirmed, and raft starts only when all nodes of a new
//     table have confirmed it or one runs it.
//   - The first failed sync of log, copy, vote or directory is final (I11): the append goroutine ends, nothing more is answered,
//     Run returns the error. A full disk is not: the write is repeated until there is space.
//   - Proposals in flight are bounded by raft (uncommittedBytesMax), arrivals by a channel (arrivalsMax); that bounds the queues
//     between the goroutines (I14).
//
// Concurrency: two goroutines, both inside Run, and one more for the length of a sync: log and copy are synced at the same time. The
// loop owns the raft core, the raft view of the log, and the Image it publishes; the append goroutine owns vote, snapshot files and
// all writes to the log. They talk by two mailboxes. With peers there are three more: one fetches while this node is no member or
// has no leader, one asks for the place of a former directory, one looks after a leader whose connection has ended; and one for each snapshot on offer. Requests of other nodes run in
// peer's goroutines and reach the loop as tasks. Image, Leadership and LogEnd are lock-free and may be called from anywhere.
//
// Files: quorum.go (what others call), loop.go (the loop), apply.go (committed entries), append.go (the append goroutine),
// transport.go (raft messages), observe.go (fetching), pieces.go (snapshots over the network), install.go (and onto the disk),
// membership.go (changes of the voters), handover.go, inherit.go and diskwatch.go (leaders that stop, die, or have a disk that takes nothing), controllers.go (the configured list), agree.go (forming among several), forming.go
// (whose directory this is; a first start), disaster.go (recovery from one node), recover.go (what a start finds), follow.go (an
// observer's log), mend.go (log and copy compared), repair.go (a damaged log), tail.go (what its files still hold), voters.go (raft ids),
// raftlog.go (raft.Storage over storage.Log), logcopy.go (the second copy of the newest entries), copyfile.go, entry.go, vote.go,
// snapshot.go, messages.go (formats), keep.go (which snapshots stay), cell.go and mailbox.go (how goroutines meet), logger.go
// (raft's log lines).
package quorum
