package node

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// threeBrokers makes nodes 4, 5 and 6 brokers only, so that killing some of them leaves the controllers alone.
func threeBrokers(n *config.Node) {
	if n.Node.ID > 3 {
		n.Roles = []string{config.RoleBroker}
	}
}

// createOn creates a topic of one partition on the given nodes, the first of which leads.
func (c *cluster) createOn(cl *kgo.Client, topic string, nodes ...int32) {
	c.t.Helper()
	ct := kmsg.NewCreateTopicsRequestTopic()
	ct.Topic, ct.NumPartitions, ct.ReplicationFactor = topic, -1, -1
	ct.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: nodes}}
	resp, err := c.askCreate(cl, ct)
	if err != nil {
		c.t.Fatalf("create %s: %v %s", topic, err, resp)
	}
	c.untilInBubble("every node knows the topic", func() bool {
		return !slices.ContainsFunc(c.members, func(m *member) bool { return m.node.Image().Topic(topic) == nil })
	})
}

// askCreate asks for a topic and returns the error of the answer and its text.
func (c *cluster) askCreate(cl *kgo.Client, topic kmsg.CreateTopicsRequestTopic) (string, error) {
	c.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = 10_000, append(req.Topics, topic)
	resp, err := req.RequestWith(c.t.Context(), cl)
	if err != nil {
		c.t.Fatal(err)
	}
	if text := resp.Topics[0].ErrorMessage; text != nil {
		return *text, kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	return "", kerr.ErrorForCode(resp.Topics[0].ErrorCode)
}

// put publishes one record to partition 0 and returns its offset.
func (c *cluster) put(cl *kgo.Client, topic, value string) (int64, error) {
	r, err := cl.ProduceSync(c.t.Context(), &kgo.Record{Topic: topic, Value: []byte(value)}).First()
	if err != nil {
		return -1, err
	}
	return r.Offset, nil
}

// TestR19_R99_R100_R101_R104_AcknowledgementFollowsTheISR: the followers of a leader are lost one after the other.
func TestR19_R99_R100_R101_R104_AcknowledgementFollowsTheISR(t *testing.T) {
	clusterBubble(t, 6, threeBrokers, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		once := c.client(kgo.RecordRetries(0), kgo.DisableIdempotentWrite())
		defer once.Close()
		leaderOnly := c.client(kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
		defer leaderOnly.Close()
		c.createOn(cl, "t", 4, 5, 6)
		c.accepted(cl, "a")
		if isr := c.state("t", 0).ISR; len(isr) != 3 {
			t.Fatalf("in sync: %v", isr)
		}
		began := time.Now()
		c.kill(5)
		c.accepted(cl, "b") // waits for the lost follower until it is no member any more (R99, R101)
		if isr := c.member(4).node.Image().Topic("t").Partitions[0].ISR; slices.Contains(isr, 5) || len(isr) != 2 {
			t.Errorf("acknowledged after %v while a member of %v had not stored it", time.Since(began), isr)
		}
		c.kill(6)
		c.untilInBubble("the leader is alone", func() bool { return len(c.state("t", 0).ISR) == 1 })
		if _, err := c.put(once, "t", "refused"); !errors.Is(err, kerr.NotEnoughReplicas) {
			t.Errorf("a publish below the minimum: %v", err)
		}
		if at, err := c.put(leaderOnly, "t", "c"); err != nil || at != 2 {
			t.Fatalf("acks=1: offset %d, %v", at, err)
		}
		same(t, []string{"a", "b"}, c.read("t", 0, 2)) // what is committed is read, what the leader alone has is not (R100, R104)
		c.start(6)
		c.accepted(cl, "d")
		same(t, []string{"a", "b", "c", "d"}, c.read("t", 0, 4))
		c.start(5)
		c.untilInBubble("both are back in sync", func() bool { return c.whole("t") })
		c.kill(4)
		c.accepted(cl, "e")
		same(t, []string{"a", "b", "c", "d", "e"}, c.read("t", 0, 5))
	})
}

// accepted publishes a record to topic t, whatever it takes.
func (c *cluster) accepted(cl *kgo.Client, value string) {
	c.t.Helper()
	if _, err := c.put(cl, "t", value); err != nil {
		c.t.Fatalf("publish %s: %v", value, err)
	}
}

// TestR2_R5_EachZoneHoldsAReplica, and what cannot be placed leaves nothing behind.
func TestR2_R5_EachZoneHoldsAReplica(t *testing.T) {
	zone := func(id kafka.NodeID) string { return string("abc"[int(id)%3]) }
	change := func(n *config.Node) {
		threeBrokers(n)
		n.Node.Rack = zone(n.Node.ID)
	}
	clusterBubble(t, 6, change, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.create(cl, "t", 12)
		for p, s := range c.alive().Image().Topic("t").Partitions {
			zones := map[string]bool{}
			for _, id := range s.Replicas {
				zones[zone(id)] = true
			}
			if len(zones) != 3 {
				t.Errorf("partition %d is on %v, in zones %v", p, s.Replicas, zones)
			}
		}
		c.kill(6)
		c.untilInBubble("the killed node is fenced", func() bool { return c.alive().Image().Broker(6).Fenced })
		ct := kmsg.NewCreateTopicsRequestTopic()
		ct.Topic, ct.NumPartitions, ct.ReplicationFactor = "wide", 2, 6
		text, err := c.askCreate(cl, ct)
		if !errors.Is(err, kerr.InvalidReplicationFactor) || !strings.Contains(text, "6") || !strings.Contains(text, "5") {
			t.Errorf("%v %q", err, text)
		}
		if c.alive().Image().Topic("wide") != nil {
			t.Error("half a topic was made")
		}
	})
}

