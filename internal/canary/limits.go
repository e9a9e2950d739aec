package canary

import "time"

const (
	// partitions take turns. Placement gives them different leaders.
	partitions = 3
	// replicasMax is how many replicas the topic gets where there are that many brokers.
	replicasMax = 3
	// retentionMs, in milliseconds (10 minutes), and segmentBytes bound what the topic holds: at one record of some 120 bytes a second from each
	// node a few hundred kilobytes.
	retentionMs  = "600000"
	segmentBytes = "1048576"
	// recordBytesMax bounds what is read back.
	recordBytesMax = 64 << 10

	// giveUp is after how long a measurement has failed: to publish, and once more to read.
	giveUp = 10 * time.Second
	// attemptMax bounds one attempt to publish or to read, retryEvery is the pause between two.
	attemptMax = 3 * time.Second
	retryEvery = 100 * time.Millisecond
	// createMax bounds one attempt to create the topic.
	createMax = 5 * time.Second
)
