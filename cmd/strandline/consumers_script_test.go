package main

import (
	"context"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kgo"
)

// cmdConsumers is `consumers GROUP TOPIC N`: a member of a group of the consumer protocol (KIP-848) joins, reads and commits N records, and
// stays until the script ends.
func cmdConsumers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: consumers GROUP TOPIC N")
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(ts.Getenv("STRANDLINE_BROKERS")), kgo.ConsumerGroup(args[0]), kgo.ConsumeTopics(args[1]), kgo.ClientID("desk"),
		kgo.ServerSideBalancer(), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ts.Check(err)
	ts.Defer(client.CloseAllowingRebalance)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	for read := 0; read < n; {
		fetches := client.PollRecords(ctx, 1)
		ts.Check(fetches.Err0())
		ts.Check(client.CommitRecords(ctx, fetches.Records()...))
		read += fetches.NumRecords()
	}
}
