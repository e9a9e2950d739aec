package server

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// TestR109_ADamagedPartitionIsNamedWhereSomebodyReadsIt: DescribeTopicPartitions says what is wrong with it. Metadata keeps the one error
// that clients pass a partition over for, and lists the replica as offline.
func TestR109_ADamagedPartitionIsNamedWhereSomebodyReadsIt(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("t", 2)
	topic := b.quorum.Image().Topic("t")
	b.spy.damaged.Store(&kafka.TopicPartition{Topic: topic.ID, Partition: 1})

	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	rt := kmsg.NewDescribeTopicPartitionsRequestTopic()
	rt.Topic = "t"
	req.Topics, req.ResponsePartitionLimit = append(req.Topics, rt), 10
	ps := ask[*kmsg.DescribeTopicPartitionsResponse](c, req).Topics[0].Partitions
	if ps[0].ErrorCode != 0 || len(ps[0].OfflineReplicas) != 0 || ps[0].LeaderID != 1 {
		t.Fatalf("the whole partition: %+v", ps[0])
	}
	if kafka.ErrorCode(ps[1].ErrorCode) != kafka.KafkaStorageError || !slices.Equal(ps[1].OfflineReplicas, []int32{1}) || ps[1].LeaderID != -1 {
		t.Fatalf("the damaged one: %+v", ps[1])
	}

	leaderless := *topic
	leaderless.Partitions = slices.Clone(topic.Partitions)
	leaderless.Partitions[1].Leader = kafka.NoNode
	out := b.server.metadataTopic(b.quorum.Image(), &leaderless, kmsg.NewPtrMetadataRequest(), &Call{}).Partitions[1]
	if kafka.ErrorCode(out.ErrorCode) != kafka.LeaderNotAvailable || !slices.Equal(out.OfflineReplicas, []int32{1}) || out.Leader != -1 {
		t.Fatalf("metadata of the damaged one: %+v", out)
	}
}
