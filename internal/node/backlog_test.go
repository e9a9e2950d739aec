package node

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

// reported is what the coordinator of a group says of it, as soon as there is one that answers.
func (c *cluster) reported(groupID string) *group.Report {
	c.t.Helper()
	var r *group.Report
	c.untilInBubble("the coordinator of "+groupID+" reports", func() bool {
		for _, m := range c.members {
			if m.node == nil {
				continue
			}
			ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
			got, err := m.node.coordinator.Backlog(ctx, groupID)
			cancel()
			if err == nil && len(got.Partitions) > 0 {
				r = got
				return true
			}
		}
		return false
	})
	return r
}

// leaveBacklog makes the topic orders, which keeps its records for so long, with five records in each of three partitions, stamped by a wrong clock,
// and has the group billing commit two.
func (c *cluster) leaveBacklog(cl *kgo.Client, kept time.Duration) {
	c.t.Helper()
	c.create(cl, "orders", 3)
	admin := kadm.NewClient(cl)
	set := func(key, value string) kadm.AlterConfig {
		return kadm.AlterConfig{Op: kadm.SetConfig, Name: key, Value: &value}
	}
	if _, err := admin.AlterTopicConfigs(c.t.Context(), []kadm.AlterConfig{set("retention.ms", strconv.FormatInt(kept.Milliseconds(), 10)), set("strandline.minimum.retention.ms", "0")}, "orders"); err != nil {
		c.t.Fatal(err)
	}
	for p := range int32(3) {
		for range 5 {
			if err := cl.ProduceSync(c.t.Context(), &kgo.Record{Topic: "orders", Partition: p, Value: []byte("x"), Timestamp: time.Unix(5, 0)}).FirstErr(); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	var offsets kadm.Offsets
	for p := range int32(3) {
		offsets.AddOffset("orders", p, 2, -1)
	}
	c.untilInBubble("a commit", func() bool {
		return admin.CommitAllOffsets(c.t.Context(), "billing", offsets) == nil
	})
}

// TestCluster_R72_R176_R177_R183_Backlog: the backlog of a group whose last member is gone, across three nodes: lag and age are right, age
// grows, an absent leader makes it unknown and not 0, a new coordinator says the same, and time to loss falls to 0 when retention passes the
// group, which is told with the range that is lost.
func TestCluster_R72_R176_R177_R183_Backlog(t *testing.T) {
	clusterBubble(t, 3, nil, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		const kept = 10 * time.Minute
		c.leaveBacklog(cl, kept)
		check := func(what string, atLeast time.Duration) {
			t.Helper()
			r := c.reported("billing")
			for _, p := range r.Partitions {
				if p.State != group.NoMembers || p.Lag != 3 || p.Oldest < atLeast || p.Oldest > atLeast+time.Minute || !p.Expires || p.LossIn > kept-atLeast || p.LossIn < kept-atLeast-time.Minute {
					t.Errorf("%s: %+v", what, p)
				}
			}
		}
		began := time.Now()
		check("at once", 0)
		time.Sleep(2 * time.Minute)
		check("later", time.Since(began).Truncate(time.Minute))

		led := c.state("orders", 0).Leader
		c.kill(led)
		c.untilInBubble("others lead", func() bool {
			for p := range int32(3) {
				if l := c.state("orders", p).Leader; l == led || l == kafka.NoNode {
					return false
				}
			}
			return c.state("__consumer_offsets", 0).Leader != led
		})
		c.untilInBubble("all leaders answer", func() bool { return c.reported("billing").State == group.NoMembers })
		check("after other nodes took over", time.Since(began).Truncate(time.Minute))

		time.Sleep(kept)
		c.untilInBubble("retention has passed the group", func() bool {
			return !slices.ContainsFunc(c.reported("billing").Partitions, func(p group.PartitionReport) bool { return p.Start != 5 })
		})
		for _, p := range c.reported("billing").Partitions {
			if p.State != group.LosingData || p.LossIn != 0 || !p.Expires || p.Lost != (group.LostRange{From: 2, To: 5}) {
				t.Errorf("retention has passed: %+v", p)
			}
		}
		c.untilInBubble("the loss is told", func() bool {
			for _, m := range c.members {
				if m.node != nil && strings.Contains(m.log.String(), "a group has lost records") && strings.Contains(m.log.String(), "lost_from=2 lost_to=5") {
					return true
				}
			}
			return false
		})
	})
}

// TestC061_ACommitAboveTheEndIsKept: what a group has committed without a leader epoch lies above the end of its partition, as after a truncation. It is kept as
// it is, the fetch there is out of range and says so, and the coordinator tells which records were read and are gone.
func TestC061_ACommitAboveTheEndIsKept(t *testing.T) {
	clusterBubble(t, 3, nil, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.leaveBacklog(cl, time.Hour)
		admin := kadm.NewClient(cl)
		var offsets kadm.Offsets
		offsets.AddOffset("orders", 0, 50, -1)
		c.untilInBubble("a commit", func() bool { return admin.CommitAllOffsets(c.t.Context(), "billing", offsets) == nil })
		c.untilInBubble("the loss is told", func() bool {
			return slices.ContainsFunc(c.members, func(m *member) bool {
				return strings.Contains(m.log.String(), "a group has lost records") && strings.Contains(m.log.String(), "lost_from=5 lost_to=50")
			})
		})
		for _, p := range c.reported("billing").Partitions {
			if p.Partition == 0 && (p.State != group.LosingData || p.Committed != 50 || p.Lost != (group.LostRange{From: 5, To: 50})) {
				t.Errorf("%+v", p)
			}
		}
		var stored kadm.OffsetResponses
		c.untilInBubble("the offsets", func() (ok bool) {
			var err error
			stored, err = admin.FetchOffsets(c.t.Context(), "billing")
			return err == nil
		})
		if o, ok := stored.Lookup("orders", 0); !ok || o.Err != nil || o.At != 50 || o.LeaderEpoch != -1 {
			t.Errorf("stored is %+v", o)
		}
		reader := c.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"orders": {0: kgo.NewOffset().At(50)}}), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
		defer reader.Close()
		if err := reader.PollFetches(c.t.Context()).Err(); !errors.Is(err, kerr.OffsetOutOfRange) {
			t.Errorf("the fetch says %v", err)
		}
	})
}
