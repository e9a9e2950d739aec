package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/client"
)

// upTo is 0, 1, ... n-1.
func upTo(n int64) []int64 {
	var out []int64
	for i := range n {
		out = append(out, i)
	}
	return out
}

// TestR63_ProcessThenCommit: while a record is processed, the position is not past it; in the end it is past all, and a stop in good order
// leaves nothing to deliver again.
func TestR63_ProcessThenCommit(t *testing.T) {
	w := newTestWorld(t, 1)
	w.put(0, 20)
	var j journal
	r := w.run(w.options(func(_ context.Context, r *kgo.Record) error {
		if at := w.committed(0); at > r.Offset {
			t.Errorf("offset %d is processed and %d is committed", r.Offset, at)
		}
		j.add(r)
		return nil
	}))
	w.eventually("20 are done", func() bool { return len(j.of(0)) == 20 })
	if err := r.stop(); err != nil || w.committed(0) != 20 || !slices.Equal(j.of(0), upTo(20)) {
		t.Fatal(err, w.committed(0), j.of(0))
	}
}

// TestR71_CrashBetweenProcessAndCommit: what was processed and not committed is delivered again, with the same identity, so that a store which
// remembers identities has each effect once (R64).
func TestR71_CrashBetweenProcessAndCommit(t *testing.T) {
	w, n := newTestWorld(t, 1), &network{}
	w.put(0, 10)
	var first, second journal
	var mu sync.Mutex
	effects := map[string]int{} // a store with one transaction for effect and identity
	process := func(j *journal) func(context.Context, *kgo.Record) error {
		return func(_ context.Context, r *kgo.Record) error {
			mu.Lock()
			defer mu.Unlock()
			if id := string(r.Key); effects[id] == 0 {
				effects[id]++
			}
			j.add(r)
			if j == &first && r.Offset == 6 {
				n.dead.Store(true) // the crash, as the brokers see it: processed, and not a word more
			}
			return nil
		}
	}
	o := w.options(process(&first))
	o.Kafka = []kgo.Opt{kgo.Dialer(n.dial), kgo.InstanceID("worker-1")}
	w.run(o)
	w.eventually("offset 6 is processed", func() bool { return slices.Contains(first.of(0), 6) })
	at := w.committed(0)
	o = w.options(process(&second))
	o.Kafka = []kgo.Opt{kgo.InstanceID("worker-1")} // takes the place of the one that crashed at once
	w.run(o)
	w.eventually("the second worker is done", func() bool { return w.committed(0) == 10 })
	if got := second.of(0); at > 6 || len(got) == 0 || got[0] != max(at, 0) || got[len(got)-1] != 9 {
		t.Errorf("committed %d, then delivered %v", at, got)
	}
	mu.Lock()
	defer mu.Unlock()
	for id, count := range effects {
		if count != 1 {
			t.Errorf("%s had %d effects", id, count)
		}
	}
}

// TestR64_AtMostOnce: the position is past a record before it is processed; what fails is not delivered again.
func TestR64_AtMostOnce(t *testing.T) {
	w := newTestWorld(t, 1)
	w.put(0, 120)
	var j journal
	o := w.options(func(_ context.Context, r *kgo.Record) error {
		if at := w.committed(0); at <= r.Offset {
			t.Errorf("offset %d is processed and %d is committed", r.Offset, at)
		}
		j.add(r)
		if r.Offset%10 == 0 {
			return errors.New("no luck")
		}
		return nil
	})
	o.Delivery = client.AtMostOnce
	r := w.run(o)
	w.eventually("120 are done", func() bool { return len(j.of(0)) == 120 })
	if err := r.stop(); err != nil || w.committed(0) != 120 || !slices.Equal(j.of(0), upTo(120)) {
		t.Fatal(err, w.committed(0), j.of(0))
	}
}

