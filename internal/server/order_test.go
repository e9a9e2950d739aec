package server

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/replica"
)

// rawRequest is a request of any key and version with any body.
type rawRequest struct {
	kmsg.Request
	key, version int16
	flexible     bool
	body         []byte
}

func (r rawRequest) Key() int16                 { return r.key }
func (r rawRequest) GetVersion() int16          { return r.version }
func (r rawRequest) IsFlexible() bool           { return r.flexible }
func (r rawRequest) AppendTo(dst []byte) []byte { return append(dst, r.body...) }

func itoa(n int16) string { return strconv.Itoa(int(n)) }

func newMetadata(version int16, topics ...string) *kmsg.MetadataRequest {
	r := kmsg.NewPtrMetadataRequest()
	r.Version = version
	r.Topics = []kmsg.MetadataRequestTopic{}
	for i := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &topics[i]
		r.Topics = append(r.Topics, t)
	}
	return r
}

// C116: a long poll holds up what follows on its connection, in order; when the peer goes away the parked fetch is dropped.
func TestC116_LongPollHoldsUpItsConnectionOnly(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c, other := b.dial(), b.dial()
	c.create("poll", 1)
	f := newFetch("poll", 0, 0)
	f.MaxWaitMillis = 30_000
	m := newMetadata(12, "poll")
	first := c.send(f, m)
	other.publish(newProduce("poll", 0, b.newBatch("wakes it")))
	resp := c.read(f, first).(*kmsg.FetchResponse)
	if got := values(t, resp.Topics[0].Partitions[0].RecordBatches); len(got) != 1 {
		t.Fatalf("fetch: %v, want one record", got)
	}
	c.read(m, first+1)

	f = newFetch("poll", 0, 1)
	f.MaxWaitMillis = 60_000
	before := goroutinesOfConnections()
	if before < 2 {
		t.Fatalf("%d goroutines are seen of two connections", before)
	}
	for range 20 {
		gone := b.dial()
		gone.send(f, m)
		gone.conn.Close()
	}
	eventually(t, "the parked fetches of gone peers are dropped", func() bool { return goroutinesOfConnections() <= before })
	if used := b.server.budget.Used() + b.server.answers.Used(); used != 0 {
		t.Errorf("%d bytes of the memory budget are still held", used)
	}
}

// goroutinesOfConnections counts those that the server has begun for its connections.
func goroutinesOfConnections() int {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Count(stacks, []byte("created by strandline.dev/internal/server.(*Server).admit")) +
		bytes.Count(stacks, []byte("created by strandline.dev/internal/server.(*conn)"))
}

// Produce is pipelined behind Produce: publishes that cannot be committed yet do not keep later ones from being appended, and a request
// of another key waits for all of them.
func TestOrder_OnlyProduceIsPipelined(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("pipe", 1)
	open := b.control.shut()
	create := newCreate("later", 1)
	p1, p2 := newProduce("pipe", 0, b.newBatch("a")), newProduce("pipe", 0, b.newBatch("b"))
	first := c.send(create, p1, p2)
	eventually(t, "the creation waits for the controller", func() bool { return b.control.waiting.Load() == 1 })
	if st := b.status("pipe", 0); st.End != 0 {
		t.Fatalf("the log ends at %d: a publish was started before an earlier request of another key was answered", st.End)
	}
	open()
	c.read(create, first)
	for i, p := range []*kmsg.ProduceRequest{p1, p2} {
		got := c.read(p, first+1+int32(i)).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		if got.ErrorCode != 0 || got.BaseOffset != int64(i) {
			t.Errorf("publish %d: offset %d, error %d", i, got.BaseOffset, got.ErrorCode)
		}
	}
}

// A graceful stop answers what is parked and then closes.
func TestStop_ParkedRequestsAreAnswered(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c, idle := b.dial(), b.dial()
	c.create("stop", 1)
	f := newFetch("stop", 0, 0)
	f.MaxWaitMillis = 60_000
	id := c.send(f)
	eventually(t, "the fetch is parked", func() bool { return b.spy.parks.Load() > 0 })
	b.stop()
	if got := c.read(f, id).(*kmsg.FetchResponse); got.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Errorf("parked fetch: error %d", got.Topics[0].Partitions[0].ErrorCode)
	}
	c.closed()
	idle.closed()
	must(t, <-b.served)
	b.served = nil
}

func TestIdle_ConnectionIsReapedUnlessParked(t *testing.T) {
	b := newTestBroker(t, testOptions{broker: map[string]string{"connections.max.idle.ms": "150"}})
	c := b.dial()
	c.create("idle", 1)
	f := newFetch("idle", 0, 0)
	f.MaxWaitMillis = 600
	ask[*kmsg.FetchResponse](c, f) // longer than the idle limit, and answered
	c.closed()
	if log := b.log.String(); !strings.Contains(log, "reason=idle") {
		t.Errorf("no log line names the idle peer:\n%s", log)
	}
}

func TestAccept_ConnectionsAreLimited(t *testing.T) {
	b := newTestBroker(t, testOptions{limits: Limits{Connections: 2}})
	one, two := b.dial(), b.dial()
	ask[kmsg.Response](one, newMetadata(12))
	ask[kmsg.Response](two, newMetadata(12))
	b.dial().closed()
	one.conn.Close()
	eventually(t, "a place is free", func() bool {
		c := b.dial()
		defer c.conn.Close()
		m := newMetadata(12)
		c.conn.Write(c.frame(m, 0))
		_, err := c.tryRead(m, 0)
		return err == nil
	})
}

// status describes a partition by topic name.
func (b *testBroker) status(topic string, partition int32) replica.PartitionStatus {
	b.t.Helper()
	t := b.quorum.Image().Topic(topic)
	if t == nil {
		b.t.Fatalf("no topic %s", topic)
	}
	st, ok := b.host.Describe(kafka.TopicPartition{Topic: t.ID, Partition: partition})
	if !ok {
		b.t.Fatalf("%s-%d is not on this node", topic, partition)
	}
	return st
}

// sizeFrame is a frame with that size and nothing behind it.
func sizeFrame(size int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(size)) }
