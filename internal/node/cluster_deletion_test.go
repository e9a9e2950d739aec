package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/sys/systest"
	"strandline.dev/internal/wire"
)

// deletionWindow is how long the topics of this test can be restored.
const deletionWindow = time.Minute

// createDated creates a topic of one partition that can be restored for deletionWindow, and returns its id.
func (c *cluster) createDated(cl *kgo.Client, topic string, copies int16) kafka.TopicID {
	c.t.Helper()
	window, value := kmsg.NewCreateTopicsRequestTopicConfig(), fmt.Sprint(deletionWindow.Milliseconds())
	window.Name, window.Value = "strandline.delete.recovery.ms", &value
	ct := kmsg.NewCreateTopicsRequestTopic()
	ct.Topic, ct.NumPartitions, ct.ReplicationFactor, ct.Configs = topic, 1, copies, append(ct.Configs, window)
	return c.creation(cl, ct)
}

// restore takes a topic back from the trash under a name.
func (c *cluster) restore(cl *kgo.Client, id kafka.TopicID, as string) {
	c.t.Helper()
	var e wire.Encoder
	wire.Restoration{ID: id}.Append(&e)
	ct := kmsg.NewCreateTopicsRequestTopic()
	ct.Topic = as
	ct.UnknownTags.Set(wire.TagRestoration, e.B)
	if got := c.creation(cl, ct); got != id {
		c.t.Fatalf("restored %v, want %v", got, id)
	}
}

func (c *cluster) creation(cl *kgo.Client, ct kmsg.CreateTopicsRequestTopic) kafka.TopicID {
	c.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = 10_000, append(req.Topics, ct)
	resp, err := req.RequestWith(c.t.Context(), cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		c.t.Fatalf("%s: %v", ct.Topic, err)
	}
	c.untilInBubble("the nodes know "+ct.Topic, func() bool {
		return !slices.ContainsFunc(c.members, func(m *member) bool { return m.node != nil && m.node.Image().Topic(ct.Topic) == nil })
	})
	return resp.Topics[0].TopicID
}

// remove deletes a topic in the version that it has, after another version was refused (R9).
func (c *cluster) remove(cl *kgo.Client, topic string) {
	c.t.Helper()
	version := c.alive().Image().Topic(topic).Version
	for _, one := range []struct {
		version int64
		want    kafka.ErrorCode
	}{{version + 1, kafka.InvalidUpdateVersion}, {version, kafka.None}} {
		dt := kmsg.NewDeleteTopicsRequestTopic()
		dt.Topic = &topic
		dt.UnknownTags.Set(wire.TagDeletion, wire.NumberTag(one.version))
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.TimeoutMillis, req.Topics = 10_000, append(req.Topics, dt)
		resp, err := req.RequestWith(c.t.Context(), cl)
		if err != nil {
			c.t.Fatal(err)
		}
		if got := kafka.ErrorCode(resp.Topics[0].ErrorCode); got != one.want {
			c.t.Fatalf("delete %s in version %d: %v, want %v", topic, one.version, got, one.want)
		}
	}
	c.untilInBubble("the nodes know that "+topic+" is deleted", func() bool {
		return !slices.ContainsFunc(c.members, func(m *member) bool { return m.node != nil && m.node.Image().Topic(topic) != nil })
	})
}

// fill publishes numbered values with a prefix.
func (c *cluster) fill(topic, prefix string, count int) (values []string) {
	c.t.Helper()
	cl := c.client() // that has never heard of an earlier topic of this name
	defer cl.Close()
	for i := range count {
		values = append(values, fmt.Sprint(prefix, i))
		if err := cl.ProduceSync(c.t.Context(), &kgo.Record{Topic: topic, Value: []byte(values[i])}).FirstErr(); err != nil {
			c.t.Fatal(err)
		}
	}
	return values
}

// watched is what a consumer that runs all the time was given, in order: "topic/value".
type watched struct {
	stop context.CancelFunc
	done chan struct{}
	got  []string
}

func (c *cluster) watch(by kgo.Opt, topics ...string) *watched {
	w := &watched{done: make(chan struct{})}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(c.t.Context())
	cl := c.client(kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMaxAge(time.Second), by)
	go func() {
		defer close(w.done)
		defer cl.Close()
		for ctx.Err() == nil {
			cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { w.got = append(w.got, r.Topic+"/"+string(r.Value)) })
		}
	}()
	return w
}

