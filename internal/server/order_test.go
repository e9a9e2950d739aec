package server

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

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

// K61: answers come in request order whatever the correlation ids say, here one id used for all.
func TestK61_AnswersInRequestOrder(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("order", 1)
	const same = 77
	var all []byte
	var reqs []kmsg.Request
	for i := range 30 {
		var r kmsg.Request
		switch i % 3 {
		case 0:
			r = newProduce("order", 0, b.newBatch(fmt.Sprint(i)))
		case 1:
			r = newMetadata(12, "order")
		default:
			r = newFetch("order", 0, int64(i/3))
		}
		reqs = append(reqs, r)
		all = append(all, c.frame(r, same)...)
	}
	c.write(all)
	for i, r := range reqs {
		resp := c.read(r, same)
		switch i % 3 {
		case 0:
			if got := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].BaseOffset; got != int64(i/3) {
				t.Errorf("publish %d: offset %d, want %d", i, got, i/3)
			}
		case 2:
			p := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
			if got := values(t, p.RecordBatches); len(got) != 1 || got[0] != fmt.Sprint(i-2) {
				t.Errorf("fetch %d: %v, want the record published just before it", i, got)
			}
		}
	}
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
	before := runtime.NumGoroutine()
	for range 20 {
		gone := b.dial()
		gone.send(f, m)
		gone.conn.Close()
	}
	eventually(t, "the parked fetches of gone peers are dropped", func() bool { return runtime.NumGoroutine() <= before })
	if used := b.server.budget.Used() + b.server.answers.Used(); used != 0 {
		t.Errorf("%d bytes of the memory budget are still held", used)
	}
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

// K59: 100 requests are pipelined and the peer closes without reading: buffers and goroutines are given back.
func TestK59_PipelineThenCloseFreesEverything(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	b.dial().create("k59", 1)
	before := runtime.NumGoroutine()
	for range 5 {
		c := b.dial()
		for i := range 100 {
			if i%2 == 0 {
				c.send(newProduce("k59", 0, b.newBatch(strings.Repeat("x", 1000))))
			} else {
				c.send(newFetch("k59", 0, 0))
			}
		}
		c.conn.Close()
	}
	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	eventually(t, "the memory budget is free", func() bool { return b.server.budget.Used()+b.server.answers.Used() == 0 })
}

// K60: a peer that never reads its answers is closed by the write deadline.
func TestK60_PeerThatNeverReadsIsClosed(t *testing.T) {
	b := newTestBroker(t, testOptions{limits: Limits{WriteStall: 50 * time.Millisecond}})
	c := b.dial()
	c.create("k60", 1)
	c.publish(newProduce("k60", 0, b.newBatch(strings.Repeat("y", 500_000))))
	hang := b.dial()
	for range 200 {
		f := hang.frame(newFetch("k60", 0, 0), 1)
		hang.conn.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := hang.conn.Write(f); err != nil {
			break
		}
	}
	eventually(t, "the log names the slow reader", func() bool { return strings.Contains(b.log.String(), "reason=slow_reader") })
	eventually(t, "the memory budget is free", func() bool { return b.server.budget.Used()+b.server.answers.Used() == 0 })
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
