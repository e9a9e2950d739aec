package node

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// commitOffset commits an offset of a group for partition 0 of topic "t" at whoever coordinates it.
func (c *cluster) commitOffset(ctx context.Context, cl *kgo.Client, group string, offset int64) error {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = group, -1
	topic, partition := kmsg.NewOffsetCommitRequestTopic(), kmsg.NewOffsetCommitRequestTopicPartition()
	topic.Topic, topic.TopicID = "t", c.alive().Image().Topic("t").ID
	partition.Offset, partition.LeaderEpoch = offset, -1
	topic.Partitions = append(topic.Partitions, partition)
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}

// offsetAt asks one node, coordinator or not, for that offset.
func (c *cluster) offsetAt(ctx context.Context, cl *kgo.Client, node kafka.NodeID, group string) (int64, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	asked := kmsg.NewOffsetFetchRequestGroup()
	asked.Group = group
	topic := kmsg.NewOffsetFetchRequestGroupTopic()
	topic.Topic, topic.TopicID, topic.Partitions = "t", c.alive().Image().Topic("t").ID, []int32{0}
	asked.Topics = append(asked.Topics, topic)
	req.Groups = append(req.Groups, asked)
	got, err := cl.Broker(int(node)).Request(ctx, req)
	if err != nil {
		return 0, err
	}
	answer := got.(*kmsg.OffsetFetchResponse).Groups[0]
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		return 0, err
	}
	p := answer.Topics[0].Partitions[0]
	return p.Offset, kerr.ErrorForCode(p.ErrorCode)
}

// TestI8_P30_ACoordinatorThatWasReplacedShowsNothing: the node that coordinates a group is cut off, another one takes over and confirms a newer
// offset. From then on the old one shows no older offset, at any moment of the cut or after it, though it has not heard that it was replaced.
func TestI8_P30_ACoordinatorThatWasReplacedShowsNothing(t *testing.T) {
	for _, how := range []string{"isolated", "cut from the active controller"} {
		t.Run(how, func(t *testing.T) {
			clusterBubble(t, 3, nil, func(t *testing.T, c *cluster) {
				cl := c.client()
				defer cl.Close()
				c.create(cl, "t", 1)
				if err := c.commitOffset(t.Context(), cl, "g", 1); err != nil {
					t.Fatal(err)
				}
				c.untilInBubble("the progress is on three nodes", func() bool { return c.whole(coordinator.TopicName) })
				group := c.groupAwayFrom(c.active())
				if err := c.commitOffset(t.Context(), cl, group, 1); err != nil {
					t.Fatal(err)
				}
				old := coordinatorIn(c.alive().Image(), group)
				others := slices.DeleteFunc(c.ids(), func(id kafka.NodeID) bool { return id == old })
				c.cutOff(how, old, others)
				watcher := c.client() // with its own connection: what waits on another one would hold it up
				defer watcher.Close()
				stale := c.watchOffsetInBubble(watcher, old, group, 30*time.Second)
				c.untilInBubble("another node coordinates the group", func() bool {
					now := coordinatorIn(c.member(others[0]).node.Image(), group)
					return now != old && now != kafka.NoNode
				})
				c.untilInBubble("it confirms a newer offset", func() bool {
					late := c.client() // that knows no coordinator yet
					defer late.Close()
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					return c.commitOffset(ctx, late, group, 2) == nil
				})
				close(stale.confirmed)
				time.Sleep(10 * time.Second)
				c.net.HealAll()
				<-stale.ended
				if stale.shown > 0 {
					t.Errorf("the old coordinator showed the old offset %d times after the new one was confirmed", stale.shown)
				}
				if stale.asked < 5 {
					t.Errorf("it was asked %d times only", stale.asked)
				}
				c.untilInBubble("the new offset is shown", func() bool {
					at, err := c.offsetAt(t.Context(), cl, coordinatorIn(c.member(others[0]).node.Image(), group), group)
					return err == nil && at == 2
				})
			})
		})
	}
}

// shardIn is the partition that holds a group of one letter, which is its own hash.
func shardIn(img *metadata.Image, group string) kafka.PartitionState {
	parts := img.Topic(coordinator.TopicName).Partitions
	return parts[int(group[0])%len(parts)]
}

// coordinatorIn is the node that coordinates a group of one letter.
func coordinatorIn(img *metadata.Image, group string) kafka.NodeID { return shardIn(img, group).Leader }

// active is the active controller.
func (c *cluster) active() kafka.NodeID { return c.alive().quorum.Leadership().Leader }

// groupAwayFrom is a group that another node coordinates.
func (c *cluster) groupAwayFrom(node kafka.NodeID) string {
	c.t.Helper()
	for letter := 'a'; letter <= 'z'; letter++ {
		if coordinatorIn(c.alive().Image(), string(letter)) != node {
			return string(letter)
		}
	}
	c.t.Fatalf("node %v coordinates everything", node)
	return ""
}

// cutOff makes a node lose the leadership of everything without hearing of it.
func (c *cluster) cutOff(how string, old kafka.NodeID, others []kafka.NodeID) {
	if how == "cut from the active controller" {
		c.net.CutBoth(c.member(old).host(), c.member(c.active()).host())
		return
	}
	for _, o := range others {
		c.net.CutBoth(c.member(o).host(), c.member(old).host())
	}
}

// staleness counts answers of a node that was replaced.
type staleness struct {
	confirmed, ended chan struct{}
	asked, shown     int
}

// watchOffsetInBubble asks a node for the offset, ten times a second and for as long as it is told. Once a newer one is confirmed the first is stale.
func (c *cluster) watchOffsetInBubble(cl *kgo.Client, node kafka.NodeID, group string, length time.Duration) *staleness {
	s := &staleness{confirmed: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			after := false
			select {
			case <-s.confirmed:
				after = true
			default:
			}
			ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Second)
			at, err := c.offsetAt(ctx, cl, node, group)
			cancel()
			if s.asked++; err == nil && after && at != 2 {
				s.shown++
			}
		}
	}()
	return s
}
