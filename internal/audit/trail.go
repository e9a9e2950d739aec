package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/replica"
	"strandline.dev/internal/sys"
)

// Replicas are this node's partitions. *replica.Host is the implementation; tests have a log that fails when it is told to.
type Replicas interface {
	Append(items []replica.AppendItem, acks int16, timeout time.Duration) *replica.Produce
	Read(items []replica.FetchItem, o replica.FetchOptions, dst *replica.FetchBuffer) []replica.FetchResult
	Describe(tp kafka.TopicPartition) (replica.PartitionStatus, bool)
	WaitApplied(ctx context.Context, version uint64) error
}

// Controller takes the creation of the topic to the active controller.
type Controller interface {
	Submit(ctx context.Context, ev metadata.Event) (reply any, version uint64, err error)
}

// Config is what a Trail is built from. All fields but Peers and Dev are required.
type Config struct {
	Node kafka.NodeID
	// Run names this process.
	Run        kafka.ID
	Image      func() *metadata.Image
	Replicas   Replicas
	Controller Controller
	// Peers is the way to other nodes; nil where there are none.
	Peers *peer.Peers
	// Dev creates the topic with what brokers there are.
	Dev     bool
	Wall    sys.Wall
	Log     *slog.Logger
	Metrics *metrics.Broker
}

// Trail takes what happens on this node and has it kept.
type Trail struct {
	cfg     Config
	keepers [partitions]*keeper
	wake    chan struct{} // holds one

	mu struct { // a leaf
		sync.Mutex
		folding folding
		queue   []*waiting
		number  uint64
		closed  bool
	}
	said time.Time // of Run: when an unavailable trail was last named
}

// waiting is an entry that is not kept yet.
type waiting struct {
	entry *Entry
	kept  chan struct{} // closed when it is
}

// New makes a trail, and takes the entries of other nodes from now on. Run keeps them.
func New(c Config) *Trail {
	t := &Trail{cfg: c, wake: make(chan struct{}, 1)}
	for i := range t.keepers {
		t.keepers[i] = &keeper{trail: t, chain: int32(i), jobs: make(chan job, jobsMax)}
	}
	if c.Peers != nil {
		c.Peers.HandleRequest(peer.KindAudit, func() peer.Message { return &delivery{} }, func(ctx context.Context, from peer.Identity, m peer.Message) (peer.Message, error) {
			return t.delivered(ctx, from.Node, m.(*delivery)), nil
		})
	}
	return t
}

// delivered keeps the entries of another node, which speaks for itself only (I15).
func (t *Trail) delivered(ctx context.Context, from kafka.NodeID, m *delivery) *deliveryAnswer {
	if m.Chain < 0 || m.Chain >= partitions || len(m.Entries) > batchMax {
		return &deliveryAnswer{Text: fmt.Sprintf("no such delivery: chain %d, %d entries", m.Chain, len(m.Entries))}
	}
	for i := range m.Entries {
		if m.Entries[i].Node != from {
			return &deliveryAnswer{Text: fmt.Sprintf("node %v speaks for node %v", from, m.Entries[i].Node)}
		}
	}
	if err := t.keepers[m.Chain].deliver(ctx, m.Entries); err != nil {
		return &deliveryAnswer{Text: err.Error()}
	}
	return &deliveryAnswer{}
}

// Note has a denial or a failed login kept; it does not wait. Equal ones within foldEvery become one entry.
func (t *Trail) Note(ev auth.Event) {
	e := entryOf(ev, t.cfg.Wall.Now())
	t.mu.Lock()
	t.mu.folding.add(e, time.Now())
	t.mu.Unlock()
}

// Begin has a change kept before it is made. An error (ErrUnavailable) means that it must not be made. done says what became of it, "" for done, and
// waits a moment until that is kept too.
func (t *Trail) Begin(ctx context.Context, ev auth.Event) (done func(outcome string), err error) {
	e := entryOf(ev, t.cfg.Wall.Now())
	e.What = Begun
	w, number := t.push(e, queueMax)
	done = func(outcome string) {
		end := *e
		end.What, end.Of, end.Before, end.After, end.Outcome = auth.Change, number, "", "", outcome
		end.At = t.cfg.Wall.Now()
		end.Until = end.At
		end.cut()
		if w, _ := t.push(&end, 2*queueMax); w != nil {
			t.await(ctx, w, finishMax)
		}
	}
	if w == nil || !t.await(ctx, w, beginMax) {
		t.cfg.Metrics.AuditRefused.Inc()
		if w != nil {
			go done(ErrUnavailable.Error()) // its entry may come to be kept yet; ends after finishMax
		}
		return nil, ErrUnavailable
	}
	return done, nil
}

