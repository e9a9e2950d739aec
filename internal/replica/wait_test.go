package replica

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

func mixedTimes(ts ...int64) record.Batch {
	b := record.NewBuilder(0)
	for _, at := range ts {
		b.Add(at, nil, []byte("v"), nil)
	}
	return b.Build()
}

// TestPark_WakesWhenEnoughIsVisible.
func TestPark_WakesWhenEnoughIsVisible(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 2)
	other := kafka.TopicPartition{Topic: tp.Topic, Partition: 1}
	items := []FetchItem{at(tp, 0), at(other, 0)}
	one := w.host.Park(items, FetchOptions{}, 1)
	many := w.host.Park(items, FetchOptions{}, 3*len(batch(5)))
	w.acked(tp, batch(5))
	waitFor(t, one.Ready())
	w.acked(tp, batch(5))
	if isReady(many.Ready()) {
		t.Fatal("woken by less than min bytes")
	}
	w.acked(other, batch(5)) // counted over both partitions
	waitFor(t, many.Ready())
	late := w.host.Park([]FetchItem{at(tp, 0)}, FetchOptions{}, 1)
	if !isReady(late.Ready()) {
		t.Fatal("parked although there is something to read")
	}
	for _, f := range []*FetchWait{one, many, late} {
		f.Cancel()
		f.Cancel()
	}
	for _, p := range []kafka.TopicPartition{tp, other} {
		if n := w.host.partition(p).mu.waits.length; n != 0 {
			t.Fatalf("%d waits are left on %v", n, p)
		}
	}
}

// TestPark_AnswersAtOnceWhatIsNotWorthWaitingFor.
func TestPark_AnswersAtOnceWhatIsNotWorthWaitingFor(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 1)
	w.acked(tp, batch(5))
	fenced := at(tp, 5)
	fenced.CurrentEpoch = 7
	for name, it := range map[string]FetchItem{
		"unknown partition": at(kafka.TopicPartition{Topic: tp.Topic, Partition: 9}, 0), "above end": at(tp, 6), "below start": at(tp, -1),
		"other epoch": fenced,
	} {
		f := w.host.Park([]FetchItem{at(tp, 5), it}, FetchOptions{}, 1)
		if !isReady(f.Ready()) {
			t.Errorf("%s: parked", name)
		}
		f.Cancel()
	}
	if n := w.host.partition(tp).mu.waits.length; n != 0 {
		t.Fatalf("%d waits are left", n)
	}
}

// TestWaitList_KeepsOrder: random inserts and removals.
func TestWaitList_KeepsOrder(t *testing.T) {
	var l waitList
	r := rand.New(rand.NewPCG(1, 1))
	var in []*wait
	for range 2000 {
		if len(in) > 0 && r.IntN(3) == 0 {
			i := r.IntN(len(in))
			l.remove(in[i])
			in = append(in[:i], in[i+1:]...)
		} else {
			w := &wait{at: kafka.Offset(r.IntN(50))}
			if r.IntN(2) == 0 {
				w.fetch = &FetchWait{}
			}
			l.insert(w)
			in = append(in, w)
		}
		n, last := 0, kafka.Offset(-1)
		for w := l.front; w != nil; w = w.next {
			if w.at < last || !w.listed || (w.next != nil && w.next.prev != w) {
				t.Fatal("the list is out of order")
			}
			n, last = n+1, w.at
		}
		if n != len(in) || n != l.length || (n > 0 && l.back.next != nil) {
			t.Fatalf("%d waits, %d in the list, length %d", len(in), n, l.length)
		}
	}
}

