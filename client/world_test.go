package client_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/client"
	"strandline.dev/embedded"
)

// world is a broker with the topic "orders", and what a test asks of it.
type world struct {
	t      *testing.T
	broker *embedded.Broker
	kafka  *kgo.Client
	admin  *kadm.Client
}

func newTestWorld(t *testing.T, partitions int32) *world {
	t.Helper()
	w := &world{t: t, broker: embedded.Start(t, embedded.Options{Topics: []embedded.Topic{
		{Name: "orders", Partitions: partitions}, {Name: "aside"}, {Name: "ids", Configs: map[string]string{"strandline.dedup.window.ms": "120000"}},
	}})}
	var err error
	if w.kafka, err = kgo.NewClient(kgo.SeedBrokers(w.broker.Brokers()...), kgo.RecordPartitioner(kgo.ManualPartitioner())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.kafka.Close)
	w.admin = kadm.NewClient(w.kafka)
	return w
}

// put stores records whose value is their offset, and returns it for the first.
func (w *world) put(partition int32, count int, headers ...kgo.RecordHeader) int64 {
	w.t.Helper()
	first := w.end("orders", partition)
	var records []*kgo.Record
	for i := range count {
		value := fmt.Appendf(nil, "%d", first+int64(i))
		records = append(records, &kgo.Record{Topic: "orders", Partition: partition, Key: value, Value: value, Headers: headers})
	}
	if err := w.kafka.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
	return first
}

func version(v string) kgo.RecordHeader {
	return kgo.RecordHeader{Key: client.SchemaVersionHeader, Value: []byte(v)}
}

func (w *world) end(topic string, partition int32) int64 {
	w.t.Helper()
	ends, err := w.admin.ListEndOffsets(w.t.Context(), topic)
	if err != nil {
		w.t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, partition)
	return end.Offset
}

// committed is the position of the group "billing" in a partition of "orders"; -1: none.
func (w *world) committed(partition int32) int64 {
	w.t.Helper()
	all, err := w.admin.FetchOffsets(context.Background(), "billing")
	if err != nil {
		w.t.Fatal(err)
	}
	at, ok := all.Lookup("orders", partition)
	if !ok {
		return -1
	}
	return at.At
}

// records reads a topic of one partition from its start to its last record, which ends it.
func (w *world) records(topic string) []*kgo.Record {
	w.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(w.broker.Brokers()...), kgo.ConsumeTopics(topic), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	var out []*kgo.Record
	for end := w.end(topic, 0); end > 0 && (len(out) == 0 || out[len(out)-1].Offset < end-1); { // there may be holes
		fetches := c.PollFetches(w.t.Context())
		if err := fetches.Err(); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, fetches.Records()...)
	}
	return out
}

// options of a worker of "billing" for tests: it commits often and tries again soon.
func (w *world) options(process func(context.Context, *kgo.Record) error) client.WorkerOptions {
	return client.WorkerOptions{
		Brokers: w.broker.Brokers(), Group: "billing", Topics: []string{"orders"}, Process: process,
		CommitEvery: 5 * time.Millisecond, BackoffMin: time.Millisecond, BackoffMax: time.Millisecond, Attempts: 3,
		Log: slog.New(slog.DiscardHandler),
	}
}

// running is a worker that runs until it is stopped, at the latest with the test.
type running struct {
	t    *testing.T
	end  context.CancelFunc
	done chan struct{}
	err  error
}

func (w *world) run(o client.WorkerOptions) *running {
	w.t.Helper()
	worker, err := client.NewWorker(o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: w.t, end: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = worker.Run(ctx)
	}()
	w.t.Cleanup(func() { r.stop() })
	return r
}

// stop ends the worker in good order.
func (r *running) stop() error {
	r.end()
	<-r.done
	return r.err
}

// eventually asks until what gives no event holds.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("never: %s", what)
		}
	}
}

// journal is what workers did, in order, by partition.
type journal struct {
	mu   sync.Mutex
	done map[int32][]int64
}

func (j *journal) add(r *kgo.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.done == nil {
		j.done = map[int32][]int64{}
	}
	j.done[r.Partition] = append(j.done[r.Partition], r.Offset)
}

func (j *journal) of(partition int32) []int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]int64{}, j.done[partition]...)
}

// network is what a client dials through, to lose answers or everything.
type network struct {
	loseOne atomic.Bool // the next answer to a Produce, with its connection
	hold    atomic.Bool // no answer to a Produce arrives any more
	dead    atomic.Bool
	lost    atomic.Int64
}

var errDead = errors.New("this network is dead")

func (n *network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	if n.dead.Load() {
		return nil, errDead
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, kind, address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, n: n, ended: make(chan struct{})}, nil
}

// conn is one connection; produces says that it carries Produce requests, whose key is 0.
type conn struct {
	net.Conn
	n        *network
	produces atomic.Bool
	ended    chan struct{}
	once     sync.Once
}

func (c *conn) Write(b []byte) (int, error) {
	if c.n.dead.Load() {
		return 0, errDead
	}
	if len(b) > 8 && int(binary.BigEndian.Uint32(b))+4 == len(b) && binary.BigEndian.Uint16(b[4:]) == 0 {
		c.produces.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.n.dead.Load() {
		return 0, errDead
	}
	if n > 0 && c.produces.Load() {
		if c.n.hold.Load() {
			c.n.lost.Add(1)
			<-c.ended
			return 0, net.ErrClosed
		}
		if c.n.loseOne.CompareAndSwap(true, false) {
			c.n.lost.Add(1)
			_ = c.Close()
			return 0, io.ErrUnexpectedEOF
		}
	}
	return n, err
}

func (c *conn) Close() error {
	c.once.Do(func() { close(c.ended) })
	return c.Conn.Close()
}
