package server

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// TestR62_NewPartitionsAreReadFromTheirStart: a consumer that starts at the end where nothing is committed loses no record that was put into a
// new partition before it noticed it; one that had committed and was away, and one that has yet to commit for the first time.
func TestR62_NewPartitionsAreReadFromTheirStart(t *testing.T) {
	b := newTestBroker(t, testOptions{broker: map[string]string{"group.initial.rebalance.delay.ms": "0"}})
	topic := "orders"
	c := b.dial()
	c.create(topic, 1)
	put := func(partition int32, value string) { // by a client that knows the partitions of this moment
		t.Helper()
		producer, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		must(t, err)
		defer producer.Close()
		must(t, producer.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value), Timestamp: b.wall.Now()}).FirstErr())
	}
	join := func(groupID string) *kgo.Client {
		c, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.ConsumerGroup(groupID), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()),
			kgo.MetadataMinAge(50*time.Millisecond), kgo.MetadataMaxAge(500*time.Millisecond), kgo.FetchMaxWait(50*time.Millisecond), kgo.DisableAutoCommit())
		must(t, err)
		return c
	}
	read := func(c *kgo.Client, want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for ctx.Err() == nil {
			for _, r := range c.PollFetches(ctx).Records() {
				if string(r.Value) == want {
					return
				}
			}
		}
		t.Fatalf("%q was skipped", want)
	}
	joined := func(groupID string) {
		eventually(t, groupID+" is stable", func() bool { return b.groupState(groupID) == "Stable" })
	}
	away, newcomer := join("away"), join("newcomer")
	defer newcomer.Close()
	joined("away")
	joined("newcomer")
	eventually(t, "the reader that goes away has read", func() bool {
		put(0, "old")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		return len(away.PollFetches(ctx).Records()) > 0
	})
	must(t, away.CommitUncommittedOffsets(t.Context()))
	away.Close()
	c.grow(topic, 3)
	put(2, "early")
	read(newcomer, "early")
	back := join("away")
	defer back.Close()
	read(back, "early")
}

// TestR62_FetchAheadOfThisNode: an OffsetFetch for a partition that this node has not heard of waits for it; one that never comes is answered
// as "nothing stored".
func TestR62_FetchAheadOfThisNode(t *testing.T) {
	b, c := newGroupBroker(t)
	id := c.create("ahead", 1)
	if code := ask[*kmsg.OffsetCommitResponse](c, newCommit("ahead", id, 7)).Topics[0].Partitions[0].ErrorCode; code != 0 {
		t.Fatal(kafka.ErrorCode(code))
	}
	fetch := newOffsetFetch("ahead", id)
	fetch.Groups[0].Topics[0].Partitions = []int32{0, 1}
	answer := make(chan kmsg.Response, 1)
	go func() { answer <- ask[*kmsg.OffsetFetchResponse](b.dial(), fetch) }()
	c.grow("ahead", 2)
	g := (<-answer).(*kmsg.OffsetFetchResponse).Groups[0]
	if p := g.Topics[0].Partitions[1]; g.ErrorCode != 0 || p.Offset != 0 || p.ErrorCode != 0 {
		t.Errorf("the new partition is answered with %+v, error %d", p, g.ErrorCode)
	}
	fetch.Groups[0].Topics[0].Partitions = []int32{9}
	g = ask[*kmsg.OffsetFetchResponse](c, fetch).Groups[0]
	if p := g.Topics[0].Partitions[0]; g.ErrorCode != 0 || p.Offset != int64(kafka.NoOffset) || p.ErrorCode != 0 {
		t.Errorf("a partition that does not exist is answered with %+v, error %d", p, g.ErrorCode)
	}
}

// grow raises the number of partitions.
func (c *testClient) grow(topic string, count int32) {
	c.t.Helper()
	r := kmsg.NewPtrCreatePartitionsRequest()
	r.Version, r.TimeoutMillis = 3, 10_000
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = topic, count
	r.Topics = append(r.Topics, t)
	if code := ask[*kmsg.CreatePartitionsResponse](c, r).Topics[0].ErrorCode; code != 0 {
		c.t.Fatal(kafka.ErrorCode(code))
	}
}

func (b *testBroker) groupState(id string) string {
	c, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	must(b.t, err)
	defer c.Close()
	groups, err := kadm.NewClient(c).DescribeGroups(b.t.Context(), id)
	if err != nil {
		return ""
	}
	return groups[id].State
}
