package node

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

// createCompacted makes a topic of one partition and small segments that keeps the newest record of each key.
func (c *cluster) createCompacted(cl *kgo.Client, topic string, more ...string) {
	c.t.Helper()
	configs := map[string]*string{}
	all := append([]string{"cleanup.policy", "compact", "segment.bytes", "1024"}, more...)
	for pair := range slices.Chunk(all, 2) {
		configs[pair[0]] = &pair[1]
	}
	if r, err := kadm.NewClient(cl).CreateTopic(c.t.Context(), 1, -1, configs, topic); err != nil {
		c.t.Fatalf("%v %s", err, r.ErrMessage)
	}
	c.untilInBubble("the topic has a leader", func() bool {
		t := c.alive().Image().Topic(topic)
		return t != nil && t.Partitions[0].Leader != kafka.NoNode
	})
}

// putKeyed publishes one record to partition 0, in a batch of its own; a nil value is a tombstone.
func (c *cluster) putKeyed(cl *kgo.Client, topic, key string, value []byte) {
	c.t.Helper()
	if err := cl.ProduceSync(c.t.Context(), &kgo.Record{Topic: topic, Key: []byte(key), Value: value}).FirstErr(); err != nil {
		c.t.Fatal(err)
	}
}

// fetchOnce sends one Fetch that does not wait, with room for that many bytes, and returns the offsets of the records from there on.
func (c *cluster) fetchOnce(cl *kgo.Client, topic string, from int64, room int32) (offsets []int64) {
	c.t.Helper()
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = from, room
	ft := kmsg.NewFetchRequestTopic()
	ft.Topic, ft.TopicID, ft.Partitions = topic, c.alive().Image().Topic(topic).ID, append(ft.Partitions, p)
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.SessionEpoch, req.MaxBytes, req.Topics = -1, -1, room, append(req.Topics, ft)
	resp, err := cl.Broker(int(c.state(topic, 0).Leader)).Request(c.t.Context(), req)
	if err != nil {
		c.t.Fatal(err)
	}
	got := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
	if got.ErrorCode != 0 {
		c.t.Fatalf("fetch at %d: %v", from, kafka.ErrorCode(got.ErrorCode))
	}
	for left := got.RecordBatches; len(left) > 0; {
		var b record.Batch
		if b, left, err = record.Split(left); err != nil {
			c.t.Fatal(err)
		}
		for r := range b.Records(1 << 20) {
			if at := int64(b.BaseOffset()) + int64(r.OffsetDelta); at >= from {
				offsets = append(offsets, at)
			}
		}
	}
	return offsets
}

// segments are the first offsets of a partition's segments on a node's disk.
func (c *cluster) segments(id kafka.NodeID, topic string) (bases []int64) {
	c.t.Helper()
	dir := path.Join("/data/topics", kafka.TopicPartition{Topic: c.alive().Image().Topic(topic).ID}.String())
	files, err := c.member(id).fs.ReadDir(dir)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name, ".log"); ok {
			base, err := strconv.ParseInt(name, 10, 64)
			if err != nil {
				c.t.Fatal(err)
			}
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	return bases
}

// TestO8_AFetchInAGapHasTheNextRecords: the first segment's last records are compacted away and the second one has more. A Fetch at any offset
// of the gap is answered at once with the next records there are, however little room it gives.
func TestO8_AFetchInAGapHasTheNextRecords(t *testing.T) {
	clusterBubble(t, 1, nil, func(t *testing.T, c *cluster) {
		cl := c.client(kgo.ProducerBatchCompression(kgo.NoCompression()))
		defer cl.Close()
		c.createCompacted(cl, "state")
		value := []byte(strings.Repeat("v", 100))
		for i := range 4 { // more than half of a segment, so that what is behind does not join it
			c.putKeyed(cl, "state", fmt.Sprint("stays", i), value)
		}
		for range 20 { // the rest of it, and more
			c.putKeyed(cl, "state", "newest only", []byte("v"))
		}
		for i := range 20 {
			c.putKeyed(cl, "state", fmt.Sprint("behind", i), value)
		}
		var kept []int64
		c.untilInBubble("the log is compacted", func() bool {
			kept = c.fetchOnce(cl, "state", 0, 1<<20)
			return len(kept) == 25
		})
		second := c.segments(1, "state")[1]
		if kept[3] != 3 || kept[4] != 23 || second <= 5 || second > 23 {
			t.Fatalf("no gap at the end of the first segment: records %v, the second segment begins at %d", kept, second)
		}
		for from := range int64(44) {
			next := kept[slices.IndexFunc(kept, func(at int64) bool { return at >= from })]
			for _, room := range []int32{1 << 20, 100, 1} {
				if got := c.fetchOnce(cl, "state", from, room); len(got) == 0 || got[0] != next {
					t.Errorf("a fetch at %d with room for %d bytes has %v, want %d first", from, room, got, next)
				}
			}
		}
	})
}

