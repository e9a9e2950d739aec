package replica

import "time"

const (
	// openParallel bounds how many logs are opened or closed at once. Opening is a handful of small reads and, after a crash,
	// a scan of one segment: eight keep a disk busy; more only fragment its queue and the page cache.
	openParallel = 8
	// pointsEvery is the least time between two writes of the sync-point file: it bounds what recovery has to scan.
	pointsEvery = 5 * time.Second
	// retentionEvery is the time between two retention passes. A pass over a log with nothing to remove looks at two numbers.
	retentionEvery = 10 * time.Second
	// purgeBatchMax is how many replicas are deleted, and reported as deleted, at a time.
	purgeBatchMax = 256
	// purgeEvery is the time after which a purge that failed is tried, and one that was done is reported, again.
	purgeEvery = 5 * time.Second
	// clockStepMax is how far the wall clock may have moved against the monotonic one before ages mean nothing and retention
	// pauses (I9).
	clockStepMax = 5 * time.Minute
	// stallMax is how long bytes may wait for a sync before the disk counts as stalled and led partitions take no more: real
	// disks stall for a second or two under load; clients give up after 30 s.
	stallMax = 10 * time.Second
	// stallCheckEvery is how often the watchdog looks.
	stallCheckEvery = time.Second
	// yieldEvery is how often it is asked whether others are to lead because the disk is full.
	yieldEvery = time.Second
	// measureEvery is how often the room below the disk limit is measured: so long after space has returned publishes are taken again.
	measureEvery = time.Second
	// reserveEvery is how often the reserve is looked after: so long after space has returned user records are taken again, or a
	// little longer on a slow disk.
	reserveEvery = 3 * time.Second
	// appendWarnEvery is the least time between two log lines about failed appends to one partition for one cause: clients retry
	// many times a second.
	appendWarnEvery = 10 * time.Second
	// producerExpiryDefault is Kafka's default of producer.id.expiration.ms.
	producerExpiryDefault = 24 * time.Hour
	// readSlack is added to the estimate of how many bytes a read will give: the first batch may start below the offset asked
	// for, by up to one index interval and more for large batches. Too little costs a copy, never correctness.
	readSlack = 16 << 10
	// errorsMax bounds how many partition errors one Reconcile or Close reports; the rest are in the log.
	errorsMax = 8
	// fetchItemsMax bounds nothing by itself: the server limits the partitions of a request. It is the number of results a
	// FetchBuffer keeps for reuse; larger ones are let go (I14).
	fetchItemsMax = 20_000
	// wideFetch is the number of partitions above which a parked fetch rests before it wakes, widePause for each of them from when it was
	// parked: looking at one costs about 1 us, so a fetch over 10,000 sleeps 50 ms for every 10 ms of work. Smaller fetches wake at once.
	wideFetch = 1000
	widePause = 5 * time.Microsecond
	// lagMaxDefault is replica.lag.max where nothing else is configured: long enough for a pause of a second or two, short enough for
	// clients that wait for acks=all meanwhile.
	lagMaxDefault = 5 * time.Second
	// ticksPerLag is how often in replica.lag.max the lag of followers is measured.
	ticksPerLag = 10
	// entriesMax bounds the partitions of one message between replicas; more go with the next one.
	entriesMax = 64 << 10
	// followWait is how long a leader without news keeps a fetch, and followWaitMax what it keeps to whatever the follower asks. Nothing
	// depends on it but the cost of an idle cluster.
	followWait    = 500 * time.Millisecond
	followWaitMax = 5 * time.Second
	// followAnswerMax is how much later than asked an answer may come before the fetch is given up: a leader that is stopped keeps its
	// connections for a while. An answer of followBytes takes some 10 ms.
	followAnswerMax = 2 * time.Second
	// followBytes bounds the records of one fetch, followPartitionBytes those of one partition in it, and catchUpBytes those of all
	// partitions that are not in sync: large enough to be no bottleneck at a gigabyte a second, small enough that partitions in sync wait
	// no more than some milliseconds for others.
	followBytes          = 4 << 20
	followPartitionBytes = 1 << 20
	catchUpBytes         = 1 << 20
	// paceBurst is how much time's worth of bytes may go out at once after a rest when copies are bounded: enough to fill the answers between
	// two fetches. paceWaitMin and paceWaitMax bound the pause without room: a change of the rate is felt after paceWaitMax.
	paceBurst   = 200 * time.Millisecond
	paceWaitMin = time.Millisecond
	paceWaitMax = 500 * time.Millisecond
	// cutsMax bounds the logs that are cut, or begin anew, at once after an answer of one leader; the disk makes several durable in the time of one.
	cutsMax = 16
	// answerKeep is the largest answer whose memory is kept for the next one; a larger one holds a single large batch.
	answerKeep = 8 << 20
	// watermarkEvery is how old and behind the watermark that a follower knows may be before it is told: it is where the follower begins
	// when it becomes the leader.
	watermarkEvery = 100 * time.Millisecond
	// followPauseMin and followPauseMax bound the pause after a failed fetch; the dials have a pause of their own.
	followPauseMin = 10 * time.Millisecond
	followPauseMax = 250 * time.Millisecond
	// retryPauseMin and retryPauseMax bound the pause before one partition is tried again: at first no longer than the metadata takes to
	// get from node to node at a change of leader, then long enough to cost nothing.
	retryPauseMin = 5 * time.Millisecond
	retryPauseMax = time.Second
	// submitMax bounds the wait for the controller's answer to what replicas report; then they report anew what is so by then.
	submitMax = 3 * time.Second
	// changesMax and damagesMax bound the partitions of one event: a decision is split at 1 MiB, and some thousand partitions are below.
	changesMax = 1000
	damagesMax = 1000
	// compactEvery is the time between two visits of the logs that are compacted: Kafka's log.cleaner.backoff.ms. A visit of a log where
	// nothing is due looks at its segments in memory.
	compactEvery = 15 * time.Second
	// compactPassesMax bounds the passes of one visit, so that a log with more keys than a pass remembers holds up the others for a while only.
	compactPassesMax = 16
	// choresMax bounds the partitions that are taken up together for work on their files.
	choresMax = 256
	// chorePauseMin and chorePauseMax bound the pause after chores that failed.
	chorePauseMin = 20 * time.Millisecond
	chorePauseMax = time.Second
	// proposePause is the pause after a refused ISR change: this node's view is behind the controller's for some milliseconds.
	proposePause = 250 * time.Millisecond
	// startWaitMax bounds the wait of DeleteRecords for the followers, above the time-out of any client's request.
	startWaitMax = 60 * time.Second
	// backlogItemsMax bounds the partitions of one question about backlogs; each costs the leader a look into an index.
	backlogItemsMax = 2000
	// backlogWaitMax bounds the wait for the leaders' answers; whoever is late is unknown.
	backlogWaitMax = 2 * time.Second
	// chunkMin is the smallest buffer that is pooled, and chunkClasses the number of powers of two from there: 64 KiB to 8 MiB.
	// Below, pooling costs more than it saves; above, an idle pool would pin too much.
	chunkMin     = 64 << 10
	chunkClasses = 8
)
