package client_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/client"
)

func (w *world) newPublisher(n *network, change func(*client.PublisherOptions)) *client.Publisher {
	w.t.Helper()
	o := client.PublisherOptions{Brokers: w.broker.Brokers(), Kafka: []kgo.Opt{kgo.Dialer(n.dial)}}
	if change != nil {
		change(&o)
	}
	p, err := client.NewPublisher(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(p.Close)
	return p
}

func ids(records []*kgo.Record) []string {
	var out []string
	for _, r := range records {
		for _, h := range r.Headers {
			if h.Key == client.RecordIDHeader {
				out = append(out, string(h.Value))
			}
		}
	}
	return out
}

// TestR33_ALostAnswerIsAskedForAgain: same identity, same sequence, one record, the original place.
func TestR33_ALostAnswerIsAskedForAgain(t *testing.T) {
	w, n := newTestWorld(t, 1), &network{}
	p := w.newPublisher(n, nil)
	if _, err := p.Publish(t.Context(), "order-42/0", &kgo.Record{Topic: "orders", Value: []byte("placed")}); err != nil {
		t.Fatal(err)
	}
	n.loseOne.Store(true)
	given := &kgo.Record{Topic: "orders", Value: []byte("paid")}
	got, err := p.Publish(t.Context(), "order-42/1", given)
	if want := (client.Receipt{Topic: "orders", Offset: 1, RecordID: "order-42/1", LeaderEpoch: got.LeaderEpoch}); err != nil || got != want || n.lost.Load() != 1 {
		t.Fatalf("%+v, %v, %d answers lost", got, err, n.lost.Load())
	}
	if _, epoch, _ := w.kafka.PartitionLeader("orders", 0); got.LeaderEpoch < 0 || got.LeaderEpoch != epoch && epoch >= 0 {
		t.Errorf("leader epoch %d", got.LeaderEpoch)
	}
	stored := w.records("orders")
	if ids := ids(stored); len(ids) != 2 || ids[0] != "order-42/0" || ids[1] != "order-42/1" || len(given.Headers) != 0 {
		t.Errorf("%v, %v", ids, given.Headers)
	}
}

// TestR25_ATimeOutIsUnknown: when no answer comes in time the record may be stored, and here it is; the error says so and names the id.
func TestR25_ATimeOutIsUnknown(t *testing.T) {
	w, n := newTestWorld(t, 1), &network{}
	p := w.newPublisher(n, func(o *client.PublisherOptions) { o.Timeout = 300 * time.Millisecond })
	n.hold.Store(true)
	_, err := p.Publish(t.Context(), "", &kgo.Record{Topic: "orders", Value: []byte("paid")})
	var fault *client.PublishError
	if !errors.As(err, &fault) || !fault.OutcomeUnknown() || !fault.Retriable() || fault.Partition != 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%#v", err)
	}
	if got := ids(w.records("orders")); len(got) != 1 || got[0] != fault.RecordID || got[0] == "" {
		t.Errorf("%v, %q", got, fault.RecordID)
	}
}

