package main

import "time"

const (
	// timeoutDefault bounds each wait on a broker: long enough for an election, short enough to notice a wrong address.
	timeoutDefault = 10 * time.Second
	// dialTimeoutMax bounds one attempt to connect; a loopback or LAN broker answers in milliseconds.
	dialTimeoutMax = 3 * time.Second
	// otherSeedsMax is how long the other named brokers may take to answer once one has.
	otherSeedsMax = 50 * time.Millisecond
	// askedMax is how many brokers are asked one after the other, within the time for an exchange, when one takes a question and does not answer;
	// answerMin is what each gets at least.
	askedMax  = 5
	answerMin = 100 * time.Millisecond

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
	// planWindow is how long plan --from-cluster looks unless told otherwise: long enough for batches that linger to count.
	planWindow = 5 * time.Second
	// planWindowMax bounds how long it looks.
	planWindowMax = 10 * time.Minute
	// probesMax bounds the addresses that doctor asks at once.
	probesMax = 16
	// headersMax bounds the headers of one record given by flags or JSON; the broker has its own limit in bytes.
	headersMax = 10_000
	// aclsMax bounds the rules of access in one request; a broker takes as many.
	aclsMax = 1000
	// passwordBytesMax bounds the line that a password is read from.
	passwordBytesMax = 1024
)

const (
	// auditEntriesMax is how many entries `audit` holds at once, some 500 bytes each.
	auditEntriesMax = 500_000
	// auditQuiet is after how long without entries `audit` looks whether what it waits for has been removed.
	auditQuiet = 300 * time.Millisecond
)
