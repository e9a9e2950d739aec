package rest

import "time"

// I14: what a client of the HTTP door can make grow, and by how much. H numbers are those of the list of malicious requests.
const (
	// headerBytesMax bounds the headers of one request (H1), headersMax their number (H2).
	headerBytesMax = 64 << 10
	headersMax     = 100
	// groupNameMax is the longest name of a group that a request can say, in characters: 48,000 bytes as a URL has them at most. On the Kafka port
	// it may have 32,767 bytes.
	groupNameMax = 4000
	// pathBytesMax bounds the path and query of a request (H9), and groupPathBytesMax where a name of a group is in it.
	pathBytesMax      = 4 << 10
	groupPathBytesMax = 48 << 10
	// headerTimeMax bounds how long a client may take to send its headers (H4).
	headerTimeMax = 10 * time.Second
	// requestTimeMax bounds how long a client may take to send a request, and answerTimeMax from then on how long an answer may take: it is above the
	// longest wait that a request can ask for.
	requestTimeMax = 30 * time.Second
	answerTimeMax  = 60 * time.Second
	// idleTimeMax bounds an idle keep-alive connection, connectionsMax the open ones: more are closed at once (H17).
	idleTimeMax    = 2 * time.Minute
	connectionsMax = 2048
	// bodyBytesMax bounds a request body, also after decompression (H3, H16): the largest record in base64, or a batch of smaller ones.
	bodyBytesMax = 8 << 20
	// bodiesBytesMax bounds the bodies of all requests in work; more are answered 429.
	bodiesBytesMax = 128 << 20
	// bodyKeep is the largest body buffer that is used again.
	bodyKeep = 1 << 20

	// publishedMax bounds the records of one publish.
	publishedMax = 10_000
	// recordHeadersMax bounds the headers of one record, recordIDMax the bytes of its id.
	recordHeadersMax = 100
	recordIDMax      = 256
	// fetchBytesMax bounds the records read for one answer; a single batch may be larger. fetchRecordsDefault and fetchRecordsMax bound their number.
	fetchBytesMax       = 2 << 20
	fetchRecordsDefault = 100
	fetchRecordsMax     = 10_000
	// waitMax bounds waitMs of a fetch and timeoutMs of a publish: longer ones are shortened (H20).
	waitMax = 25 * time.Second
	// publishWaitDefault is how long a publish waits for its acknowledgement.
	publishWaitDefault = 10 * time.Second
	// holdBackMax bounds for how long the answer to a publish is held back near the disk limit.
	holdBackMax = 2 * time.Second
	// adminWait bounds administrative requests and look-ups.
	adminWait = 20 * time.Second

	// rebalanceMax is how long a member of a group may take to give partitions up.
	rebalanceMax = 45 * time.Second
	// auditReadsMax bounds the reads of the audit trail at one time, auditEntriesMax the entries that one holds, some 500 bytes each.
	auditReadsMax   = 1
	auditEntriesMax = 100_000
	// configsMax bounds the configs of one request.
	configsMax = 200
	// identitiesMax bounds the proofs of identity that are remembered, identityTime how long: a password costs milliseconds to check.
	identitiesMax = 1024
	identityTime  = time.Minute
	// loginWait bounds the wait for a password or token to be judged.
	loginWait = 5 * time.Second
)
