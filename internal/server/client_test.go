package server

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// An unmodified client creates a topic, publishes with idempotence, reads everything back in order, and administers.
func TestClient_FranzGo(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	client := func(opts ...kgo.Opt) *kgo.Client {
		cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(b.addr), kgo.WithLogger(nil))...)
		must(t, err)
		t.Cleanup(cl.Close)
		return cl
	}
	cl := client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	adm := kadm.NewClient(cl)
	_, err := adm.CreateTopic(ctx, 2, 1, map[string]*string{"retention.ms": kadm.StringPtr("3600000")}, "orders")
	must(t, err)
	const records = 2000
	for i := range records {
		r := &kgo.Record{Topic: "orders", Partition: int32(i % 2), Value: []byte(fmt.Sprint(i)), Timestamp: b.wall.Now()}
		cl.Produce(ctx, r, func(r *kgo.Record, err error) {
			if err != nil {
				t.Errorf("record %s: %v", r.Value, err)
			}
		})
	}
	must(t, cl.Flush(ctx))
	next := [2]int{0, 1}
	reader := client(kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	for read := 0; read < records; {
		fetches := reader.PollFetches(ctx)
		must(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			if got := string(r.Value); got != fmt.Sprint(next[r.Partition]) {
				t.Fatalf("partition %d offset %d: %s, want %d", r.Partition, r.Offset, got, next[r.Partition])
			}
			next[r.Partition] += 2
			read++
		})
	}
	administer(ctx, t, adm)
}

func administer(ctx context.Context, t *testing.T, adm *kadm.Client) {
	t.Helper()
	_, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "segment.bytes", Value: kadm.StringPtr("1048576")}}, "orders")
	must(t, err)
	configs, err := adm.DescribeTopicConfigs(ctx, "orders")
	must(t, err)
	found := map[string]string{}
	for _, c := range configs[0].Configs {
		found[c.Key] = c.MaybeValue()
	}
	if found["segment.bytes"] != "1048576" || found["retention.ms"] != "3600000" {
		t.Errorf("configs: %v", found)
	}
	ends, err := adm.ListEndOffsets(ctx, "orders")
	must(t, err)
	if o, _ := ends.Lookup("orders", 1); o.Offset != 1000 || o.Err != nil {
		t.Errorf("end: %+v", o)
	}
	_, err = adm.UpdatePartitions(ctx, 3, "orders")
	must(t, err)
	brokers, err := adm.BrokerMetadata(ctx)
	must(t, err)
	if len(brokers.Brokers) != 1 || brokers.Controller != 1 {
		t.Errorf("brokers: %+v", brokers)
	}
	deleted, err := adm.DeleteTopics(ctx, "orders")
	must(t, err)
	must(t, deleted.Error())
	topics, err := adm.ListTopics(ctx)
	must(t, err)
	if len(topics) != 0 {
		t.Errorf("topics left: %v", topics.Names())
	}
}
