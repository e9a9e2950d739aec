package client

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/embedded"
)

// TestI14_WaitingRecordsAreBounded: a partition whose records are not processed stops to be fetched, others go on, and so does it when there
// is room again; nothing is left out.
func TestI14_WaitingRecordsAreBounded(t *testing.T) {
	b := embedded.Start(t, embedded.Options{Topics: []embedded.Topic{{Name: "orders", Partitions: 2}}})
	k, err := kgo.NewClient(kgo.SeedBrokers(b.Brokers()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	put := func(partition int32, count int) {
		records := make([]*kgo.Record, count)
		for i := range records {
			records[i] = &kgo.Record{Topic: "orders", Partition: partition}
		}
		if err := k.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	const all = 5000
	put(0, all)
	release, other, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var next atomic.Int64
	w, err := NewWorker(WorkerOptions{Brokers: b.Brokers(), Group: "g", Topics: []string{"orders"}, Process: func(_ context.Context, r *kgo.Record) error {
		if r.Partition == 1 {
			other <- struct{}{}
			return nil
		}
		<-release
		if want := next.Add(1) - 1; r.Offset != want {
			t.Errorf("offset %d, want %d", r.Offset, want)
		}
		if r.Offset == all-1 {
			close(done)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	waiting := func() (n int, paused bool) {
		for _, p := range w.assigned() {
			p.mu.Lock()
			if p.id == 0 {
				n, paused = p.waiting, p.paused
			}
			p.mu.Unlock()
		}
		return n, paused
	}
	eventually(t, func() bool { _, paused := waiting(); return paused })
	for range 10 { // each takes a poll or several
		put(1, 1)
		<-other
		if n, paused := waiting(); n > waitingMax+pollRecordsMax || !paused {
			t.Fatalf("%d records wait, paused: %v", n, paused)
		}
	}
	close(release)
	<-done
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAbandoned_IsSaid: a function that does not return does not hold up the end for ever, and its record is not committed.
func TestAbandoned_IsSaid(t *testing.T) {
	w, err := NewWorker(WorkerOptions{Brokers: []string{"127.0.0.1:1"}, Group: "g", Topics: []string{"t"}, Process: func(context.Context, *kgo.Record) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	w.base = t.Context()
	if w.client, err = kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1")); err != nil {
		t.Fatal(err)
	}
	defer w.client.Close()
	close(w.built)
	w.o.DrainMax = 1
	stuck := make(chan struct{})
	defer close(stuck)
	w.o.Process = func(context.Context, *kgo.Record) error { <-stuck; return nil }
	p := w.newPartition("t", 0)
	p.push([]*kgo.Record{{Topic: "t", Offset: 5}})
	eventually(t, func() bool { return len(w.slots) == 1 })
	if err := w.giveUp([]*partition{p}); !errors.Is(err, ErrAbandoned) {
		t.Error(err)
	}
	if at, ok := p.unsaved(); ok {
		t.Error(at)
	}
}

// eventually asks until what gives no event holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never")
		}
	}
}
