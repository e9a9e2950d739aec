package server

import (
	"time"

	"strandline.dev/internal/config"
)

// Limits are the bounds of the Kafka door (I14). The zero value of a field means its default.
type Limits struct {
	// Memory is how many bytes the requests and responses in flight of all connections may hold, half for each. Readers take no more
	// frames above their half; answers get smaller. The default is the setting queued.max.request.bytes.
	Memory int64
	// Connections is the largest number of open connections on all listeners; more are closed at once. The default is the setting
	// max.connections.
	Connections int
	// Drain is how long a graceful stop waits for parked requests.
	Drain time.Duration
	// WriteStall is how long a peer may take no bytes of a response before it is closed (K60).
	WriteStall time.Duration
	// FrameStall is how long a peer may send no bytes in the middle of a frame before it is closed (C086).
	FrameStall time.Duration
}

const (
	// drainDefault is above the acknowledgement time of a slow disk and below the 10 s that supervisors give after SIGTERM.
	drainDefault = 5 * time.Second
	// writeStallDefault and frameStallDefault pass over a lost packet's longest retransmission back-off of a living peer.
	writeStallDefault = 30 * time.Second
	frameStallDefault = 30 * time.Second

	// verdictMax bounds the wait of a metadata request for the controller's verdict on a broker whose connection has just ended: it is there after
	// some 10 ms, or takes a whole session.
	verdictMax = 200 * time.Millisecond

	// unansweredMax is how long the active controller may not answer before clients are sent to another node with administrative requests: several
	// heartbeats.
	unansweredMax = time.Second

	// reachMax bounds the dials by which a description of the quorum tells which voters are there.
	reachMax = 500 * time.Millisecond

	// aheadMax is how long a publish may wait for the metadata that its client has already: the next node has it some milliseconds later.
	aheadMax = 100 * time.Millisecond
	// lostMax is how long a node that has lost a leadership is where clients come that do not know it yet.
	lostMax = time.Second

	// handshakeMax bounds a TLS handshake, loginMax the time until a client has proved who it is, loginStepMax the work on one message of that.
	handshakeMax = 10 * time.Second
	loginMax     = 15 * time.Second
	loginStepMax = 10 * time.Second
	// strangerFrameMax is the largest frame of a client that has not proved who it is yet: a token of 32 KiB fits.
	strangerFrameMax = 64 << 10
	// sweepEvery is how often connections are looked over for proofs that hold no longer; expiredGrace is what an idle client has, behind the
	// end of its session, to prove itself anew with its next request. Together they stay below 10 s (P42).
	sweepEvery   = 2 * time.Second
	expiredGrace = 5 * time.Second

	// connectWaitMax bounds the wait of a connection from an address that is over its connection_creation_rate; one that would wait longer is closed.
	connectWaitMax = 10 * time.Second

	// firstFrameMax is how long a graceful stop waits for the first request of a new connection: a round trip between data centres.
	firstFrameMax = 200 * time.Millisecond

	// smallFrame is the largest request that draws on a memory budget of its own, smallShare of the whole: metadata, heartbeats,
	// fetches and small publishes go on while large publishes wait for memory.
	smallFrame = 64 << 10
	smallShare = 8
	// shortageMax is how long a request may wait for memory before a frame that arrives slowly is dropped for it, and frameRateMin
	// (bytes a second) is what counts as slow: a 100 MiB request over a 10 Mbit/s line is still faster.
	shortageMax  = time.Second
	frameRateMin = 1 << 20

	// goneCheck is how often a reader that waits for its turn looks whether its peer is still there: a system call a second, for connections
	// that pipeline behind a long poll.
	goneCheck = time.Second

	// readBuffer is a connection's read buffer: several small requests for one read, cheap for idle connections.
	readBuffer = 8 << 10
	// shelfShare is the part of the memory budget that free request buffers may take: a few large publishes. shelfIdle is after how long
	// without use one is let go: longer than a sync round of a busy disk, in which publishers wait for their answers and send nothing.
	// shelfClasses is the number of powers of two from frameMin to frameMax.
	shelfShare   = 4
	shelfIdle    = time.Second
	shelfClasses = 14
	// outKeep is the largest encoding buffer that is used again, and the size at which a connection writes early.
	outKeep = 64 << 10
	// writeChunk is the part of a response written under one write deadline, so that a slow but living peer gets all of it.
	writeChunk = 1 << 20
	// pipelineMax bounds the Produce requests in flight on one connection. Clients keep 5, librdkafka up to 1000 without idempotence;
	// above it the reader waits.
	pipelineMax = 64

	// fetchWaitMax bounds a long poll: it holds up what follows on its connection (C116). Clients send 0.5 s; an early empty answer
	// is legal.
	fetchWaitMax = 60 * time.Second
	// produceWaitMax bounds timeout_ms of a publish; clients send 1.5-30 s.
	produceWaitMax = 10 * time.Minute
	// adminWaitMax and adminWaitDefault bound timeout_ms of administrative requests; 0 and below mean the default.
	adminWaitMax     = 5 * time.Minute
	adminWaitDefault = 30 * time.Second
	// autoCreateWait is how long a Metadata answer waits for the topics it creates; then they are answered as not there yet.
	autoCreateWait = 5 * time.Second
	// autoCreateMax bounds the topics that one Metadata request may create (K37).
	autoCreateMax = 50
	// lookupsMax bounds the topics that one Metadata or DescribeTopicPartitions request may name; the rest is POLICY_VIOLATION (K37).
	lookupsMax = 20_000
	// partitionsMax bounds the partitions of one Produce, Fetch, ListOffsets or OffsetForLeaderEpoch request (K37); the largest client
	// batches stay below a broker's share of partitions.
	partitionsMax = 20_000
	// adminItemsMax bounds the topics or resources of one administrative request, so that one decision stays one Raft entry or a few.
	adminItemsMax = 2_000
	// describedProducersMax bounds the producers in one DescribeProducers answer, some 50 bytes each: eight partitions as full as storage lets
	// them become. Partitions beyond are POLICY_VIOLATION.
	describedProducersMax = 512 << 10
	// groupsMax bounds the groups, or the members, that one request may name (K37).
	groupsMax = 10_000
	// createCoordinatorWait is how long a FindCoordinator answer waits for the coordinators' topic to be created; then the client is told
	// to ask again.
	createCoordinatorWait = 5 * time.Second
	// newPartitionWait is how long an OffsetFetch for a partition that this node does not know waits for the node to hear of it: metadata
	// takes some milliseconds from node to node.
	newPartitionWait = 3 * time.Second
	// describePageDefault and describePageMax are the partitions of one DescribeTopicPartitions answer (Kafka: 2000).
	describePageDefault = 2000
	describePageMax     = 2000

	// inflationsMax bounds the batches that are decompressed at the same time, where there are that many cores: each may take as much memory
	// as a batch may decompress to, 32 MiB by default.
	inflationsMax = 8

	// fetchShare is the part of the response memory that one answer may take: a consumer that catches up must leave room for others.
	fetchShare = 8
	// fetchFloor is what a fetch may read however full the memory budget is: without it consumers could not drain the node.
	fetchFloor = 64 << 10

	// sessionsMax is the number of fetch sessions kept (Kafka: 1000), sessionShareMax one host's part of them, and
	// sessionPartitionsMax the partitions of all sessions together (about 150 bytes each).
	sessionsMax          = 1000
	sessionShareMax      = 250
	sessionPartitionsMax = 500_000
	// sessionIdle is after how long without a request a session may be evicted for a new one (Kafka: 120 s).
	sessionIdle = 120 * time.Second

	// producerIDBlock is how many producer ids are taken from the controller at once (Kafka: 1000); unused ones are lost at a restart.
	producerIDBlock = 1000
	// producerIDWait bounds one request for a block.
	producerIDWait = 10 * time.Second

	// acceptBackoffMin and acceptBackoffMax are the pauses after a failed accept (too many open files).
	acceptBackoffMin = 5 * time.Millisecond
	acceptBackoffMax = time.Second

	// clockAheadMin is how far ahead of this node's clock records may be stamped without a word: clocks that are kept by NTP differ by less.
	clockAheadMin = time.Minute

	// peerLinesMax lines about peers are logged for each reason in peerLinesEvery; the rest is counted.
	peerLinesMax   = 10
	peerLinesEvery = 10 * time.Second

	// messageMax cuts the message of an error: the longest of our own, with a topic's name and a list of what is allowed, is below half of it.
	messageMax = 1000

	// loggedTextMax cuts client-chosen text in log lines.
	loggedTextMax = 100
)

// withDefaults fills in what is zero: from the broker's settings, or from the constants above.
func (l Limits) withDefaults(b config.Broker) Limits {
	if l.Memory <= 0 {
		l.Memory = b.QueuedMaxRequestBytes
	}
	if l.Connections <= 0 {
		l.Connections = b.ConnectionsMax
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&l.Drain, drainDefault)
	def(&l.WriteStall, writeStallDefault)
	def(&l.FrameStall, frameStallDefault)
	return l
}

// changeTextMax is about where a text of an audit entry stops to be built, in bytes; the trail cuts it at 4 KiB.
const changeTextMax = 4000
