package node

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
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
}

// powerCut ends a node and takes from its disk what was not synced.
func (c *cluster) powerCut(id kafka.NodeID) {
	c.t.Helper()
	m := c.member(id)
	disk := m.fs.Clone(systest.LoseAll)
	c.kill(id)
	m.fs = disk
}
