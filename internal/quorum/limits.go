package quorum

import "time"

const (
	// tickEvery is raft's unit of time. A heartbeat each tick finds a dead leader within electionTicks.
	tickEvery = 50 * time.Millisecond
	// electionTicks without a heartbeat start an election: half a second, several times a slow disk's sync.
	electionTicks = 10
	// heartbeatTicks between a leader's heartbeats.
	heartbeatTicks = 1

	// EntryBytesMax bounds the records of one proposal, in bytes. A decision above it is split, so that one decision never
	// holds up heartbeats or fills a segment.
	EntryBytesMax = 1 << 20
	// messageBytesMax bounds the entries of one raft message.
	messageBytesMax = 1 << 20
	// inflightMessagesMax and inflightBytesMax bound what is on the way to one follower.
	inflightMessagesMax = 256
	inflightBytesMax    = 16 << 20
	// applyBytesMax bounds the committed entries that raft hands out at once.
	applyBytesMax = 4 << 20
	// uncommittedBytesMax bounds the proposals that wait for the disk; above it ErrBusy. It bounds the queues too.
	uncommittedBytesMax = 32 << 20
	// proposalsPerTurn bounds how many proposals the loop takes before it looks at ticks and the disk again.
	proposalsPerTurn = 64

	// snapshotEntries and snapshotBytes since the last snapshot start the next one, whichever comes first: replaying so much
	// at a start takes some 10 ms.
	snapshotEntries = 8192
	snapshotBytes   = 16 << 20
	// quietTicks without an applied entry, a second, are a quiet moment: the next snapshot is then due whatever the counts, so
	// damage to the log of a quiet node costs nothing.
	quietTicks = int(time.Second / tickEvery)
	// snapshotsKept is how many snapshots stay: the newest may turn out damaged.
	snapshotsKept = 2
	// snapshotFileMax bounds what is read back as a snapshot: some 100 bytes a partition, a million partitions, and room.
	snapshotFileMax = 512 << 20
	// votersMax bounds the table of voters: five controllers, and five more while they are replaced.
	votersMax = 16

	// cacheBytesMax bounds the entries kept in memory so that applying does not read the disk. It must be above
	// uncommittedBytesMax or an entry may have left the cache when it is committed; then it is read from the log.
	cacheBytesMax = 48 << 20
	// appendChunk is the most that one append to the log holds, in bytes.
	appendChunk = 4 << 20
	// tailFileMax bounds a segment of the log that is read whole at a start: a segment and the append that filled it.
	tailFileMax = 2 * segmentBytes
	// tailSearchBytes bounds what the search for a good batch behind damage may checksum, whatever the bytes look like.
	tailSearchBytes = 256 << 20
	// copyKeepBytes is the size up to which the copy of the log is not begun anew after a snapshot: that would cost each quiet
	// moment two syncs, and reading so much at a start takes a millisecond.
	copyKeepBytes = 1 << 20
	// copyWaitBytes is the size of the copy from which a snapshot waits for room on a full disk. Together with what may be on the way
	// (snapshotBytes, uncommittedBytesMax) that keeps it below copyFileMax, which bounds what a start reads of it.
	copyWaitBytes = 64 << 20
	copyFileMax   = 256 << 20
	// readChunk is the most that is read from the log at once, in bytes.
	readChunk = 4 << 20
	// segmentBytes is the segment size of the metadata log. A prefix is dropped by whole segments.
	segmentBytes = 16 << 20
	// noSpaceRetry is the pause between attempts while the disk is full.
	noSpaceRetry = 100 * time.Millisecond
)
