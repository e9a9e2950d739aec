package coordinator

import "time"

const (
	// inboxMax bounds the requests that wait for one shard (I14). A client has one request in flight on a connection, so this many
	// clients ask at once before one is told to come again.
	inboxMax = 20_000
	// flightsMax bounds the batches of one shard that are appended and not committed; then the shard waits, and its inbox fills.
	flightsMax = 64
	// batchBytesMax is the size at which a shard begins a new batch, in bytes. One record larger than this is a batch by itself.
	batchBytesMax = 512 << 10
	// batchKeep is the largest batch buffer an idle shard keeps.
	batchKeep = 64 << 10
	// commitWaitMax is how long a decided request waits for its commit (Kafka's offsets.commit.timeout.ms).
	commitWaitMax = 5 * time.Second

	// loadsMax bounds how many shards read their logs at the same time, and with loadBytes the memory that takes.
	loadsMax = 8
	// loadBytes is how much of a log is read at once.
	loadBytes = 1 << 20
	// loadStuckMax bounds how often a load looks again without having read anything.
	loadStuckMax = 100
	// reloadMin and reloadMax bound the pause before a shard is loaded again after a failure in the same epoch.
	reloadMin = 50 * time.Millisecond
	reloadMax = 10 * time.Second

	// patternsMax bounds the regular expressions whose matches are remembered, and patternCacheBytes about what all of them take.
	patternsMax       = 1000
	patternCacheBytes = 64 << 20
	// namesSpare is how many names of topics that are gone may be remembered beside as many as there are topics.
	namesSpare = 1000
	// patternTimeMax is how long an expression that a client brings may take to match the names of all topics that it was not matched against
	// yet: a thousand times what one takes that lists names or begins with a prefix.
	patternTimeMax = time.Second
	// shortLook is how long looks at an expression may go on side by side: what takes longer is done one after the other, so that clients with
	// costly ones take one processor from all others, and no more.
	shortLook = 10 * time.Millisecond
	// matchTimeMax is what a match of one name counts for at most: twice what the costliest takes.
	matchTimeMax = 50 * time.Millisecond
	// patternRefusedFor is how long an expression that took too long is refused without another look, from the first name; refusalsMax bounds
	// those that are remembered.
	patternRefusedFor = 10 * time.Second
	refusalsMax       = 1000

	// createEvery is the least time between two attempts to create the topic: every client asks for a coordinator several times a
	// second while there is none.
	createEvery = time.Second
	// createMax bounds one attempt.
	createMax = 10 * time.Second
	// replicasMax is how many replicas the topic gets where there are that many brokers.
	replicasMax = 3

	// clockStepMax is how far the wall clock may have stepped against the monotonic one before offsets stop to expire; retention of
	// records pauses at the same step (I9).
	clockStepMax = 5 * time.Minute

	// backlogsEvery is how often all groups are looked at, backlogPartitionsMax how many of their partitions at a time, and backlogPageMax
	// how many a shard lists before others get their turn: 50,000 are 25 questions of some 10 ms each to the leaders.
	backlogsEvery        = 10 * time.Second
	backlogPartitionsMax = 50_000
	backlogPageMax       = 5000

	// growthsMax is how many topics that have grown are remembered. A shard that is further behind finds the rest by the widths in its log.
	growthsMax = 10_000

	// noteLinesMax lines about rebalances are logged by one shard in noteLinesEvery; members can cause any number of them.
	noteLinesMax   = 20
	noteLinesEvery = 10 * time.Second

	// loggedTextMax cuts client-chosen text in log lines: a group id may have 32,767 bytes.
	loggedTextMax = 100
)
