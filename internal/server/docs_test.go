package server

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write docs/protocol.md anew instead of comparing it")

const protocolPage = "../../docs/protocol.md"

const protocolIntro = `# The Kafka protocol as Strandline speaks it

This page is made from the handler table and the version table by ` + "`go test ./internal/server -run TestDocs -rewrite`" + `; a test fails when it is
out of date. What is not in the table does not exist: it is not advertised, and a request for it closes the connection with one line in the
log. Where we differ from Apache Kafka on purpose, [deviations.md](deviations.md) says so.

| key | API | versions served | advertised from | the principal needs |
|--:|---|---|--:|---|
`

const protocolNotes = `
Version rules, for every API:

- Below the served range: UNSUPPORTED_VERSION, in the layout of the version that was asked for. A Produce with acks=0 closes the connection.
- Above the served range, or an unknown key: the layout is unknown, so the connection is closed, with one log line that names client, key and
  version. ApiVersions alone is answered: error 35 in the layout of version 0 with our range for key 18, and the connection stays open (KIP-511).
- A body that does not parse, or has bytes behind its end: the connection is closed, with one log line.

Produce is advertised from version 0 although 0-2 are refused: librdkafka takes a higher minimum for a broker without record batches
(KAFKA-18659).

The broker setting ` + "`strandline.protocol.cap`" + ` names a release of Kafka whose highest versions are then ours: what that release does not know, or knows
only below the served range, is not advertised, and a request for it closes the connection. The minimums above stay. It is for trying what
clients do with older brokers; a client that is released for such a broker needs no cap.

Answers leave in request order. Publishes are pipelined behind publishes; a request of any other kind starts when everything before it on its
connection has been answered, so a long poll holds up what follows it.
`

// docs/protocol.md says what the tables say.
func TestDocs_ProtocolPageIsCurrent(t *testing.T) {
	var b strings.Builder
	b.WriteString(protocolIntro)
	for _, a := range served() {
		fmt.Fprintf(&b, "| %d | %s | %d-%d | %d | %s |\n", a.Key, a.Name, a.Min, a.Max, a.AdvertisedMin, rowOf(a.Key).operation)
	}
	b.WriteString(protocolNotes)
	if *rewrite {
		must(t, os.WriteFile(protocolPage, []byte(b.String()), 0o644))
		return
	}
	have, err := os.ReadFile(protocolPage)
	must(t, err)
	if string(have) != b.String() {
		t.Error("docs/protocol.md is out of date: go test ./internal/server -run TestDocs -rewrite")
	}
}