// TestR54_ARebalanceCommitsWhatIsDone: a second worker comes and goes; each partition's position only rises, and nothing is processed twice.
func TestR54_ARebalanceCommitsWhatIsDone(t *testing.T) {
	const partitions, each = 4, 300
	w := newTestWorld(t, partitions)
	for p := range int32(partitions) {
		w.put(p, each)
	}
	var j journal
	var done atomic.Int64
	gate := make(chan struct{}, 1) // a little work at a time, so that the rebalances find some
	process := func(_ context.Context, r *kgo.Record) error {
		gate <- struct{}{}
		j.add(r)
		done.Add(1)
		<-gate
		return nil
	}
	o := w.options(process)
	first := w.run(o)
	w.eventually("the first works", func() bool { return done.Load() > 50 })
	var both atomic.Bool
	o.Process = func(ctx context.Context, r *kgo.Record) error { both.Store(true); return process(ctx, r) }
	second := w.run(o)
	last := map[int32]int64{0: -1, 1: -1, 2: -1, 3: -1}
	look := func() {
		for p := range int32(partitions) {
			at := w.committed(p)
			if at < last[p] {
				t.Errorf("partition %d: committed %d after %d", p, at, last[p])
			}
			last[p] = at
		}
	}
	w.eventually("the second works", func() bool {
		look()
		for p := range int32(partitions) { // so that the second finds records whenever it comes
			w.put(p, 1)
		}
		return both.Load()
	})
	if err := second.stop(); err != nil {
		t.Error(err)
	}
	w.eventually("all is done", func() bool {
		look()
		for p := range int32(partitions) {
			if last[p] < w.end("orders", p) {
				return false
			}
		}
		return true
	})
	if err := first.stop(); err != nil {
		t.Error(err)
	}
	for p := range int32(partitions) {
		if got := j.of(p); !slices.Equal(got, upTo(w.end("orders", p))) {
			t.Errorf("partition %d: %v", p, got)
		}
	}
}

// TestRevoked_CancelsWhatIsInProgress: a function that does not end in time is told by its context, and its record is delivered again.
func TestRevoked_CancelsWhatIsInProgress(t *testing.T) {
	w := newTestWorld(t, 1)
	w.put(0, 3)
	stuck := make(chan struct{})
	var once sync.Once
	o := w.options(func(ctx context.Context, r *kgo.Record) error {
		if r.Offset < 1 {
			return nil
		}
		once.Do(func() { close(stuck) })
		<-ctx.Done()
		return ctx.Err()
	})
	o.DrainMax = 1
	r := w.run(o)
	<-stuck
	if err := r.stop(); err != nil || w.committed(0) != 1 {
		t.Fatal(err, w.committed(0))
	}
}

// TestPoison_Stop: a record that fails stops its partition after the attempts, at once when that is of no use, and no other.
func TestPoison_Stop(t *testing.T) {
	w := newTestWorld(t, 2)
	w.put(0, 10)
	w.put(1, 10)
	var tries atomic.Int64
	var j journal
	stopped := make(chan *client.PartitionError, 2)
	o := w.options(func(_ context.Context, r *kgo.Record) error {
		if r.Partition == 0 && r.Offset == 4 {
			tries.Add(1)
			return errors.New("no such customer")
		}
		j.add(r)
		return nil
	})
	o.OnStopped = func(e *client.PartitionError) { stopped <- e }
	r := w.run(o)
	e := <-stopped
	var poison *client.PoisonError
	if e.Partition != 0 || e.Offset != 4 || !errors.As(e, &poison) || poison.Attempts != 3 || tries.Load() != 3 || e.Retriable() {
		t.Errorf("%v, %d tries", e, tries.Load())
	}
	w.put(1, 5)
	w.eventually("the other partition goes on", func() bool { return w.committed(1) == 15 })
	if err := r.stop(); !errors.Is(err, e) || w.committed(0) != 4 || !slices.Equal(j.of(0), upTo(4)) {
		t.Errorf("%v, %d, %v", err, w.committed(0), j.of(0))
	}
	// The next owner begins at the same record, and hears that another attempt is of no use.
	o.Process = func(context.Context, *kgo.Record) error { tries.Add(1); return &client.PublishError{} }
	w.run(o)
	if e := <-stopped; e.Offset != 4 || !errors.As(e, &poison) || poison.Attempts != 1 || tries.Load() != 4 {
		t.Errorf("%v, %d tries", e, tries.Load())
	}
}

