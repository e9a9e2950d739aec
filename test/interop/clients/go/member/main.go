// Command member is one member of a group by franz-go, with the lines of ../../../churn_test.go: member BROKERS GROUP TOPIC PROTOCOL. It leaves
// when its standard input ends.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// commitMax bounds one commit.
const commitMax = 5 * time.Second

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(brokers, group, topic, protocol string) error {
	opts := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.BlockRebalanceOnPoll(), kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.FetchMaxWait(200 * time.Millisecond), kgo.Balancers(kgo.RangeBalancer()), kgo.SessionTimeout(6 * time.Second), kgo.HeartbeatInterval(500 * time.Millisecond),
		kgo.OnPartitionsAssigned(told("assigned")), kgo.OnPartitionsRevoked(told("revoked")), kgo.OnPartitionsLost(told("lost")),
	}
	if protocol == "consumer" {
		opts = append(opts, kgo.ServerSideBalancer())
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	ctx, leave := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		leave()
	}()
	for ctx.Err() == nil {
		step(ctx, cl)
		cl.AllowRebalance()
	}
	cl.CloseAllowingRebalance()
	return nil
}

func step(ctx context.Context, cl *kgo.Client) {
	fetches := cl.PollRecords(ctx, 500)
	for _, e := range fetches.Errors() {
		fmt.Fprintln(os.Stderr, e.Topic, e.Partition, e.Err)
	}
	next := map[int32]int64{}
	fetches.EachRecord(func(r *kgo.Record) {
		fmt.Println("read", r.Partition, r.Offset, string(r.Value))
		next[r.Partition] = r.Offset + 1
	})
	if len(next) == 0 {
		return
	}
	for p, o := range next {
		fmt.Println("committing", p, o)
	}
	one, done := context.WithTimeout(context.WithoutCancel(ctx), commitMax)
	defer done()
	if err := cl.CommitRecords(one, fetches.Records()...); err != nil { // what was read is read again by whoever has it next
		fmt.Println("refused", err)
		return
	}
	for p, o := range next {
		fmt.Println("committed", p, o)
	}
}

func told(what string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, given map[string][]int32) {
		for _, partitions := range given {
			for _, p := range slices.Sorted(slices.Values(partitions)) {
				fmt.Println(what, p)
			}
		}
	}
}
