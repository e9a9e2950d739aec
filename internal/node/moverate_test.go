package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// TestR113_AMoveKeepsToTheRateInForce: 3.6 MB are moved to another node at 1 MB/s, which takes as long as it must, and at a rate that is set while the
// move is under way the rest is there at once.
func TestR113_AMoveKeepsToTheRateInForce(t *testing.T) {
	clusterBubble(t, 3, nil, func(t *testing.T, c *cluster) {
		cl := c.client(kgo.ProducerBatchCompression(kgo.NoCompression()))
		defer cl.Close()
		create := kmsg.NewPtrCreateTopicsRequest()
		create.TimeoutMillis = 10_000
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "t", -1, -1
		topic.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{1}}}
		create.Topics = append(create.Topics, topic)
		created, err := create.RequestWith(t.Context(), cl)
		if err == nil {
			err = kerr.ErrorForCode(created.Topics[0].ErrorCode)
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: make([]byte, 60_000)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		on := func(node kafka.NodeID) func() bool {
			return func() bool { return slices.Equal(c.state("t", 0).Replicas, []kafka.NodeID{node}) }
		}
		c.setCopyRate(cl, 1_000_000)
		begun := time.Now()
		c.moveTo(cl, 2)
		c.untilInBubble("the move is done", on(2))
		if took := time.Since(begun); took < 2*time.Second || took > 8*time.Second {
			t.Errorf("3.6 MB took %v at 1 MB/s", took)
		}
		c.setCopyRate(cl, 1000)
		c.moveTo(cl, 3)
		time.Sleep(10 * time.Second) // at this rate an hour
		if on(3)() {
			t.Error("3.6 MB took less than 10s at 1 KB/s")
		}
		c.setCopyRate(cl, 1<<50)
		begun = time.Now()
		c.untilInBubble("the move is done", on(3))
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("with no bound the rest took %v", took)
		}
	})
}

// setCopyRate sets what brokers give to replicas that are not in sync.
func (c *cluster) setCopyRate(cl *kgo.Client, rate int64) {
	c.t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeBroker, ""
	row := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	row.Name, row.Value = "leader.replication.throttled.rate", kmsg.StringPtr(fmt.Sprint(rate))
	r.Configs = append(r.Configs, row)
	req.Resources = append(req.Resources, r)
	answer, err := req.RequestWith(c.t.Context(), cl)
	if err == nil {
		err = kerr.ErrorForCode(answer.Resources[0].ErrorCode)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// moveTo begins to move partition 0 of t to one node.
func (c *cluster) moveTo(cl *kgo.Client, node int32) {
	c.t.Helper()
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	topic := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	topic.Topic = "t"
	topic.Partitions = []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Partition: 0, Replicas: []int32{node}}}
	req.TimeoutMillis, req.Topics = 10_000, append(req.Topics, topic)
	answer, err := req.RequestWith(c.t.Context(), cl)
	if err == nil {
		err = kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}