// TestR131_SetAside: the record is acknowledged in the quarantine, with why, before the position passes it; the partition goes on.
func TestR131_SetAside(t *testing.T) {
	w := newTestWorld(t, 1)
	w.put(0, 3)
	p := w.newPublisher(&network{}, nil)
	if _, err := p.Publish(t.Context(), "order-7", &kgo.Record{Topic: "orders", Key: []byte("k"), Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	w.put(0, 3)
	keep := client.QuarantineTopic(p, "aside")
	var refusals atomic.Int64
	o := w.options(func(_ context.Context, r *kgo.Record) error {
		if r.Offset == 3 {
			return errors.New("no such customer")
		}
		return nil
	})
	o.OnPoison = client.SetAside
	o.Quarantine = func(ctx context.Context, f client.Failure) error {
		if refusals.Add(1) == 1 {
			return errors.New("the quarantine has a bad moment")
		}
		if at := w.committed(0); at > 3 {
			t.Errorf("committed %d before the record is set aside", at)
		}
		return keep(ctx, f)
	}
	r := w.run(o)
	w.eventually("all is done", func() bool { return w.committed(0) == 7 })
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	aside := w.records("aside")
	if len(aside) != 1 {
		t.Fatal(aside)
	}
	var headers []string
	for _, h := range aside[0].Headers {
		if h.Key != "failure-time" {
			headers = append(headers, h.Key+"="+string(h.Value))
		}
	}
	const want = "failure-group=billing failure-topic=orders failure-partition=0 failure-offset=3 failure-attempts=3 failure-error=after 3 attempts: no such customer failure-record-id=order-7 record-id=billing/orders/0/3"
	if got := strings.Join(headers, " "); got != want || string(aside[0].Key)+string(aside[0].Value) != "kv" {
		t.Errorf("%s\n%v", got, aside[0])
	}
}

// TestR78_UnknownVersionStopsItsPartition, told once; the position stays and other partitions go on.
func TestR78_UnknownVersionStopsItsPartition(t *testing.T) {
	w := newTestWorld(t, 2)
	w.put(0, 5, version("1"))
	w.put(0, 1, version("9"))
	w.put(0, 5, version("1"))
	w.put(1, 5, version("2"))
	var j journal
	var told atomic.Int64
	o := w.options(func(_ context.Context, r *kgo.Record) error { j.add(r); return nil })
	o.KnownSchema = func(v string) bool { return v == "1" || v == "2" }
	o.OnStopped = func(*client.PartitionError) { told.Add(1) }
	r := w.run(o)
	w.eventually("one is stopped and the other done", func() bool { return told.Load() == 1 && w.committed(1) == 5 })
	w.put(1, 5, version("1"))
	w.eventually("the other goes on", func() bool { return w.committed(1) == 10 })
	err := r.stop()
	var schema *client.SchemaError
	var where *client.PartitionError
	if !errors.As(err, &schema) || schema.Version != "9" || !errors.As(err, &where) || where.Offset != 5 || where.Partition != 0 || told.Load() != 1 {
		t.Error(err, told.Load())
	}
	if w.committed(0) != 5 || !slices.Equal(j.of(0), upTo(5)) {
		t.Error(w.committed(0), j.of(0))
	}
}

// TestR79_UnknownVersionSetAside: the other policy.
func TestR79_UnknownVersionSetAside(t *testing.T) {
	w := newTestWorld(t, 1)
	w.put(0, 2)
	w.put(0, 1, version("9"))
	w.put(0, 2)
	var kept []client.Failure
	o := w.options(func(context.Context, *kgo.Record) error { return nil })
	o.KnownSchema, o.OnUnknownSchema = func(v string) bool { return v == "" }, client.SetAside
	o.Quarantine = func(_ context.Context, f client.Failure) error { kept = append(kept, f); return nil }
	r := w.run(o)
	w.eventually("all is done", func() bool { return w.committed(0) == 5 })
	if err := r.stop(); err != nil || len(kept) != 1 || kept[0].Record.Offset != 2 || kept[0].Attempts != 0 || kept[0].ID != "billing/orders/0/2" {
		t.Error(err, kept)
	}
}

// TestR72_OutOfRangeStops at a start, with the range that is left; nothing is skipped and the position stays.
func TestR72_OutOfRangeStops(t *testing.T) {
	w := newTestWorld(t, 2)
	w.put(0, 10)
	w.put(1, 1)
	var before kadm.Offsets
	before.AddOffset("orders", 0, 3, -1)
	if err := w.admin.CommitAllOffsets(t.Context(), "billing", before); err != nil {
		t.Fatal(err)
	}
	var upper kadm.Offsets
	upper.AddOffset("orders", 0, 8, -1)
	if _, err := w.admin.DeleteRecords(t.Context(), upper); err != nil {
		t.Fatal(err)
	}
	var j journal
	stopped := make(chan *client.PartitionError, 1)
	o := w.options(func(_ context.Context, r *kgo.Record) error { j.add(r); return nil })
	o.OnStopped = func(e *client.PartitionError) { stopped <- e }
	r := w.run(o)
	e := <-stopped
	var gone *client.RangeError
	if !errors.As(e, &gone) || *gone != (client.RangeError{Offset: 3, Start: 8, End: 10}) || e.Partition != 0 || e.Offset != 3 || e.Retriable() {
		t.Error(e)
	}
	w.eventually("the other partition goes on", func() bool { return w.committed(1) == 1 })
	if err := r.stop(); !errors.Is(err, e) || w.committed(0) != 3 || len(j.of(0)) != 0 {
		t.Error(err, w.committed(0), j.of(0))
	}
}

// TestKeyConcurrency: records of several keys are worked on at a time and those of one in order; the position waits for the slowest.
func TestKeyConcurrency(t *testing.T) {
	w := newTestWorld(t, 1)
	slow, quick := kgo.Record{Topic: "orders", Key: []byte("slow")}, kgo.Record{Topic: "orders"}
	records := []*kgo.Record{&slow}
	for i := range 200 {
		r := quick
		r.Key = fmt.Appendf(nil, "key-%d", i%20)
		records = append(records, &r)
	}
	if err := w.kafka.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	var done, lane atomic.Int64
	var mu sync.Mutex
	last := map[string]int64{}
	o := w.options(func(_ context.Context, r *kgo.Record) error {
		if r.Offset == 0 {
			<-release
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if last[string(r.Key)] >= r.Offset {
			t.Errorf("key %s: %d after %d", r.Key, r.Offset, last[string(r.Key)])
		}
		last[string(r.Key)] = r.Offset
		done.Add(1)
		return nil
	})
	o.KeyConcurrency = 64
	r := w.run(o)
	w.eventually("others go on beside the slow one", func() bool { n := done.Load(); return n > 100 || n > 0 && lane.Add(1) > 1000 })
	if at := w.committed(0); at > 0 {
		t.Errorf("committed %d past a record that is not done", at)
	}
	close(release)
	w.eventually("all is done", func() bool { return w.committed(0) == 201 })
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func TestNewWorker_Options(t *testing.T) {
	process := func(context.Context, *kgo.Record) error { return nil }
	good := client.WorkerOptions{Brokers: []string{"127.0.0.1:1"}, Group: "g", Topics: []string{"t"}, Process: process}
	for name, change := range map[string]func(*client.WorkerOptions){
		"no brokers":              func(o *client.WorkerOptions) { o.Brokers = nil },
		"no group":                func(o *client.WorkerOptions) { o.Group = "" },
		"no topics":               func(o *client.WorkerOptions) { o.Topics = nil },
		"no function":             func(o *client.WorkerOptions) { o.Process = nil },
		"too many lanes":          func(o *client.WorkerOptions) { o.KeyConcurrency = 5000 },
		"lanes with at most once": func(o *client.WorkerOptions) { o.Delivery, o.KeyConcurrency = client.AtMostOnce, 2 },
		"no quarantine":           func(o *client.WorkerOptions) { o.OnPoison = client.SetAside },
		"a quarantine for nothing": func(o *client.WorkerOptions) {
			o.Quarantine = func(context.Context, client.Failure) error { return nil }
		},
		"a stop after the commitment": func(o *client.WorkerOptions) {
			o.Delivery, o.KnownSchema = client.AtMostOnce, func(string) bool { return true }
		},
	} {
		o := good
		change(&o)
		if _, err := client.NewWorker(o); !errors.Is(err, client.ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := client.NewWorker(good); err != nil {
		t.Error(err)
	}
}
