package node

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
	"strandline.dev/internal/wire"
)

// TestR120_PublishesAskNothingOfTheController: records flow, and the active controller is asked for nothing.
func TestR120_PublishesAskNothingOfTheController(t *testing.T) {
	clusterBubble(t, 3, withHTTP, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.create(cl, "t", 1)
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("the producer id is asked for")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		before := c.asked()
		if before == 0 {
			t.Fatal("the creation of a topic is not counted")
		}
		pub := c.publish(cl, "t", 0)
		time.Sleep(5 * time.Second)
		acked := len(pub.finish(t))
		if after := c.asked(); after != before {
			t.Errorf("%v requests of the controller during %d publishes", after-before, acked)
		}
	})
}

// asked is how often the active controller was asked for something.
func (c *cluster) asked() (sum float64) {
	for _, id := range c.ids() {
		if f := c.scrape(id, "/metrics")["strandline_controller_requests_total"]; f != nil {
			for _, s := range f.series {
				sum += s.value
			}
		}
	}
	return sum
}

// TestR159_AvailabilityCountsWhatIsTheClusters: a publish that the client got wrong counts as served, one that lacks replicas does not; fetches go on
// and are served. Nobody else's publishes are counted: those of the broker's own topics.
func TestR159_AvailabilityCountsWhatIsTheClusters(t *testing.T) {
	clusterBubble(t, 3, withHTTP, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.create(cl, "t", 1)
		counts := func() (total, bad float64) {
			total = c.sum("/metrics", "strandline_publish_requests_total")
			return total, total - c.sum("/metrics", "strandline_publish_requests_good_total")
		}
		if total, bad := counts(); total != 0 || bad != 0 {
			t.Errorf("%v publishes before the first, %v of them bad", total, bad)
		}
		for i, want := range []kafka.ErrorCode{kafka.None, kafka.UnknownTopicOrPartition} {
			if got := c.publishOnce(cl, "t", int32(i)); got != want {
				t.Errorf("publish %d: %v, want %v", i, got, want)
			}
		}
		if total, bad := counts(); total != 2 || bad != 0 {
			t.Errorf("%v publishes, %v of them bad; want 2, 0", total, bad)
		}
		for _, id := range c.ids() {
			if id != c.state("t", 0).Leader && id != c.active() {
				c.kill(id)
				break
			}
		}
		c.untilInBubble("the ISR has shrunk", func() bool { return len(c.state("t", 0).ISR) < 3 })
		c.read("t", 0, 1)
		if bad := c.sum("/metrics", "strandline_fetch_requests_total") - c.sum("/metrics", "strandline_fetch_requests_good_total"); bad != 0 {
			t.Errorf("%v bad fetches", bad)
		}
		leader := c.state("t", 0).Leader
		for _, m := range c.members {
			if m.node != nil && m.id != leader { // a leader that is alone cannot have its ISR changed
				m.fs.SetLatency(slowRecords(8 * time.Second))
			}
		}
		if got := c.publishOnce(cl, "t", 0); got != kafka.RequestTimedOut {
			t.Errorf("a publish that nobody stores: %v", got)
		}
		if total, bad := counts(); total != 3 || bad != 1 {
			t.Errorf("%v publishes, %v of them bad; want 3, 1", total, bad)
		}
		if log := c.member(leader).log.String(); !strings.Contains(log, "msg=slow") || !strings.Contains(log, "api=Produce") || !strings.Contains(log, "topic=t topic_partition=0") {
			t.Error("no line says that a publish took long")
		}
		if got := c.metric(leader, "/metrics", `strandline_slow_requests_total{api="Produce"}`); got != 1 {
			t.Errorf("%v slow publishes", got)
		}
		for _, m := range c.members {
			m.fs.SetLatency(nil)
		}
	})
}

// slowRecords makes syncs take that long, but for those of the metadata.
func slowRecords(d time.Duration) func(systest.Op) time.Duration {
	return func(op systest.Op) time.Duration {
		if (op.Kind == systest.OpSync || op.Kind == systest.OpSyncAll) && !strings.Contains(op.Name, "metadata") {
			return d
		}
		return 0
	}
}

// TestR34_FailedPublishesByClient: /metrics/detail has them by topic, client and reason, in a bounded number of lines.
func TestR34_FailedPublishesByClient(t *testing.T) {
	clusterBubble(t, 1, withHTTP, func(t *testing.T, c *cluster) {
		first := c.client(kgo.ClientID("shop"))
		defer first.Close()
		c.createDated(first, "t", 1)
		for range 3 {
			c.publishOnce(first, "t", 7)
		}
		for i := range 3 {
			cl := c.client(kgo.ClientID(fmt.Sprintf("till-%d", i)))
			c.publishOnce(cl, "t", 7)
			cl.Close()
		}
		for client, want := range map[string]float64{"shop": 3, "till-2": 1} {
			name := fmt.Sprintf(`strandline_client_produce_failures_total{client=%q,reason="UNKNOWN_TOPIC_OR_PARTITION",topic="t"}`, client)
			if got := c.metric(1, "/metrics/detail", name); got != want {
				t.Errorf("%s: %v, want %v", client, got, want)
			}
		}
		if got := c.metric(1, "/metrics", `strandline_produce_failures_total{reason="UNKNOWN_TOPIC_OR_PARTITION",topic="t"}`); got != 6 {
			t.Errorf("%v failures of the topic", got)
		}
	})
}

// TestR105_ReplicasTellWhereTheyStand: every replica tells its end, and the leader's may be ahead of the high watermark.
func TestR105_ReplicasTellWhereTheyStand(t *testing.T) {
	clusterBubble(t, 3, withHTTP, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.create(cl, "t", 1)
		c.publishOnce(cl, "t", 0)
		leader := c.state("t", 0).Leader
		for _, m := range c.members {
			if m.id != leader {
				m.fs.SetLatency(slowRecords(8 * time.Second))
			}
		}
		if got := c.publishOnce(cl, "t", 0); got != kafka.RequestTimedOut {
			t.Fatalf("it was stored: %v", got)
		}
		req := kmsg.NewPtrDescribeLogDirsRequest()
		req.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: "t", Partitions: []int32{0}}}
		resp, err := cl.Broker(int(leader)).RetriableRequest(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		var told []byte
		resp.(*kmsg.DescribeLogDirsResponse).Dirs[0].Topics[0].Partitions[0].UnknownTags.Each(func(tag uint32, v []byte) {
			if tag == wire.TagReplicaEnds {
				told = v
			}
		})
		want := []byte{7: 0, 15: 1, 23: 2} // start 0, high watermark 1, end 2
		if !bytes.Equal(told, want) {
			t.Errorf("told % x, want % x", told, want)
		}
		for _, m := range c.members {
			m.fs.SetLatency(nil)
		}
	})
}
