package controller

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/quorum"
	"strandline.dev/internal/sys/systest"
)

// fakeQuorum is a quorum whose leadership and commits the test decides. It keeps the promises of the real one: entries get
// the index they were proposed for or are refused, and Images are of committed entries.
type fakeQuorum struct {
	mu         sync.Mutex
	image      *metadata.Image
	leadership quorum.Leadership
	entries    [][]metadata.Record // not committed yet
	refuse     error               // what Propose answers
	holding    bool                // commits wait for the test

	changed, led, stopped chan struct{}
}

func newFakeQuorum(t *testing.T) *fakeQuorum {
	t.Helper()
	image, err := metadata.Empty().Apply(0, []metadata.Record{metadata.ClusterRecord{ClusterID: "test"}})
	if err != nil {
		t.Fatal(err)
	}
	return &fakeQuorum{
		image:      image,
		leadership: quorum.Leadership{Leader: kafka.NoNode},
		changed:    make(chan struct{}), led: make(chan struct{}), stopped: make(chan struct{}),
	}
}

func (f *fakeQuorum) Image() *metadata.Image {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.image
}

func (f *fakeQuorum) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

func (f *fakeQuorum) Leadership() quorum.Leadership {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leadership
}

func (f *fakeQuorum) LeadershipChanged() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.led
}

func (f *fakeQuorum) Stopped() <-chan struct{} { return f.stopped }

func (f *fakeQuorum) LogEnd() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end()
}

func (f *fakeQuorum) end() uint64 { return f.image.Version() + 1 + uint64(len(f.entries)) }

func (f *fakeQuorum) Propose(term, index uint64, rs []metadata.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.refuse != nil:
		return f.refuse
	case !f.leadership.Leading || f.leadership.Term != term:
		return quorum.ErrNotLeader
	case index != f.end():
		return quorum.ErrMoved
	case len(metadata.EncodeRecords(nil, rs)) > quorum.EntryBytesMax:
		return quorum.ErrTooLarge
	}
	f.entries = append(f.entries, rs)
	if !f.holding {
		f.commitLocked(len(f.entries))
	}
	return nil
}

// setRefuse makes Propose fail, or work again with nil.
func (f *fakeQuorum) setRefuse(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = err
}

// hold lets entries wait for commit.
func (f *fakeQuorum) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holding = true
}

// commit commits n entries and reports how many there were.
func (f *fakeQuorum) commit(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n = min(n, len(f.entries))
	f.commitLocked(n)
	return n
}

func (f *fakeQuorum) commitLocked(n int) {
	for _, rs := range f.entries[:n] {
		image, err := f.image.Apply(f.image.Version()+1, rs)
		if err != nil {
			panic(err)
		}
		f.image = image
	}
	f.entries = f.entries[n:]
	if n > 0 {
		close(f.changed)
		f.changed = make(chan struct{})
	}
}

// lead makes this node the leader of the next term.
func (f *fakeQuorum) lead() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leadership = quorum.Leadership{Term: f.leadership.Term + 1, Leader: 1, Leading: true, TermStart: f.end()}
	f.entries = append(f.entries, nil)
	f.notify()
	if !f.holding {
		f.commitLocked(len(f.entries))
	}
}

// depose makes another node (or NoNode) the leader; of the uncommitted entries the first `kept` are committed by it, the
// others are replaced by its own.
func (f *fakeQuorum) depose(leader kafka.NodeID, kept int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leadership = quorum.Leadership{Term: f.leadership.Term + 1, Leader: leader}
	f.notify()
	f.entries = append(f.entries[:min(kept, len(f.entries))], nil)
	f.commitLocked(len(f.entries))
}

func (f *fakeQuorum) notify() {
	close(f.led)
	f.led = make(chan struct{})
}

// bench is a controller over a fake quorum in a bubble.
type testController struct {
	*Controller
	t      *testing.T
	quorum *fakeQuorum
	wall   *systest.Wall
	stop   context.CancelFunc
}

func newTestController(t *testing.T) *testController {
	t.Helper()
	q := newFakeQuorum(t)
	wall := systest.NewTickingWall(time.Now())
	c := New(Config{Quorum: q, Wall: wall, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New().Broker})
	ctx, stop := context.WithCancel(t.Context())
	go c.Run(ctx)
	return &testController{Controller: c, t: t, quorum: q, wall: wall, stop: stop}
}

// submitted is a Submit on its way.
type submitted struct {
	t     *testing.T
	done  chan struct{}
	reply any
	index uint64
	err   error
}

// submit begins a Submit; when it returns the event has been decided or waits in the inbox.
func (c *testController) submit(ev metadata.Event) *submitted {
	s := &submitted{t: c.t, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.reply, s.index, s.err = c.Submit(c.t.Context(), ev)
	}()
	return s
}

func (s *submitted) answered() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// must submits and expects an answer.
func (c *testController) must(ev metadata.Event) any {
	c.t.Helper()
	s := c.submit(ev)
	<-s.done
	if s.err != nil {
		c.t.Fatalf("%T: %v", ev, s.err)
	}
	return s.reply
}

// register brings one broker up.
func (c *testController) register(node kafka.NodeID) kafka.BrokerEpoch {
	c.t.Helper()
	r := c.must(registration(node)).(metadata.Registered)
	if !r.OK() {
		c.t.Fatalf("registration: %+v", r)
	}
	if b := c.must(metadata.BrokerReady{Node: node, Epoch: r.Epoch}).(metadata.BrokerChanged); !b.OK() {
		c.t.Fatalf("unfence: %+v", b)
	}
	return r.Epoch
}

func registration(node kafka.NodeID) metadata.RegisterBroker {
	return metadata.RegisterBroker{
		Node: node, Incarnation: kafka.ID{1, byte(node)}, Directory: kafka.DirectoryID{9, byte(node)}, StartNumber: 1, BootID: "boot",
		Listeners: []metadata.Listener{{Name: "CLIENTS", Host: "localhost", Port: 9092}},
	}
}

func create(name string, partitions int32) metadata.CreateTopics {
	return metadata.CreateTopics{Topics: []metadata.NewTopic{{Name: name, Partitions: partitions, ReplicationFactor: 1}}}
}

func codeOf(t *testing.T, reply any) kafka.ErrorCode {
	t.Helper()
	results, ok := reply.([]metadata.TopicResult)
	if !ok || len(results) != 1 {
		t.Fatalf("reply %+v", reply)
	}
	return results[0].Code
}
