package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/sys/systest"
)

// The drills in which acknowledged records are lost: by what the guarantees leave out, a power cut under the only copy or an operator's decision.

// drillBubbleOutage: the power fails under the only copy of records that were not synced, for more than an hour.
func drillBubbleOutage(c *cluster, r *recorder) {
	cl := c.client()
	policy, value := kmsg.NewCreateTopicsRequestTopicConfig(), config.FlushReplicated.String()
	policy.Name, policy.Value = "strandline.flush", &value
	ct := kmsg.NewCreateTopicsRequestTopic()
	ct.Topic, ct.NumPartitions, ct.ReplicationFactor, ct.Configs = "t", 1, 1, append(ct.Configs, policy)
	c.creation(cl, ct)
	time.Sleep(time.Minute)
	r.watchInBubble(time.Minute, nil)
	acked, err := c.put(cl, "t", "only in memory")
	cl.Close()
	if err != nil {
		c.t.Fatal(err)
	}
	c.powerCut(1)
	r.watchInBubble(70*time.Minute, nil)
	c.start(1)
	r.watchInBubble(2*time.Minute, nil)
	cl = c.client()
	defer cl.Close()
	if end := c.listed(cl, "t", -1).Offset; end > acked {
		c.t.Errorf("the log ends at %d: the record at %d was not lost", end, acked)
	}
	if got := c.metric(1, "/metrics", "strandline_possible_loss_total"); got != 1 {
		c.t.Errorf("%v partitions with a possible loss are counted, want 1", got)
	}
}

// powerCut ends a node and takes from its disk what was not synced.
func (c *cluster) powerCut(id kafka.NodeID) {
	c.t.Helper()
	m := c.member(id)
	disk := m.fs.Clone(systest.LoseAll)
	c.kill(id)
	m.fs = disk
}

// canaryEvery is how often nodes measure publishes in drillBubbleRecovered.
const canaryEvery = time.Second

// withCanaryApart has controllers that are no brokers, and each node measure publishes.
func withCanaryApart(n *config.Node) {
	withHTTP(n)
	if n.Node.ID <= 3 {
		n.Roles = []string{config.RoleController}
	}
	n.Canary.Interval = canaryEvery
}

// drillBubbleRecovered: of three brokers one is down while the others take records, and comes back when those are cut off. An operator has it lead,
// without the records. A record of a controller's canary, acknowledged when the others were cut off, is among them; and the others, back again, cut
// their logs below what was committed.
func drillBubbleRecovered(c *cluster, r *recorder) {
	cl := c.client()
	defer cl.Close()
	c.untilInBubble("the canary has its topic", func() bool { return c.alive().Image().Topic(metadata.CanaryTopic) != nil })
	time.Sleep(10 * time.Second)
	r.watchInBubble(4*time.Minute, nil)
	const outdated = kafka.NodeID(6)
	others := []kafka.NodeID{4, 5}
	observer := kafka.NodeID(1)
	if observer == c.active() {
		observer = 2
	}
	lost := c.holdAcknowledgedInBubble(observer, outdated, others)
	c.start(outdated)
	c.untilInBubble("nobody can be elected", func() bool {
		return !slices.ContainsFunc(c.alive().Image().Topic(metadata.CanaryTopic).Partitions, func(s kafka.PartitionState) bool { return s.Leader != kafka.NoNode })
	})
	time.Sleep(2 * time.Second) // the canary does not wait any longer for the broker that it has asked
	c.recoverAll(outdated, metadata.CanaryTopic)
	c.net.HealAll()
	c.untilInBubble("another record is in its place, and the observer has seen it", func() bool {
		return c.whole(metadata.CanaryTopic) && missed(c.scrape(observer, "/metrics"), "lost") > 0
	})
	if now := c.at(lost.Partition, lost.Offset); now == string(lost.Value) {
		c.t.Errorf("%q is at offset %d again", now, lost.Offset)
	}
	for _, id := range others {
		if c.metric(id, "/metrics", "strandline_log_truncated_below_hw_total") == 0 {
			c.t.Errorf("node %v has cut no log below the watermark", id)
		}
	}
	r.watchInBubble(time.Minute, nil)
}

// holdAcknowledgedInBubble stops a broker, and cuts the others off from everybody else at the moment in which a canary learns that its record is stored,
// before it can read it.
func (c *cluster) holdAcknowledgedInBubble(canary, stopped kafka.NodeID, others []kafka.NodeID) *kgo.Record {
	c.t.Helper()
	reader := c.client(kgo.ConsumeTopics(metadata.CanaryTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()))
	defer reader.Close()
	reader.PollFetches(timed(c.t, 20*time.Second)) // it reads from here on
	time.Sleep(canaryEvery / 2)                    // canaries publish at about the same time: not now
	c.kill(stopped)
	for _, id := range others {
		c.net.Cut(c.member(id).host(), c.member(canary).host())
	}
	began, prefix := time.Now(), fmt.Sprintf("node %v,", canary)
	var held *kgo.Record
	for held == nil && time.Since(began) < 20*time.Second {
		reader.PollFetches(timed(c.t, 20*time.Second)).EachRecord(func(r *kgo.Record) {
			if held == nil && r.Timestamp.After(began) && strings.HasPrefix(string(r.Value), prefix) {
				held = r
			}
		})
	}
	if held == nil {
		c.t.Fatalf("no record of the canary of node %v", canary)
	}
	for _, id := range others {
		for _, m := range c.members {
			if !slices.Contains(others, m.id) {
				c.net.CutBoth(c.member(id).host(), m.host())
			}
		}
	}
	for _, id := range others {
		c.net.Heal(c.member(id).host(), c.member(canary).host())
	}
	return held
}

// recoverAll is `partition elect TOPIC --recover`.
func (c *cluster) recoverAll(by kafka.NodeID, topic string) {
	c.t.Helper()
	cl := c.client(kgo.SeedBrokers(c.member(by).host() + ":9092"))
	defer cl.Close()
	rt := kmsg.NewElectLeadersRequestTopic()
	rt.Topic = topic
	for p := range c.alive().Image().Topic(topic).Partitions {
		rt.Partitions = append(rt.Partitions, int32(p))
	}
	req := kmsg.NewPtrElectLeadersRequest()
	req.TimeoutMillis, req.ElectionType, req.Topics = 10_000, 1, append(req.Topics, rt)
	req.UnknownTags.Set(10001, []byte{2}) // docs/formats/recovery.md
	resp, err := req.RequestWith(c.t.Context(), cl.SeedBrokers()[0])
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		c.t.Fatalf("recover %s: %v", topic, err)
	}
	for _, p := range resp.Topics[0].Partitions {
		if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
			c.t.Errorf("recover partition %d of %s: %v", p.Partition, topic, err)
		}
	}
}

// at is the value of the record at an offset of the canary's topic.
func (c *cluster) at(partition int32, offset int64) string {
	c.t.Helper()
	cl := c.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{metadata.CanaryTopic: {partition: kgo.NewOffset().At(offset)}}))
	defer cl.Close()
	records := cl.PollFetches(timed(c.t, 20*time.Second)).Records()
	if len(records) == 0 || records[0].Offset != offset {
		c.t.Fatalf("no record at offset %d", offset)
	}
	return string(records[0].Value)
}