// TestC117_GroupsGoOnWhereRecordsAreGone: what a group has committed, and what comes after, is compacted away, while it has no members and while
// it has one. Its members go on with the next record that there is, and its lag gets to 0: also where all that is left of the log is a gap.
func TestC117_GroupsGoOnWhereRecordsAreGone(t *testing.T) {
	for protocol, opts := range map[string][]kgo.Opt{"classic": nil, "consumer": {kgo.ServerSideBalancer()}} {
		t.Run(protocol, func(t *testing.T) {
			clusterBubble(t, 1, nil, func(t *testing.T, c *cluster) { c.goOnInBubble(opts) })
		})
	}
}

// goOnInBubble is the course of the test above.
func (c *cluster) goOnInBubble(opts []kgo.Opt) {
	cl := c.client()
	defer cl.Close()
	c.createCompacted(cl, "state", "max.compaction.lag.ms", "1000", "delete.retention.ms", "1000")
	all := func(value []byte) {
		for i := range 10 {
			c.putKeyed(cl, "state", fmt.Sprint(i), value)
		}
	}
	all([]byte("first"))
	first := c.readerOfState(opts)
	c.readAndCommit(first, 0, 1, 2, 3, 4)
	first.Close()
	all([]byte("second"))
	c.untilInBubble("what was committed and what comes after is gone", func() bool {
		return slices.Equal(c.fetchOnce(cl, "state", 0, 1<<20), []int64{10, 11, 12, 13, 14, 15, 16, 17, 18, 19})
	})
	c.wantBacklog("without members", 0, 5, 15, group.NoMembers)

	second := c.readerOfState(opts)
	defer second.Close()
	c.readAndCommit(second, 10, 11, 12, 13, 14)
	c.wantBacklog("in the middle", 1, 15, 5, group.Behind)
	c.readAndCommit(second, 15, 16, 17, 18, 19)
	c.wantBacklog("everything is read", 1, 20, 0, group.CaughtUp)

	second.PauseFetchTopics("state")
	time.Sleep(30 * time.Second) // what it has asked for already is answered
	all(nil)
	c.untilInBubble("nothing is left", func() bool { return len(c.fetchOnce(cl, "state", 0, 1<<20)) == 0 })
	time.Sleep(2 * time.Minute) // after one a group that commits nothing is stuck, where there is something to read
	c.wantBacklog("nothing is left to read", 1, 20, 0, group.CaughtUp)
	second.ResumeFetchTopics("state")
	c.putKeyed(cl, "state", "new", []byte("third"))
	c.readAndCommit(second, 30)
	c.wantBacklog("it went on behind the gap", 1, 31, 0, group.CaughtUp)
}

// readerOfState is a member of the group readers, which begins where nothing is committed with the first record.
func (c *cluster) readerOfState(opts []kgo.Opt) *kgo.Client {
	return c.client(append([]kgo.Opt{
		kgo.ConsumerGroup("readers"), kgo.ConsumeTopics("state"), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}, opts...)...)
}

// readAndCommit reads just these records, no other, and commits them.
func (c *cluster) readAndCommit(member *kgo.Client, want ...int64) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	var got []int64
	for len(got) < len(want) {
		f := member.PollRecords(ctx, len(want)-len(got))
		if err := f.Err(); err != nil {
			c.t.Fatalf("%v after %v, want %v", err, got, want)
		}
		f.EachRecord(func(r *kgo.Record) { got = append(got, r.Offset) })
	}
	if !slices.Equal(got, want) {
		c.t.Fatalf("it reads %v, want %v", got, want)
	}
	if err := member.CommitUncommittedOffsets(ctx); err != nil {
		c.t.Fatal(err)
	}
}

// wantBacklog compares what the coordinator says of the group readers in its one partition.
func (c *cluster) wantBacklog(when string, members int, committed kafka.Offset, lag int64, state group.BacklogState) {
	c.t.Helper()
	r := c.reported("readers")
	if p := r.Partitions[0]; len(r.Partitions) != 1 || r.Members != members || p.Committed != committed || p.Lag != lag || p.State != state || r.State != state {
		c.t.Errorf("%s: %d members, %v: %+v", when, r.Members, r.State, r.Partitions)
	}
}
