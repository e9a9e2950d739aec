package quorum

import "time"

const (
	// tickEvery is raft's unit of time. A heartbeat each tick finds a dead leader within electionTicks.
	tickEvery = 50 * time.Millisecond
	// tickPlaces is at how many places within tickEvery a node may begin to tick.
	tickPlaces = 64
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

	// controllersMax is the largest number of controllers.
	controllersMax = 5
	// arrivalsMax bounds the frames of Raft messages that wait for the loop; what comes above it is lost, which Raft expects. arrivalsPerTurn
	// are taken before the loop looks at ticks and the disk again.
	arrivalsMax, arrivalsPerTurn = 256, 64
	// rescueJump is how far the index jumps when a quorum is recovered from one node: more entries than can have been committed elsewhere
	// and not be here.
	rescueJump = 1 << 20
	// heardMax bounds the directories whose start number and last sign of life are kept.
	heardMax = 64
	// frameEntriesMax bounds the entries in one frame of Raft messages, in bytes; one message may be larger by itself.
	frameEntriesMax = 4 << 20

	// openingTicks is how many ticks in a row the node that formed a cluster campaigns, while the others start Raft: nobody else leads it
	// yet, so there is nothing to wait for. After that elections are as ever.
	openingTicks = 10
	// askFirst to askEvery, doubling, and askWaitMax pace the questions of a node without a cluster, sayEvery its log lines.
	askFirst                       = 10 * time.Millisecond
	askEvery, askWaitMax, sayEvery = 200 * time.Millisecond, time.Second, 5 * time.Second

	// fetchWaitMax is how long a voter holds an observer's fetch when there is nothing new, and fetchGrace how much later the observer turns to another
	// voter: together they bound how long one that does not answer any more keeps an observer from a change.
	fetchWaitMax, fetchGrace = 250 * time.Millisecond, 500 * time.Millisecond
	// fetchBytesMax bounds the entries of one answer, but for the first.
	fetchBytesMax = 1 << 20
	// sourcesMax bounds the nodes that are asked one after the other.
	sourcesMax = 128
	// fetchPause is between fetches that fail, applyWaitMax the time for fetched entries to be applied before they are fetched again.
	fetchPause, applyWaitMax = 50 * time.Millisecond, 2 * time.Second
	// leaderlessPatience is how long a member without a leader waits for an election before it asks others what is committed.
	leaderlessPatience = 2 * time.Second

	// alteredSayEvery is how often an observer says that what others send it is not what was written.
	alteredSayEvery = 10 * time.Second

	// pieceBytesMax bounds a piece of a snapshot. It fits behind heartbeats of a slow link.
	pieceBytesMax = 512 << 10
	// pieceWaitMax bounds the wait for one piece, offerWaitMax that for a member to fetch all of an offered snapshot; offerPause follows an offer
	// that failed.
	pieceWaitMax, offerWaitMax, offerPause = 5 * time.Second, 2 * time.Minute, 500 * time.Millisecond

	// replaceSilence is how long a voter must not have been heard before another directory of its node may take its place: longer than any
	// pause of a process that is still there.
	replaceSilence = 10 * time.Second
	// aliveWithin is how long ago a voter may have been heard to count as there.
	aliveWithin = 2 * electionTicks * tickEvery
	// learnerPatience is how long a newcomer may make no progress. caughtUpEntries is how far behind it may be when it becomes a voter.
	learnerPatience, caughtUpEntries = 30 * time.Second, 256
	// changeRetry paces requests for a change that find no leader; changeWaitersMax bounds those that wait for the same change.
	changeRetry, changeWaitersMax = 250 * time.Millisecond, 16
	// stallMax is how long a leader's disk may take nothing before another voter is to lead: far longer than a sync of a slow disk.
	stallMax = 2 * time.Second
	// probeMax bounds all that follows the end of a leader's connection; turnEvery is how long each voter has for an election before the next one
	// tries: some syncs of a slow disk.
	probeMax, turnEvery = 2 * time.Second, 60 * time.Millisecond
	// seekEvery and seekWaitMax pace a node that asks for the place of its former directory.
	seekEvery, seekWaitMax = time.Second, time.Minute
)