// TestI3_ConcurrentUse: producers, fetchers, changes of epoch and a deletion at once. Every acknowledged record is below the
// watermark and readable, offsets are dense, and nothing stays parked.
func TestI3_ConcurrentUse(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 2)
	tps := []kafka.TopicPartition{tp, {Topic: tp.Topic, Partition: 1}}
	doomed := w.topic("doomed", 1)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var acked, fetched atomic.Int64
	highest := make([]atomic.Int64, len(tps))
	for n := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 2))
			for !isReady(stop) {
				i := r.IntN(len(tps))
				p := w.host.Append([]AppendItem{{TP: tps[i], Batch: batch(1 + r.IntN(3))}, {TP: doomed, Batch: batch(1)}}, AcksAll, time.Minute)
				if r.IntN(20) == 0 {
					p.Expire()
				}
				<-p.Ready()
				switch res := p.Results()[0]; {
				case res.Err == nil:
					acked.Add(1)
					for old := highest[i].Load(); int64(res.Base) > old && !highest[i].CompareAndSwap(old, int64(res.Base)); old = highest[i].Load() {
					}
				case !errors.Is(res.Err, ErrNotLeader) && !errors.Is(res.Err, ErrTimedOut):
					t.Errorf("publish: %v", res.Err)
				}
			}
		})
	}
	for n := range 4 {
		wg.Go(func() { fetched.Add(w.follow(t, tps[n%len(tps)], stop)) })
	}
	for n := range 40 {
		w.change(tps[n%2], func(s *kafka.PartitionState) { s.LeaderEpoch++ })
		if n == 20 {
			w.apply(deleted(doomed))
		}
		for old := acked.Load(); acked.Load() < old+20; {
			w.acked(tps[0], batch(1)) // progress between two epochs, without a sleep
		}
	}
	close(stop)
	wg.Wait()
	if acked.Load() == 0 || fetched.Load() == 0 {
		t.Fatalf("%d publishes acknowledged, %d batches read", acked.Load(), fetched.Load())
	}
	for i, tp := range tps {
		if s := w.status(tp); s.HW <= kafka.Offset(highest[i].Load()) {
			t.Errorf("%v: acknowledged up to %d, watermark %d", tp, highest[i].Load(), s.HW)
		}
		if n := w.host.partition(tp).mu.waits.length; n != 0 {
			t.Errorf("%v: %d waits are left", tp, n)
		}
	}
}

// TestUnlock_NoStoredEndIsLost: a stored end that arrives while somebody holds the partition, at whatever moment, is taken in
// by one of the two, or the publish that waits for it would hang.
func TestUnlock_NoStoredEndIsLost(t *testing.T) {
	const rounds = 100_000
	p := newPartition(kafka.TopicPartition{}, &surroundings{})
	var started, finished [2]atomic.Int64
	meet := func(counters *[2]atomic.Int64, who int, round int64) { // both sides leave at about the same time
		counters[who].Store(round)
		for counters[1-who].Load() < round {
			runtime.Gosched()
		}
	}
	go func() {
		for round := int64(1); round <= rounds; round++ {
			meet(&started, 1, round)
			p.onStored(0, nil)
			meet(&finished, 1, round)
		}
	}()
	for round := int64(1); round <= rounds; round++ {
		meet(&started, 0, round)
		p.mu.Lock()
		p.unlock()
		for finished[1].Load() < round {
			runtime.Gosched()
		}
		if p.news.Load() {
			t.Fatalf("round %d: nobody took the news in", round)
		}
		finished[0].Store(round)
	}
}

// follow reads a partition as a consumer does, until stop, and checks that offsets are dense. It returns how many batches.
func (w *world) follow(t *testing.T, tp kafka.TopicPartition, stop <-chan struct{}) (batches int64) {
	var buf FetchBuffer
	defer buf.Release()
	next := kafka.Offset(0)
	for !isReady(stop) {
		items := []FetchItem{at(tp, next)}
		r := w.host.Read(items, FetchOptions{MaxBytes: 1 << 20}, &buf)[0]
		if r.Err != nil && !errors.Is(r.Err, ErrNotLeader) && !errors.Is(r.Err, ErrOffsetNotAvailable) {
			t.Errorf("fetch at %d: %v", next, r.Err)
			return batches
		}
		for rest := r.Records; len(rest) > 0; {
			b, tail, err := record.Split(rest)
			if err != nil || b.BaseOffset() != next || b.NextOffset() > r.HighWatermark {
				t.Errorf("at %d: batch [%d, %d) under watermark %d, %v", next, b.BaseOffset(), b.NextOffset(), r.HighWatermark, err)
				return batches
			}
			next, rest = b.NextOffset(), tail
			batches++
		}
		if len(r.Records) > 0 {
			continue
		}
		f := w.host.Park(items, FetchOptions{}, 1)
		select {
		case <-f.Ready():
		case <-stop:
		}
		f.Cancel()
	}
	return batches
}