// keeps says whether a disk has anything of a topic.
func keeps(t *testing.T, fs *systest.FS, id kafka.TopicID) bool {
	t.Helper()
	for _, dir := range []string{"/data/topics", "/data/quarantine"} {
		entries, err := fs.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.Contains(e.Name, id.Hex()) {
				return true
			}
		}
	}
	return false
}

// TestP41_R11_R12_DeletionWithANodeDown: a topic is deleted and restored, deleted, created anew under its name and restored under another one, deleted
// and removed for good, while a consumer runs all the time and one node is down. No record of one topic is ever served as the other's; records
// and, under the old name, the offsets of groups are back; in the end nothing is left of it, also on the node that was down.
func TestP41_R11_R12_DeletionWithANodeDown(t *testing.T) {
	clusterBubble(t, 3, nil, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		first := c.createDated(cl, "t", 3)
		old := c.fill("t", "first-", 50)
		if err := c.commitOffset(t.Context(), cl, "g", 7); err != nil {
			t.Fatal(err)
		}
		c.untilInBubble("the progress is on three nodes", func() bool { return c.whole(coordinator.TopicName) && c.whole("t") })
		committed := func(want int64) {
			t.Helper()
			c.untilInBubble(fmt.Sprintf("the group is at %d", want), func() bool {
				at, err := c.offsetAt(t.Context(), cl, coordinatorIn(c.alive().Image(), "g"), "g")
				return err == nil && at == want
			})
		}
		running := c.watch(kgo.MaxVersions(kversion.Stable()), "t", "restored")
		// One that knows no topic ids fetches on while a topic is gone: an answer without end at the same moment would stop the time here.
		byName := c.watch(kgo.MaxVersions(kversion.V2_0_0()), "t", "restored")
		c.kill(3)

		c.remove(cl, "t")
		c.restore(cl, first, "t")
		same(t, old, c.read("t", 0, len(old)))
		committed(7)

		c.remove(cl, "t")
		second := c.createDated(cl, "t", 2)
		if second == first {
			t.Fatal("C079: an id is used twice")
		}
		fresh := c.fill("t", "second-", 20)
		c.restore(cl, first, "restored")
		same(t, old, c.read("restored", 0, len(old)))
		same(t, fresh, c.read("t", 0, len(fresh)))
		committed(-1)

		c.remove(cl, "restored")
		time.Sleep(deletionWindow / 2)
		if !keeps(t, c.member(1).fs, first) && !keeps(t, c.member(2).fs, first) {
			t.Error("R10: the records are gone before the window is over")
		}
		time.Sleep(deletionWindow)
		c.untilInBubble("the disks that are there have nothing of it", func() bool {
			return !keeps(t, c.member(1).fs, first) && !keeps(t, c.member(2).fs, first)
		})
		left := c.alive().Image().TopicByID(first)
		if left == nil || left.State != metadata.StatePurging || left.PendingPurges() != 1 || !keeps(t, c.member(3).fs, first) {
			t.Fatalf("R12: the node that is down is not waited for: %+v", left)
		}
		c.start(3)
		c.untilInBubble("nothing is left of it", func() bool {
			return !keeps(t, c.member(3).fs, first) && !slices.ContainsFunc(c.members, func(m *member) bool { return m.node.Image().TopicByID(first) != nil })
		})
		same(t, fresh, c.read("t", 0, len(fresh)))
		// franz-go stays with the id that it began with, and may or may not go over to the new topic: what it is given must fit.
		if second := running.judge(t); len(second) > 0 {
			same(t, fresh, second)
		}
		byName.judge(t)
	})
}

// judge ends the consumer and returns what it was given of the second topic: under the name "t" that comes after all of the first topic's records, and
// under the other name are only those (P41).
func (w *watched) judge(t *testing.T) (second []string) {
	t.Helper()
	w.stop()
	<-w.done
	if len(w.got) == 0 {
		t.Error("a consumer was given nothing")
	}
	for _, line := range w.got {
		topic, value, _ := strings.Cut(line, "/")
		switch ofSecond := strings.HasPrefix(value, "second-"); {
		case ofSecond && topic != "t", !ofSecond && topic == "t" && len(second) > 0:
			t.Fatalf("P41: a record of another topic: %s", line)
		case ofSecond:
			second = append(second, value)
		}
	}
	return second
}
