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
	"github.com/twmb/franz-go/pkg/kmsg"

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
		c.untilInBubble("the coordinator tells it", func() bool {
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
// it is, the fetch there is out of range and says so, and the coordinator tells it. Nothing says that there ever were so many records: none is counted as
// lost.
func TestC061_ACommitAboveTheEndIsKept(t *testing.T) {
	clusterBubble(t, 3, withHTTP, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.leaveBacklog(cl, time.Hour)
		admin := kadm.NewClient(cl)
		var offsets kadm.Offsets
		offsets.AddOffset("orders", 0, 50, -1)
		c.untilInBubble("a commit", func() bool { return admin.CommitAllOffsets(c.t.Context(), "billing", offsets) == nil })
		c.untilInBubble("the loss is told", func() bool {
			return slices.ContainsFunc(c.members, func(m *member) bool {
				return strings.Contains(m.log.String(), "a group has committed more than there is") && strings.Contains(m.log.String(), "committed=50 end=5")
			})
		})
		if lost := c.sum("/metrics", "strandline_group_records_lost_total"); lost != 0 {
			t.Errorf("%v records are counted as lost", lost)
		}
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

// ofGroup is what the running nodes expose of a group under a name, by the labels behind that of the group.
func (c *cluster) ofGroup(name, groupID string) map[string]float64 {
	c.t.Helper()
	out := map[string]float64{}
	for _, m := range c.members {
		if m.node == nil {
			continue
		}
		f := c.scrape(m.id, "/metrics")[name]
		if f == nil {
			continue
		}
		for _, s := range f.series {
			if rest, ok := strings.CutPrefix(s.id, name+`{group="`+groupID+`"`); ok {
				out[strings.Trim(rest, ",}")] += s.value
			}
		}
	}
	return out
}

// stateOfGroup is the state of a group by the metrics, of which one is 1 and all others are there.
func (c *cluster) stateOfGroup(groupID string) string {
	c.t.Helper()
	lines := c.ofGroup("strandline_group_state", groupID)
	state := ""
	for label, value := range lines {
		if value == 1 && state == "" {
			state = strings.TrimSuffix(strings.TrimPrefix(label, `state="`), `"`)
		} else if value != 0 {
			c.t.Fatalf("states of %s: %v", groupID, lines)
		}
	}
	if len(lines) != len(group.BacklogStates())-1 || state == "" {
		c.t.Fatalf("states of %s: %v", groupID, lines)
	}
	return state
}

// TestCluster_R72_R176_R177_R183_StateAndTrend: the metrics follow a group whose member reads more slowly than is published, until the member
// leaves and retention passes the group.
func TestCluster_R72_R176_R177_R183_StateAndTrend(t *testing.T) {
	clusterBubble(t, 3, withHTTP, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		const kept, trend = 10 * time.Minute, "strandline_group_lag_trend_records_per_second"
		c.leaveBacklog(cl, kept)
		member := c.client(kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit())
		defer member.Close()
		member.PollFetches(timed(t, 20*time.Second))
		commit := func(at map[int32]kgo.EpochOffset) {
			member.CommitOffsetsSync(t.Context(), map[string]map[int32]kgo.EpochOffset{"orders": at}, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, _ *kmsg.OffsetCommitResponse, err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
		commit(map[int32]kgo.EpochOffset{1: {Epoch: -1, Offset: 5}, 2: {Epoch: -1, Offset: 5}})
		const rounds, published, read = 24, 10, 4 // in 5 s each: the lag grows by 1.2 records a second
		for i := range int64(rounds) {
			for range published {
				if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Partition: 0, Value: []byte("x")}).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			commit(map[int32]kgo.EpochOffset{0: {Epoch: -1, Offset: 2 + read*(i+1)}})
			time.Sleep(5 * time.Second)
		}
		if state := c.stateOfGroup("billing"); state != "falling behind" {
			t.Errorf("%s, with a member that reads %d of %d", state, read, published)
		}
		if v, ok := c.ofGroup(trend, "billing")[""]; !ok || v < 0.9 || v > 1.5 {
			t.Errorf("the lag grows by %v a second, %v; want 1.2", v, ok)
		}
		perMinute, ok := c.reported("billing").Trend()
		if !ok || perMinute < 54 || perMinute > 90 {
			t.Errorf("the lag grows by %d a minute, %v; want 72", perMinute, ok)
		}

		member.Close()
		time.Sleep(2 * time.Minute)
		if state := c.stateOfGroup("billing"); state != "no members" {
			t.Errorf("%s, without members", state)
		}
		lag := float64(3 + rounds*(published-read))
		if v, ok := c.ofGroup(trend, "billing")[""]; !ok || v != 0 || c.ofGroup("strandline_group_lag_records", "billing")[""] != lag {
			t.Errorf("the lag of %v grows by %v a second, %v, and nothing happens", c.ofGroup("strandline_group_lag_records", "billing"), v, ok)
		}

		time.Sleep(kept)
		c.untilInBubble("the loss is counted", func() bool { return c.sum("/metrics", "strandline_group_records_lost_total") == lag })
		if state := c.stateOfGroup("billing"); state != "losing data" {
			t.Errorf("%s, when retention has passed the group", state)
		}
	})
}
