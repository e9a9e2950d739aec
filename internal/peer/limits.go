package peer

import "time"

const (
	// dialMax bounds a dial: nodes of a cluster are milliseconds apart, and a fail-over waits for it.
	dialMax = 500 * time.Millisecond
	// helloMax bounds the hello, TLS included, after the dial, and the time an accepted connection may take to send its own.
	helloMax = time.Second
	// backOffMin and backOffMax bound the pause between dials to a node that cannot be reached, before jitter (which only
	// shortens it): long enough to cost nothing, short enough that a node that is back is used at once.
	backOffMin = 20 * time.Millisecond
	backOffMax = 250 * time.Millisecond

	// pingEvery is how long a connection may send nothing, and idleMax how long it may hear nothing before it is broken: three
	// pings may come late on a busy machine.
	pingEvery = time.Second
	idleMax   = 3500 * time.Millisecond
	// writeMax bounds the writing of writeChunk bytes: a peer that takes nothing for so long is gone.
	writeMax   = 3500 * time.Millisecond
	writeChunk = 1 << 20

	// helloBytesMax is the largest first frame: it is taken from anybody.
	helloBytesMax = 4 << 10
	// controlBytesMax, dataBytesMax and adminBytesMax (also of Clients) are the largest frames of a class. A metadata decision is split at 1 MiB and a
	// Raft message holds few of them; a fetch answer holds at least one batch, whatever its size, and Kafka's largest is 2 GiB in
	// theory and some 100 MiB in practice.
	controlBytesMax = 16 << 20
	dataBytesMax    = 256 << 20
	adminBytesMax   = 32 << 20
	// bodyChunk is what is allocated for a body before any byte of it has come; then the buffer doubles.
	bodyChunk = 1 << 20
	// readBuffer is a connection's read buffer; bodies above it are read without another copy.
	readBuffer = 32 << 10

	// queueFramesMax and queueBytesMax bound what waits to be written on one connection.
	queueFramesMax = 4096
	queueBytesMax  = 64 << 20
	// earlyFramesMax bounds the one-way messages that wait for a dial.
	earlyFramesMax = 256
	// inFlightMax bounds the requests of one accepted connection that are in work or whose answer is not written yet.
	inFlightMax = 256
	// pendingMax bounds the calls on one connection that wait for an answer. It is below the other side's inFlightMax: whoever keeps to it
	// is never refused there, except for calls that were given up here and still run there.
	pendingMax = 192
	// acceptedMax bounds accepted connections: a cluster of 80 nodes has 320. unknownMax bounds those among them that have not said hello.
	acceptedMax = 512
	unknownMax  = 64
	// acceptPauseMin and acceptPauseMax bound the pause after a failed accept (too many open files).
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = time.Second

	// faultTextMax bounds the text of a RemoteError and of a refused hello.
	faultTextMax = 1 << 10
	// lineEvery is how often the same fault of the same address is logged; linesMax bounds the faults remembered for that.
	lineEvery = time.Minute
	linesMax  = 1024
)

// frameBytesMax is the largest frame of a class.
func frameBytesMax(c Class) int {
	switch c {
	case Data:
		return dataBytesMax
	case Admin, Clients:
		return adminBytesMax
	}
	return controlBytesMax
}