// push queues an entry and gives it its number; nil when limit entries wait.
func (t *Trail) push(e *Entry, limit int) (*waiting, uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.mu.queue) >= limit || t.mu.closed {
		return nil, 0
	}
	w := t.queueLocked(e)
	select {
	case t.wake <- struct{}{}:
	default:
	}
	return w, w.entry.Number
}

func (t *Trail) queueLocked(e *Entry) *waiting {
	t.mu.number++
	numbered := *e
	numbered.Node, numbered.Run, numbered.Number = t.cfg.Node, t.cfg.Run, t.mu.number
	w := &waiting{entry: &numbered, kept: make(chan struct{})}
	t.mu.queue = append(t.mu.queue, w)
	return w
}

func (t *Trail) await(ctx context.Context, w *waiting, most time.Duration) bool {
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-w.kept:
		return true
	case <-late.C:
	case <-ctx.Done():
	}
	return false
}

// take returns the entries that go next, without taking them from the queue.
func (t *Trail) take(all bool) []Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := &t.mu.folding; (all || f.due(time.Now())) && len(t.mu.queue) < queueMax {
		for _, e := range f.take() {
			t.queueLocked(e)
		}
	}
	var out []Entry
	bytes := 0
	for _, w := range t.mu.queue {
		size := 0
		for _, s := range w.entry.texts() {
			size += len(*s)
		}
		if bytes += size; len(out) == batchMax || len(out) > 0 && bytes > batchBytesMax {
			break
		}
		out = append(out, *w.entry)
	}
	return out
}

// kept takes the first n entries from the queue.
func (t *Trail) kept(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.mu.queue[:n] {
		close(w.kept)
	}
	t.mu.queue = append(t.mu.queue[:0:0], t.mu.queue[n:]...)
	t.cfg.Metrics.AuditEntries.Add(float64(n))
}

// Run keeps entries until ctx ends, and then what is left, for a moment.
func (t *Trail) Run(ctx context.Context) {
	keeping, end := context.WithCancel(context.WithoutCancel(ctx))
	var keepers sync.WaitGroup
	for _, k := range t.keepers {
		keepers.Go(func() { k.run(keeping) })
	}
	defer keepers.Wait()
	defer end()
	look := time.NewTicker(foldEvery / 4)
	defer look.Stop()
	for attempt := 0; ctx.Err() == nil; {
		entries := t.take(false)
		err := t.attempt(ctx, entries, attempt)
		switch {
		case err != nil:
			attempt++
			t.unavailable(err)
			pause(ctx, retryEvery)
			continue
		case len(entries) > 0:
			attempt = 0
			continue
		}
		select {
		case <-ctx.Done():
		case <-t.wake:
		case <-look.C:
		}
	}
	t.finish(keeping)
}

// finish keeps what is left when the node stops.
func (t *Trail) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, finishMax)
	defer cancel()
	for range 2 * queueMax {
		entries := t.take(true)
		if len(entries) == 0 {
			break
		}
		if err := t.attempt(ctx, entries, 0); err != nil {
			t.cfg.Log.Error("the node stops, and entries of the audit trail are not kept", "entries", len(entries), "error", err)
			break
		}
	}
	t.mu.Lock()
	t.mu.closed = true
	t.mu.Unlock()
}

// attempt brings entries to the leader of this node's chain, or, when that has failed, of the next one. A process may deliver the same entry to two
// chains so: its numbers tell that it is one.
func (t *Trail) attempt(ctx context.Context, entries []Entry, attempt int) error {
	if err := t.ensure(ctx); err != nil {
		return err
	}
	if len(entries) == 0 {
		return nil
	}
	chain := (int32(t.cfg.Node) + int32(attempt)) % partitions
	_, leader := t.leader(chain)
	ctx, cancel := context.WithTimeout(ctx, commitMax+time.Second)
	defer cancel()
	var err error
	switch {
	case leader == t.cfg.Node:
		err = t.keepers[chain].deliver(ctx, entries)
	case leader == kafka.NoNode || t.cfg.Peers == nil:
		err = fmt.Errorf("chain %d has no leader", chain)
	default:
		var a deliveryAnswer
		if err = t.cfg.Peers.Call(ctx, leader, &delivery{Chain: chain, Entries: entries}, &a); err == nil && a.Text != "" {
			err = errors.New(a.Text)
		}
	}
	if err == nil {
		t.kept(len(entries))
	}
	return err
}

// unavailable counts and, now and then, logs that nothing can be kept.
func (t *Trail) unavailable(err error) {
	t.cfg.Metrics.AuditFailures.Inc()
	if now := time.Now(); now.Sub(t.said) >= sayEvery {
		t.said = now
		t.cfg.Log.Warn("the audit trail cannot keep entries: administration waits, and is refused", "error", err)
	}
}

func pause(ctx context.Context, d time.Duration) {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-ctx.Done():
	case <-late.C:
	}
}
