package server

import (
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// headerOf builds the start of a request frame without its size: key, version, correlation id 0 and an empty client id.
func headerOf(key, version int16) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	return append(b, 0, 0, 0, 0, 0, 0)
}

func framed(body []byte) []byte { return append(sizeFrame(int32(len(body))), body...) }

// C084: a tiny request with a giant array length is refused before anything is allocated.
func TestC084_GiantArrayLengthCostsNothing(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	b.dial().create("c084", 1)
	before := heap()
	for range 50 {
		c := b.dial()
		c.write(framed(append(headerOf(wire.KeyMetadata, 1), 0x7f, 0xff, 0xff, 0xff)))
		c.closed()
	}
	if grown := int64(heap()) - int64(before); grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

// C086: sockets that announce 100 MiB and send nothing hold no memory, and real clients are served.
func TestC086_AnnouncedBytesCostNothing(t *testing.T) {
	b := newTestBroker(t, testOptions{limits: Limits{Memory: 8 << 20}})
	c := b.dial()
	c.create("c086", 1)
	before := heap()
	for range 300 {
		b.dial().write(append(sizeFrame(99<<20), headerOf(wire.KeyProduce, 9)...))
	}
	if got := c.publish(newProduce("c086", 0, b.newBatch("served"))); got.ErrorCode != 0 {
		t.Errorf("a real client: %v", kafka.ErrorCode(got.ErrorCode))
	}
	if grown := int64(heap()) - int64(before); grown > 48<<20 {
		t.Errorf("the heap grew by %d MiB for 300 connections", grown>>20)
	}
	if used := b.server.budget.Used(); used > 8<<20 {
		t.Errorf("%d bytes of the budget are used", used)
	}
}

// C086: a peer that has sent a large frame is believed when it announces another, but never for more than it has shown, and all such
// peers together only for half of the budget.
func TestC086_BelievedBytesAreBounded(t *testing.T) {
	const peers, limit = 60, 32 << 20
	b := newTestBroker(t, testOptions{limits: Limits{Memory: 2 * limit}})
	c := b.dial()
	c.create("c086", 1)
	for range peers {
		peer := b.dial()
		if got := peer.publish(newProduce("c086", 0, b.newBatch(strings.Repeat("b", 900<<10)))); got.ErrorCode != 0 {
			t.Fatal(kafka.ErrorCode(got.ErrorCode))
		}
		peer.write(append(sizeFrame(99<<20), headerOf(wire.KeyProduce, 9)...))
	}
	budget := b.server.budget
	eventually(t, "all of them are being read", func() bool {
		budget.mu.Lock()
		defer budget.mu.Unlock()
		return len(budget.mu.reading) == peers
	})
	if used := budget.Used(); used < 2<<20 || used > limit*3/4 {
		t.Errorf("%d MiB of %d MiB are held by frames that are only announced", used>>20, limit>>20)
	}
	if got := c.publish(newProduce("c086", 0, b.newBatch("served"))); got.ErrorCode != 0 {
		t.Errorf("a real client: %v", kafka.ErrorCode(got.ErrorCode))
	}
}

// C086: a peer that stops in the middle of a frame is closed.
func TestC086_StalledFrameIsClosed(t *testing.T) {
	b := newTestBroker(t, testOptions{limits: Limits{FrameStall: 50 * time.Millisecond}})
	c := b.dial()
	c.write(append(sizeFrame(1000), headerOf(wire.KeyProduce, 9)...))
	c.closed()
	eventually(t, "the log names the slow writer", func() bool { return strings.Contains(b.log.String(), "reason=slow_writer") })
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// K53: creations that are wrong get an error for each, and nothing is made.
func TestK53_WrongCreations(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	change := func(f func(*kmsg.CreateTopicsRequestTopic)) *kmsg.CreateTopicsRequest {
		r := newCreate("k53", 1)
		f(&r.Topics[0])
		return r
	}
	assigned := func(nodes ...int32) func(*kmsg.CreateTopicsRequestTopic) {
		return func(t *kmsg.CreateTopicsRequestTopic) {
			a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
			a.Replicas = nodes
			t.NumPartitions, t.ReplicationFactor = -1, -1
			t.ReplicaAssignment = append(t.ReplicaAssignment, a)
		}
	}
	for _, one := range []struct {
		name string
		req  *kmsg.CreateTopicsRequest
		want kafka.ErrorCode
	}{
		{"partitions 0", change(func(t *kmsg.CreateTopicsRequestTopic) { t.NumPartitions = 0 }), kafka.InvalidPartitions},
		{"partitions -5", change(func(t *kmsg.CreateTopicsRequestTopic) { t.NumPartitions = -5 }), kafka.InvalidPartitions},
		{"partitions 10^7", change(func(t *kmsg.CreateTopicsRequestTopic) { t.NumPartitions = 10_000_000 }), kafka.InvalidPartitions},
		{"RF 0", change(func(t *kmsg.CreateTopicsRequestTopic) { t.ReplicationFactor = 0 }), kafka.InvalidReplicationFactor},
		{"RF 32767", change(func(t *kmsg.CreateTopicsRequestTopic) { t.ReplicationFactor = 32767 }), kafka.InvalidReplicationFactor},
		{"bad config", newCreate("k53", 1, "retention.ms", "abc"), kafka.InvalidConfig},
		{"unknown config", newCreate("k53", 1, "retention.sm", "1"), kafka.InvalidConfig},
		{"config twice", newCreate("k53", 1, "retention.ms", "1", "retention.ms", "2"), kafka.InvalidRequest},
		{"repeated replica", change(assigned(1, 1)), kafka.InvalidReplicaAssignment},
		{"unknown replica", change(assigned(99)), kafka.InvalidReplicaAssignment},
		{"assignment and counts", change(func(t *kmsg.CreateTopicsRequestTopic) { assigned(1)(t); t.NumPartitions = 1 }), kafka.InvalidRequest},
		{"name twice", func() *kmsg.CreateTopicsRequest {
			r := newCreate("k53", 1)
			r.Topics = append(r.Topics, r.Topics[0])
			return r
		}(), kafka.InvalidRequest},
	} {
		resp := ask[*kmsg.CreateTopicsResponse](c, one.req)
		if len(resp.Topics) != 1 || kafka.ErrorCode(resp.Topics[0].ErrorCode) != one.want || resp.Topics[0].ErrorMessage == nil {
			t.Errorf("%s: %d answers, %v %q, want %v and a message", one.name, len(resp.Topics), kafka.ErrorCode(resp.Topics[0].ErrorCode), str(resp.Topics[0].ErrorMessage), one.want)
		}
	}
	if n := b.quorum.Image().TopicCount(); n != 0 {
		t.Errorf("%d topics were made", n)
	}
}
