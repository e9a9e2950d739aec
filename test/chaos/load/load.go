// Package load is what clients of a cluster do while it is harmed, and the notes that they take.
//
// Knows: producers, readers, groups, watchers of ends, DeleteRecords, the coming and going of topics; which answers leave open whether
// something happened. Writes everything into a check.Recorder. Does not know: which fault is on, or what is right.
//
// Who writes: franz-go's idempotent producer, with several requests in flight; an idempotent producer of our own that sends each batch
// again under its sequence, on whatever connection, until it is confirmed; and a writer without sequences that tries once.
//
// Concurrency: a Load runs its clients in goroutines of its own from Start to Stop.
//
// Files: load.go (all of it), kgo.go, sequence.go, once.go (who writes), readers.go, groups.go, watch.go, churn.go, value.go, route.go.
package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"strandline.dev/test/chaos/check"
)

// Topic is a topic that is written to.
type Topic struct {
	Name       string
	Partitions int32
	// Cut says that its beginning is deleted now and then.
	Cut bool
}

// Options of a load.
type Options struct {
	// Brokers are the addresses of the nodes by id, as clients reach them.
	Brokers map[int32]string
	Topics  []Topic
	// Rate is how many records a second each of the three writers sends.
	Rate int
	// Seed makes the choices of the clients; the interleaving is the machine's.
	Seed uint64
	// Churn creates and deletes topics meanwhile.
	Churn bool
}

// Load is a set of clients at work.
type Load struct {
	o      Options
	R      *check.Recorder
	ctx    context.Context
	cancel context.CancelFunc
	routes *routes

	writers, others sync.WaitGroup
	stopWriting     context.CancelFunc
	writing         context.Context

	mu       sync.Mutex
	next     uint64
	session  int
	acked    map[check.Key]time.Time
	ends     map[check.Key]int64
	problems []string
	counts   map[string]int
	topics   map[string]bool // churn: what must exist and what must not
}

// Start begins to work on topics that exist.
func Start(o Options) *Load {
	l := &Load{o: o, R: check.NewRecorder(), acked: map[check.Key]time.Time{}, ends: map[check.Key]int64{}, counts: map[string]int{}, topics: map[string]bool{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.writing, l.stopWriting = context.WithCancel(l.ctx)
	l.routes = newRoutes(o.Brokers)
	l.writers.Go(l.kgoWriter)
	for _, t := range o.Topics {
		for p := range t.Partitions {
			k := check.Key{Topic: t.Name, Partition: p}
			l.writers.Go(func() { l.sequenced(k) })
			l.writers.Go(func() { l.once(k) })
		}
		l.others.Go(func() { l.reader(t) })
		l.others.Go(func() { l.register(t) })
		if t.Cut {
			l.others.Go(func() { l.cuts(t) })
		}
	}
	for i := range 2 {
		l.others.Go(func() { l.watcher(i + 1) })
		l.others.Go(func() { l.member(i + 1) })
	}
	if o.Churn {
		l.others.Go(l.churn)
	}
	return l
}

// StopWriting lets what has been sent be confirmed, at most until ctx ends, and then stops the writers.
func (l *Load) StopWriting(ctx context.Context) error {
	l.stopWriting()
	done := make(chan struct{})
	go func() { l.writers.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		l.cancel()
		<-done
		return fmt.Errorf("writers still waited for answers: %w", ctx.Err())
	}
}

// Stop ends everything.
func (l *Load) Stop() {
	l.cancel()
	l.writers.Wait()
	l.others.Wait()
}

// Problems are what clients met that no history shows: errors that no client should see.
func (l *Load) Problems() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.problems...)
}

// Counts say how often what was done.
func (l *Load) Counts() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]int{}
	for k, n := range l.counts {
		out[k] = n
	}
	return out
}

// Silent lists the partitions on which no record has been confirmed since a time.
func (l *Load) Silent(since time.Time) (out []check.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.o.Topics {
		for p := range t.Partitions {
			if k := (check.Key{Topic: t.Name, Partition: p}); l.acked[k].Before(since) {
				out = append(out, k)
			}
		}
	}
	return out
}

// Behind lists what the group has not read yet of what has been confirmed.
func (l *Load) Behind() (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.o.Topics {
		for p := range t.Partitions {
			k := check.Key{Topic: t.Name, Partition: p}
			if read, acked := l.ends[groupKey(k)], l.ends[k]; read < acked {
				out = append(out, fmt.Sprintf("%s/%d: the group has read up to %d of %d", t.Name, p, read, acked))
			}
		}
	}
	return out
}

// groupKey is where the end of what a group has read is kept.
func groupKey(k check.Key) check.Key {
	return check.Key{Topic: k.Topic + " group", Partition: k.Partition}
}

// reached notes that a key has reached an end (exclusive).
func (l *Load) reached(k check.Key, end int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends[k] = max(l.ends[k], end)
}

// confirmed notes a confirmed send.
func (l *Load) confirmed(at int, k check.Key, offset int64) {
	l.R.Done(at, check.OK, offset)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[k] = time.Now()
	l.ends[k] = max(l.ends[k], offset+1)
	l.counts["confirmed"]++
}

func (l *Load) count(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[what]++
}

// problem notes what no client should meet; the first hundred are kept.
func (l *Load) problem(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts["problems"]++; len(l.problems) < 100 {
		l.problems = append(l.problems, fmt.Sprintf("%v ", l.R.Now())+fmt.Sprintf(format, args...))
	}
}

// value is a new unique value.
func (l *Load) value() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	return l.next
}

func (l *Load) newSession() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session++
	return l.session
}

func (l *Load) random(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(l.o.Seed, stream)) }

// pause waits, unless ctx ends first; false says that it has.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *Load) seeds() (out []string) {
	for _, a := range l.o.Brokers {
		out = append(out, a)
	}
	return out
}

func (l *Load) partitions() (n int) {
	for _, t := range l.o.Topics {
		n += int(t.Partitions)
	}
	return n
}