// TestR22_PublishedAgainAfterAnUnknownOutcome: on a topic that remembers ids another process gets the original place, and there is one record.
func TestR22_PublishedAgainAfterAnUnknownOutcome(t *testing.T) {
	w, n := newTestWorld(t, 1), &network{}
	p := w.newPublisher(n, func(o *client.PublisherOptions) { o.Timeout = 300 * time.Millisecond })
	n.hold.Store(true)
	if _, err := p.Publish(t.Context(), "order-42/0", &kgo.Record{Topic: "ids"}); !client.OutcomeUnknown(err) {
		t.Fatal(err)
	}
	again := w.newPublisher(&network{}, nil)
	for _, id := range []string{"order-42/0", "order-42/0", "order-42/1"} {
		if got, err := again.Publish(t.Context(), id, &kgo.Record{Topic: "ids"}); err != nil || (got.Offset == 0) != (id == "order-42/0") {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if got := ids(w.records("ids")); !slices.Equal(got, []string{"order-42/0", "order-42/1"}) {
		t.Error(got)
	}
}

// TestR123_TheBufferIsBounded: what finds no room in time is known not to be stored.
func TestR123_TheBufferIsBounded(t *testing.T) {
	w, n := newTestWorld(t, 1), &network{}
	p := w.newPublisher(n, func(o *client.PublisherOptions) { o.BufferedRecords, o.Timeout = 1, 300*time.Millisecond })
	n.hold.Store(true)
	first := make(chan error, 1)
	go func() {
		_, err := p.Publish(context.Background(), "1", &kgo.Record{Topic: "orders"})
		first <- err
	}()
	w.eventually("the first has left", func() bool { return n.lost.Load() == 1 })
	_, err := p.Publish(t.Context(), "2", &kgo.Record{Topic: "orders"})
	var fault *client.PublishError
	if !errors.As(err, &fault) || fault.OutcomeUnknown() || !fault.Retriable() || fault.Partition != -1 {
		t.Errorf("%#v", err)
	}
	if err := <-first; !client.OutcomeUnknown(err) {
		t.Errorf("the first: %v", err)
	}
	if got := ids(w.records("orders")); len(got) != 1 || got[0] != "1" {
		t.Error(got)
	}
}

// TestPublish_Refusals are known: not stored, and not worth another attempt.
func TestPublish_Refusals(t *testing.T) {
	w := newTestWorld(t, 1)
	p := w.newPublisher(&network{}, func(o *client.PublisherOptions) { o.BatchBytes = 10_000 })
	_, err := p.Publish(t.Context(), "", &kgo.Record{Topic: "orders", Value: make([]byte, 20_000)})
	if !errors.Is(err, kerr.MessageTooLarge) || client.OutcomeUnknown(err) || client.Retriable(err) {
		t.Errorf("too large for the client: %#v", err)
	}
	p = w.newPublisher(&network{}, func(o *client.PublisherOptions) { o.BatchBytes = 3 << 20 })
	_, err = p.Publish(t.Context(), "", &kgo.Record{Topic: "orders", Value: make([]byte, 2<<20)})
	if !errors.Is(err, kerr.MessageTooLarge) || client.OutcomeUnknown(err) || client.Retriable(err) {
		t.Errorf("too large for the broker: %#v", err)
	}
	if end := w.end("orders", 0); end != 0 {
		t.Error(end)
	}
	// The header of a record is its id, and it is stored once.
	r := &kgo.Record{Topic: "orders", Headers: []kgo.RecordHeader{{Key: client.RecordIDHeader, Value: []byte("mine")}}}
	if got, err := p.Publish(t.Context(), "", r); err != nil || got.RecordID != "mine" {
		t.Error(got, err)
	}
	if got := ids(w.records("orders")); len(got) != 1 || got[0] != "mine" {
		t.Error(got)
	}
}

// batches remembers how many records each batch had.
type batches struct {
	mu    sync.Mutex
	sizes []int
}

func (b *batches) OnProduceBatchWritten(_ kgo.BrokerMetadata, _ string, _ int32, m kgo.ProduceBatchMetrics) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sizes = append(b.sizes, m.NumRecords)
}

// TestR122_BatchesAreBounded: a batch is sent when BatchBytes is reached, however long Linger is, and hooks see the batches.
func TestR122_BatchesAreBounded(t *testing.T) {
	w := newTestWorld(t, 1)
	var seen batches
	p := w.newPublisher(&network{}, func(o *client.PublisherOptions) {
		o.BatchBytes, o.Linger = 16<<10, 10*time.Millisecond
		o.Kafka = append(o.Kafka, kgo.WithHooks(&seen), kgo.ProducerBatchCompression(kgo.NoCompression()))
	})
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if _, err := p.Publish(t.Context(), "", &kgo.Record{Topic: "orders", Value: make([]byte, 1000)}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if len(seen.sizes) == 0 || slices.Max(seen.sizes) > 16 {
		t.Errorf("batches of %v records", seen.sizes)
	}
}

func TestNewPublisher_Options(t *testing.T) {
	for _, o := range []client.PublisherOptions{
		{},
		{Brokers: []string{"127.0.0.1:1"}, Timeout: 3 * time.Minute},
		{Brokers: []string{"127.0.0.1:1"}, Timeout: -1},
		{Brokers: []string{"127.0.0.1:1"}, Window: time.Second},
		{Brokers: []string{"127.0.0.1:1"}, Kafka: []kgo.Opt{kgo.DisableIdempotentWrite()}},
		{Brokers: []string{"127.0.0.1:1"}, Kafka: []kgo.Opt{kgo.AllowIdempotentProduceCancellation()}},
	} {
		if _, err := client.NewPublisher(o); !errors.Is(err, client.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
