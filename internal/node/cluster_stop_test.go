package node

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/config"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys/systest"
)

// TestCluster_AStopWithoutAControllerIsShort: the last node of a cluster that is stopped finds nobody to say goodbye to, and does not look for long.
func TestCluster_AStopWithoutAControllerIsShort(t *testing.T) {
	clusterBubble(t, 3, nil, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.create(cl, "t", 3)
		c.kill(2)
		c.kill(3)
		time.Sleep(5 * time.Second)
		begun := time.Now()
		c.stop(1)
		if took := time.Since(begun); took > noControllerMax+time.Second {
			t.Errorf("the stop took %v", took)
		}
	})
}

// TestCluster_ARemovedNodeIsRefusedByName: its old data directory does not bring it back; an empty one does.
func TestCluster_ARemovedNodeIsRefusedByName(t *testing.T) {
	change := func(n *config.Node) {
		if n.Node.ID == 4 {
			n.Roles = []string{config.RoleBroker}
		}
	}
	clusterBubble(t, 4, change, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.stop(4)
		req := kmsg.NewPtrUnregisterBrokerRequest()
		req.BrokerID = 4
		resp, err := req.RequestWith(t.Context(), cl)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if err != nil {
			t.Fatal(err)
		}
		m := c.member(4)
		m.process = &process{Net: c.net.Host(m.host())}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		o := Options{Config: c.configOf(m), Machine: systest.Machine(m.fs, m.process, nil), Log: slog.New(slog.NewTextHandler(m.log, nil))}
		if _, err := Start(ctx, o); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "node 4 is not in the cluster any more") {
			t.Fatalf("with its old directory: %v", err)
		}
		m.fs = systest.NewFS(44)
		c.start(4)
		if b := c.alive().Image().Broker(4); b == nil || b.Fenced {
			t.Errorf("with an empty one: %+v", b)
		}
	})
}

// TestCluster_AStoppingNodeTellsWhoLeads: when others lead what it led and metadata leaves it out, a node that stops still answers for a moment.
func TestCluster_AStoppingNodeTellsWhoLeads(t *testing.T) {
	clusterBubble(t, 3, nil, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.create(cl, "t", 3)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			c.stop(3)
		}()
		c.untilInBubble("it is fenced", func() bool { return c.alive().Image().Broker(3).Fenced })
		late := c.client(kgo.SeedBrokers("n3:9092"))
		defer late.Close()
		resp, err := kmsg.NewPtrMetadataRequest().RequestWith(t.Context(), late)
		if err != nil || len(resp.Brokers) != 2 {
			t.Errorf("a new client of the node that stops: %v, %+v", err, resp)
		}
		<-stopped
	})
}

// TestCluster_APublishWaitsForTheNewsThatItsClientHas: a follower that led until some seconds ago may be about to lead again, and a client may know
// that before it does. So it answers that it does not lead, and who does, only after a moment.
func TestCluster_APublishWaitsForTheNewsThatItsClientHas(t *testing.T) {
	clusterBubble(t, 3, nil, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.create(cl, "t", 1)
		preferred := c.state("t", 0).Replicas[0]
		c.untilInBubble("the preferred replica leads", func() bool { return c.state("t", 0).Leader == preferred })
		c.kill(preferred)
		c.untilInBubble("another leads", func() bool { s := c.state("t", 0); return s.Leader >= 0 && s.Leader != preferred })
		led := c.state("t", 0).Leader
		c.start(preferred)
		c.untilInBubble("the preferred replica leads again", func() bool { return c.whole("t") && c.state("t", 0).Leader == preferred })
		time.Sleep(3 * time.Second)
		req := kmsg.NewPtrProduceRequest()
		req.Acks, req.TimeoutMillis = -1, 10_000
		topic, part := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
		topic.TopicID, part.Records = c.alive().Image().Topic("t").ID, oneRecord()
		topic.Partitions = append(topic.Partitions, part)
		req.Topics = append(req.Topics, topic)
		asked := time.Now()
		r, err := cl.Broker(int(led)).Request(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		answer := r.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		if answer.ErrorCode != kerr.NotLeaderForPartition.Code || answer.CurrentLeader.LeaderID != int32(preferred) {
			t.Errorf("answer %+v, want that node %v leads", answer, preferred)
		}
		if took := time.Since(asked); took < 100*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
	})
}

func oneRecord() []byte {
	b := record.NewBuilder(record.None)
	b.Add(0, nil, []byte("x"), nil)
	return b.Build()
}
