package storage

import "time"

const (
	// segmentBytesDefault is Kafka's log.segment.bytes.
	segmentBytesDefault = 1 << 30

	// indexIntervalDefault is Kafka's index.interval.bytes.
	indexIntervalDefault = 4096

	// producerExpiryDefault is Kafka's producer.id.expiration.ms: one day.
	producerExpiryDefault = 24 * time.Hour

	// indexEntriesMax bounds the index of one segment to 512 KiB of memory. When it is reached every second entry is dropped and
	// the interval doubles: a lookup then walks further, which costs one read more.
	indexEntriesMax = 16 << 10

	// producerBatchesMax is the number of batches per producer whose retries are recognised; the protocol lets a client have
	// five in flight, so a sixth could not be a retry.
	producerBatchesMax = 5

	// recordIDsMax is how many record ids all logs of a directory together remember before those that are led here take no more: about 380
	// MiB (recordid.IDsMax says what one takes). What is followed counts and is not refused: its leaders have such a bound too.
	recordIDsMax = 4 << 20

	// idReadBytes is what a load of record ids reads at a time, and idLoadsMax how often it begins anew because the log was cut meanwhile.
	idReadBytes = 1 << 20
	idLoadsMax  = 8

	// producersMax bounds the producers one log remembers (about 16 MiB). Beyond it the longest idle eighth is forgotten; a
	// client that invents producer ids must not grow memory without end (I14).
	producersMax = 64 << 10

	// epochsMax bounds the leader epochs one log remembers; beyond it the oldest are forgotten, and a follower that far behind
	// is told to start from the log's start. One epoch a minute reaches it after 45 days without retention.
	epochsMax = 64 << 10

	// snapshotsKept is how many producer snapshots a log keeps besides the one at each segment's beginning: the newest, and one
	// should the newest be damaged.
	snapshotsKept = 2

	// parallelSyncsMax is the number of files up to which a round syncs each by itself; measured: beyond it one syncfs has the
	// better tail (bench/baselines.md, finding 5). It is also the bound on parallel syncs.
	parallelSyncsMax = 8

	// roundBytesBig is a round of the syncer after which it lets appends collect for roundPause. Measured with 64 partitions at full speed: about 400
	// rounds of 2.5 MB became 200, and a record took a tenth less of the broker's processor time (bench/README.md).
	roundBytesBig = 1 << 20
	roundPause    = 2 * time.Millisecond

	// checkpointBytes is how much a log may grow before its caches are written again: it bounds what recovery walks.
	checkpointBytes = 64 << 20

	// idleSweeps is the number of SavePoints calls without use after which a clean file handle is closed.
	idleSweeps = 3

	// OpenFilesMaxDefault bounds the open segment files of a directory: more than partitions on one node. Where a process may have fewer,
	// its owner says so.
	OpenFilesMaxDefault = 64 << 10

	// filesWaitMax is how long an append waits for a sync round to close files: many rounds, and below a client's time-out.
	filesWaitMax = 5 * time.Second

	// postponedPause is the pause before a sync is tried again that could not be begun, for want of a file descriptor.
	postponedPause = 100 * time.Millisecond

	// walkWindow is what a walk over batch headers reads at a time.
	walkWindow = 64 << 10

	// seekWindow is what a lookup reads at a time: it walks at most one index interval.
	seekWindow = 8 << 10

	// readHints is the number of read positions a log remembers, so that consumers reading on need no index walk.
	readHints = 8

	// readAttempts bounds the retries of a read that raced with a truncation.
	readAttempts = 8

	// stateFileMax bounds the small state files (meta.json, start, clean-shutdown, markers): a larger one is not ours.
	stateFileMax = 64 << 10

	// syncPointFileMax bounds the sync-point file: about 800,000 logs.
	syncPointFileMax = 64 << 20

	// cacheFileMax bounds an index, producer snapshot or epoch file that is read back.
	cacheFileMax = 64 << 20

	// bootIDMax bounds a boot id; Linux has 36 characters.
	bootIDMax = 64

	// clusterIDMax bounds a cluster id in meta.json.
	clusterIDMax = 256

	// reasonMax bounds the text in a damage marker.
	reasonMax = 4096

	// ReserveBytesDefault is the size of the reserve: some minutes of metadata and group progress, and the snapshots of a large cluster,
	// on a disk that records have filled.
	ReserveBytesDefault = 64 << 20

	// reserveFraction is the part of a small disk's capacity that the reserve takes at most, and reserveBytesMin what it has at least: a
	// vote, a metadata snapshot and a sync point of a small cluster with room to spare.
	reserveFraction = 32
	reserveBytesMin = 256 << 10

	// reservePiece is how much of the reserve is written and synced at a time: some 10 ms of a slow disk.
	reservePiece = 1 << 20

	// slowBytesMax is the part before the disk limit in which publishes are slowed, at most, and slowFraction the part of the limit that it is at
	// least; slowdownMax is how long the last ones are.
	slowBytesMax = 1 << 30
	slowFraction = 10
	slowdownMax  = time.Second

	// resumeBytesMax is how much room there must be below a limit that was reached before publishes are taken again, at most, and limitFraction
	// the part of a small limit that it is.
	resumeBytesMax = ReserveBytesDefault
	limitFraction  = 32

	// walkPart bounds what measuring the directory costs: no more than this part of the time goes into listing files. heldDepthMax is how deep
	// directories lie in each other: topics, a partition, and one to spare.
	walkPart     = 100
	heldDepthMax = 3

	// failureCausesMax is how many different causes of unwritten cache files are logged at a time.
	failureCausesMax = 8

	// decompressMax bounds what a time lookup decompresses from one batch: what validation let in is below it.
	decompressMax = 1 << 30

	// verifyProblemsMax bounds the problems that VerifyLog lists.
	verifyProblemsMax = 1000

	// tornSearchBytes bounds the checksums computed while searching for a valid batch behind an invalid one: a crafted record can
	// look like many batch headers. A search that reaches it counts as found, which refuses rather than cuts.
	tornSearchBytes = 16 << 30

	// compactKeysMax is how many keys one compaction pass remembers: some 50 MiB. More keys take more passes.
	compactKeysMax = 1 << 20

	// compactBuffer is what compaction writes at a time.
	compactBuffer = 1 << 20

	// interruptEvery is the number of batches after which a compaction looks whether it is still wanted.
	interruptEvery = 1024

	// cleanMarksPerRetention is how exactly the time since which a tombstone is clean is known: to this part of delete.retention.ms. With
	// cleanMarksMax it bounds the state file.
	cleanMarksPerRetention = 32
	cleanMarksMax          = 64
)
