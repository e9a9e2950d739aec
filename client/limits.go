package client

import "time"

const (
	// pollRecordsMax bounds the records of one poll, so that a worker sees a rebalance or its end soon.
	pollRecordsMax = 500
	// waitingMax bounds the records of one partition that wait in the worker; from there its fetches pause until half are done. One poll may
	// exceed it.
	waitingMax = 1000
	// aheadMax bounds the records that AtMostOnce commits before it processes them: a crash loses up to as many.
	aheadMax = 50
	// fetchWaitMax is how long a broker holds a fetch without records: a resumed partition waits for the fetch before it.
	fetchWaitMax = 500 * time.Millisecond
	// commitTimeMax bounds one commit; the next covers what it did not.
	commitTimeMax = 5 * time.Second
	// cancelTimeMax is how long a function may go on after its context has ended, before its partition is given up without it.
	cancelTimeMax = 2 * time.Second
	// rangeTimeMax bounds the question which offsets a partition has.
	rangeTimeMax = 10 * time.Second
	// takeBackMax is how long the end of a publish waits for kgo to take back a record that was not sent.
	takeBackMax = 100 * time.Millisecond
	// errorBytesMax bounds the text of an error in the header of a record set aside.
	errorBytesMax = 1024
)

// Defaults of the options.
const (
	concurrencyDefault     = 16
	keyConcurrencyMax      = 1024 // goroutines of one partition
	attemptsDefault        = 10
	backoffMinDefault      = 100 * time.Millisecond
	backoffMaxDefault      = 10 * time.Second
	commitEveryDefault     = time.Second
	drainMaxDefault        = 10 * time.Second // well within the rebalance time-out of kgo, 60 s
	publishTimeoutDefault  = 30 * time.Second
	windowDefault          = 2 * time.Minute // of topics made by REST or CLI
	bufferedRecordsDefault = 10_000
	bufferedBytesDefault   = 64 << 20
)