// TestR109_APartitionWithoutALeaderSaysSo, and it heals when its node returns.
func TestR109_APartitionWithoutALeaderSaysSo(t *testing.T) {
	clusterBubble(t, 4, threeBrokers, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.createOn(cl, "t", 4)
		c.accepted(cl, "a")
		c.kill(4)
		c.untilInBubble("nobody leads", func() bool { return c.state("t", 0).Leader == kafka.NoNode })
		req := kmsg.NewPtrMetadataRequest()
		name := "t"
		req.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
		resp, err := req.RequestWith(t.Context(), cl)
		if err != nil || resp.Topics[0].Partitions[0].ErrorCode != kerr.LeaderNotAvailable.Code || !kerr.LeaderNotAvailable.Retriable {
			t.Fatalf("%+v %v", resp, err)
		}
		c.start(4)
		c.accepted(cl, "b")
		same(t, []string{"a", "b"}, c.read("t", 0, 2))
	})
}

// TestR112_AMoveNeverHasFewerCopies: three new replicas take over from three old ones while records are published.
func TestR112_AMoveNeverHasFewerCopies(t *testing.T) {
	clusterBubble(t, 6, threeBrokers, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.createOn(cl, "t", 1, 2, 3)
		pub := c.publish(cl, "t", 0)
		time.Sleep(time.Second)
		req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
		topic := kmsg.NewAlterPartitionAssignmentsRequestTopic()
		topic.Topic = "t"
		topic.Partitions = []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Partition: 0, Replicas: []int32{4, 5, 6}}}
		req.TimeoutMillis, req.Topics = 10_000, append(req.Topics, topic)
		resp, err := req.RequestWith(t.Context(), cl)
		if err != nil || resp.ErrorCode != 0 || resp.Topics[0].Partitions[0].ErrorCode != 0 {
			t.Fatalf("%+v %v", resp, err)
		}
		least := 3
		c.untilInBubble("the new replicas have it", func() bool {
			s := c.state("t", 0)
			least = min(least, len(s.ISR))
			return len(s.Replicas) == 3 && !slices.ContainsFunc(s.Replicas, func(id kafka.NodeID) bool { return id < 4 })
		})
		acked := pub.finish(t)
		same(t, acked, c.read("t", 0, len(acked)))
		if s := c.state("t", 0); least < 3 || s.Leader < 4 || len(s.ISR) != 3 {
			t.Errorf("%d in sync at the least; now %+v", least, s)
		}
		if limit := 500 * time.Millisecond; pub.gap > limit {
			t.Errorf("no acknowledgement for %v", pub.gap)
		}
	})
}

// TestR114_ADrainedBrokerLeavesWhole: its copies are made elsewhere before it gives up its own, and publishes go on.
func TestR114_ADrainedBrokerLeavesWhole(t *testing.T) {
	clusterBubble(t, 5, threeBrokers, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.createOn(cl, "t", 4, 2, 3)
		pub := c.publish(cl, "t", 0)
		time.Sleep(time.Second)
		_, _, err := c.alive().link.Submit(t.Context(), metadata.DrainBroker{Principal: kafka.Principal{Type: "User", Name: "operator"}, Node: 4})
		if err != nil {
			t.Fatal(err)
		}
		least := 3
		c.untilInBubble("nothing is left on the drained node", func() bool {
			s := c.state("t", 0)
			least = min(least, len(s.ISR))
			return !slices.Contains(s.Replicas, 4)
		})
		c.stop(4)
		acked := pub.finish(t)
		same(t, acked, c.read("t", 0, len(acked)))
		if s := c.state("t", 0); least < 3 || len(s.ISR) != 3 || s.Leader == 4 {
			t.Errorf("%d in sync at the least; now %+v", least, s)
		}
	})
}
