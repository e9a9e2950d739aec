package main

import "time"

const (
	// timeoutDefault bounds each wait on a broker: long enough for an election, short enough to notice a wrong address.
	timeoutDefault = 10 * time.Second
	// dialTimeoutMax bounds one attempt to connect; a loopback or LAN broker answers in milliseconds.
	dialTimeoutMax = 3 * time.Second
	// requestRetriesMax bounds repeated admin requests: a refused connection is reported after about a second.
	requestRetriesMax = 4
	// lineBytesMax bounds one line of JSON input: base64 of the largest batch Kafka's size fields allow in practice, with room.
	lineBytesMax = 256 << 20
	// produceResultsMax bounds the records whose result has not been printed yet (memory of `produce`).
	produceResultsMax = 10_000
	// profileBytesMax bounds the profile file, which a person writes.
	profileBytesMax = 1 << 20
	// describePage is how many partitions are asked for in one request; a broker may answer with fewer.
	describePage = 1000
	// headersMax bounds the headers of one record given by flags or JSON; the broker has its own limit in bytes.
	headersMax = 10_000
)
