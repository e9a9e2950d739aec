package node

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestO16_TheMetricsTellLagWithoutMembers: an operator sees in /metrics and /metrics/detail what a group has not read of each topic, while it has a
// member for only one of them and while it has none, how old the oldest of it is, and that this grows.
func TestO16_TheMetricsTellLagWithoutMembers(t *testing.T) {
	clusterBubble(t, 3, withHTTP, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.create(cl, "t1", 1)
		c.create(cl, "t2", 1)
		publish := func(n int) {
			t.Helper()
			for range n {
				for _, topic := range []string{"t1", "t2"} {
					if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr(); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		stopFirst, stopSecond := c.readInBubble("t1"), c.readInBubble("t2")
		publish(10)
		c.wantLagInBubble(2, 0, 0)
		if of := c.groupSeries("o16"); of["oldest group"] != 0 || of["oldest t1"] != 0 || of["oldest t2"] != 0 {
			t.Errorf("nothing is unread, and it is old: %v", of)
		}
		stopFirst()
		publish(50)
		c.wantLagInBubble(1, 50, 0)
		stopSecond()
		publish(50)
		c.wantLagInBubble(0, 100, 50)

		time.Sleep(time.Minute)
		before, began := c.groupSeries("o16"), time.Now()
		time.Sleep(3 * time.Minute)
		c.wantLagInBubble(0, 100, 50)
		after, passed := c.groupSeries("o16"), time.Since(began).Seconds()
		for _, of := range []string{"oldest group", "oldest t1", "oldest t2"} {
			if grown := after[of] - before[of]; before[of] < 60 || grown < passed-20 || grown > passed+20 {
				t.Errorf("%s: %vs, and %.0fs later %vs", of, before[of], passed, after[of])
			}
		}
		if after["oldest t1"] < after["oldest t2"] || after["oldest group"] != after["oldest t1"] {
			t.Errorf("t1 waits the longest: %v", after)
		}
	})
}

// readInBubble runs a member of the group o16 that reads one topic and commits what it has read, until it is stopped. (franz-go's commits by time wait
// for a mutex, and a bubble's clock does not go on meanwhile.)
func (c *cluster) readInBubble(topic string) (stop func()) {
	member := c.client(kgo.ConsumerGroup("o16"), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithCancel(c.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if member.PollFetches(ctx); ctx.Err() == nil {
				if err := member.CommitUncommittedOffsets(ctx); err != nil && ctx.Err() == nil {
					c.t.Error(err)
				}
			}
		}
	}()
	return func() { cancel(); <-done; member.Close() }
}

// wantLagInBubble waits for these numbers in the metrics, with that many members in the group: what is unread of t1, of t2, and of both.
func (c *cluster) wantLagInBubble(members int, t1, t2 float64) {
	c.t.Helper()
	cl := c.client()
	defer cl.Close()
	var seen map[string]float64
	for range 8 {
		g, err := kadm.NewClient(cl).DescribeGroups(c.t.Context(), "o16")
		seen = c.groupSeries("o16")
		if err == nil && len(g["o16"].Members) == members && seen["lag t1"] == t1 && seen["lag t2"] == t2 && seen["lag group"] == t1+t2 &&
			seen["unknown group"] == 0 && len(seen) == 9 {
			return
		}
		time.Sleep(5 * time.Second)
	}
	c.t.Fatalf("the metrics say %v, want %d members, lag %v and %v", seen, members, t1, t2)
}

// groupSeries is what the nodes' pages say of a group, as "lag t1" or "oldest group". A number that two nodes expose, or none, is not there.
func (c *cluster) groupSeries(name string) map[string]float64 {
	c.t.Helper()
	found, times := map[string]float64{}, map[string]int{}
	for _, id := range c.ids() {
		for path, of := range map[string]map[string]string{
			"/metrics":        {fmt.Sprintf(`{group=%q}`, name): "group"},
			"/metrics/detail": {fmt.Sprintf(`{group=%q,partition="0",topic="t1"}`, name): "t1", fmt.Sprintf(`{group=%q,partition="0",topic="t2"}`, name): "t2"},
		} {
			page := c.scrape(id, path)
			for short, long := range map[string]string{
				"lag": "strandline_group_lag_records", "oldest": "strandline_group_oldest_unprocessed_seconds", "unknown": "strandline_group_unknown_partitions",
			} {
				if page[long] == nil {
					continue
				}
				for _, s := range page[long].series {
					if whose, ok := of[strings.TrimPrefix(s.id, long)]; ok {
						found[short+" "+whose], times[short+" "+whose] = s.value, times[short+" "+whose]+1
					}
				}
			}
		}
	}
	for what, n := range times {
		if n > 1 {
			delete(found, what)
		}
	}
	return found
}
