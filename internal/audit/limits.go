package audit

import "time"

const (
	// partitions is how many chains there are. Nodes share them: a node with id n has its entries kept in chain n mod partitions, and in
	// the next one while that has no leader.
	partitions = 3
	// replicasMax is how many replicas the topic gets where there are that many brokers.
	replicasMax = 3

	// foldEvery is for how long equal denials and failed logins become one entry.
	foldEvery = time.Second
	// foldMax bounds the different ones of that time, so a flood cannot fill the disk; what is more is counted in one entry.
	foldMax = 1000
	// floodBytes is what different denials and failed logins may take at once, floodBytesPerSecond what they may take for ever: 16 GB in a year, after
	// which entries go. foldFlooded is the time of folding while more than half of floodBytes is spent.
	floodBytes          = 1 << 20
	floodBytesPerSecond = 512
	foldFlooded         = time.Minute
	// entryBytes is what an entry takes beside its texts, at most.
	entryBytes = 160
	// queueMax bounds the entries that wait to be kept (I14). At it administration is refused, and denials are folded for longer.
	queueMax = 5000
	// batchMax and batchBytesMax bound the entries that go at once.
	batchMax      = 200
	batchBytesMax = 256 << 10
	// textMax is the longest text of an entry, in bytes.
	textMax = 4 << 10

	// beginMax is how long a change waits for its entry before it is refused, finishMax how long an answer waits for the entry of its outcome.
	beginMax  = 5 * time.Second
	finishMax = 2 * time.Second
	// commitMax bounds one attempt to keep entries.
	commitMax = 3 * time.Second
	// retryEvery is the pause after an attempt that failed, sayEvery the time between log lines about them.
	retryEvery = 100 * time.Millisecond
	sayEvery   = 10 * time.Second
	// createMax bounds one attempt to create the topic, createEvery is the pause between two.
	createMax   = 10 * time.Second
	createEvery = 500 * time.Millisecond

	// jobsMax bounds the deliveries that wait for one chain.
	jobsMax = 64
	// tailEntries of a chain are read back by a new leader: of those it knows which were delivered before.
	tailEntries = 256
	// tailBytes is how much of it is read at once, tailReads how often at most.
	tailBytes = 1 << 20
	tailReads = 1000
	// runsMax bounds the processes whose newest delivery a chain remembers.
	runsMax = 1000

	// offlineActsMax bounds the acts on a stopped node that wait for it to run, offlineBytesMax their file; offlineRetry is the pause between
	// two attempts to have one kept.
	offlineActsMax  = 1000
	offlineBytesMax = 8 << 20
	offlineRetry    = time.Second
)
