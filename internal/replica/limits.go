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
	fetchItemsMax = 4096
	// chunkMin is the smallest buffer that is pooled, and chunkClasses the number of powers of two from there: 64 KiB to 8 MiB.
	// Below, pooling costs more than it saves; above, an idle pool would pin too much.
	chunkMin     = 64 << 10
	chunkClasses = 8
)
