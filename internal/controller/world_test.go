package controller

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/quorum"
	"strandline.dev/internal/sys/systest"
)

// idealLog is a quorum of several nodes without Raft: the test says who leads and what is committed. Each node has a view of it.
type idealLog struct {
	mu    sync.Mutex
	image *metadata.Image
	term  uint64
	views map[kafka.NodeID]*view
}

// view is a node's quorum.
type view struct {
	log        *idealLog
	node       kafka.NodeID
	observer   bool // never knows who leads
	cut        bool // learns nothing, and what it proposes is never committed
	holding    bool // what it proposes is not committed yet
	image      *metadata.Image
	leadership quorum.Leadership
	entries    [][]metadata.Record

	changed, led, stopped chan struct{}
}

func newIdealLog(t *testing.T, voters ...kafka.NodeID) *idealLog {
	t.Helper()
	cluster := metadata.ClusterRecord{ClusterID: "test"}
	for _, n := range voters {
		cluster.Voters = append(cluster.Voters, metadata.Voter{RaftID: uint64(n), Node: n, Directory: directoryOf(n), Address: addressOf(n)})
	}
	image, err := metadata.Empty().Apply(0, []metadata.Record{cluster})
	if err != nil {
		t.Fatal(err)
	}
	return &idealLog{image: image, views: map[kafka.NodeID]*view{}}
}

// join makes the view of a node that starts.
func (w *idealLog) join(node kafka.NodeID) *view {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := &view{
		log: w, node: node, observer: true, image: w.image, leadership: quorum.Leadership{Leader: kafka.NoNode},
		changed: make(chan struct{}), led: make(chan struct{}), stopped: make(chan struct{}),
	}
	for _, voter := range w.image.Voters() {
		if voter.Node == node {
			v.observer = false
		}
	}
	if old := w.views[node]; old == nil || old.leadership.Leading {
		w.views[node] = v
		return v
	}
	for _, other := range w.views {
		if !v.observer && !other.cut && other.leadership.Leading {
			v.leadership = quorum.Leadership{Term: w.term, Leader: other.node}
		}
	}
	w.views[node] = v
	return v
}

// lead makes a node the leader of the next term; what the last one had not committed is gone. NoNode: nobody leads.
func (w *idealLog) lead(node kafka.NodeID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.term++
	start := w.image.Version() + 1
	for _, v := range w.views {
		if v.cut || v.observer {
			continue
		}
		v.entries = nil
		v.leadership = quorum.Leadership{Term: w.term, Leader: node, Leading: v.node == node, TermStart: start}
		close(v.led)
		v.led = make(chan struct{})
	}
	if node != kafka.NoNode {
		w.commit(nil)
	}
}

// commit applies an entry everywhere. The lock is held.
func (w *idealLog) commit(rs []metadata.Record) {
	image, err := w.image.Apply(w.image.Version()+1, rs)
	if err != nil {
		panic(err)
	}
	w.image = image
	for _, v := range w.views {
		v.see(image)
	}
}

// changeVoters is an entry of the quorum itself: appended at once, committed with the next call of commitOwn.
func (w *idealLog) changeVoters(leader kafka.NodeID, voters []metadata.Voter) (commitOwn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.views[leader]
	record := metadata.ClusterRecord{ClusterID: w.image.ClusterID(), Voters: voters}
	v.entries = append(v.entries, []metadata.Record{record})
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		v.entries = nil
		w.commit([]metadata.Record{record})
	}
}

func (v *view) see(image *metadata.Image) {
	if v.cut {
		return
	}
	v.image = image
	close(v.changed)
	v.changed = make(chan struct{})
}

// set changes a view: whether it is cut off, and whether its proposals are held.
func (v *view) set(cut, holding bool) {
	v.log.mu.Lock()
	defer v.log.mu.Unlock()
	v.cut, v.holding = cut, holding
	if !cut {
		v.see(v.log.image)
	}
}

func (v *view) Image() *metadata.Image   { v.log.mu.Lock(); defer v.log.mu.Unlock(); return v.image }
func (v *view) Changed() <-chan struct{} { v.log.mu.Lock(); defer v.log.mu.Unlock(); return v.changed }
func (v *view) Leadership() quorum.Leadership {
	v.log.mu.Lock()
	defer v.log.mu.Unlock()
	return v.leadership
}
func (v *view) LeadershipChanged() <-chan struct{} {
	v.log.mu.Lock()
	defer v.log.mu.Unlock()
	return v.led
}
func (v *view) Stopped() <-chan struct{} { return v.stopped }

func (v *view) LogEnd() uint64 {
	v.log.mu.Lock()
	defer v.log.mu.Unlock()
	return v.image.Version() + 1 + uint64(len(v.entries))
}

func (v *view) Propose(term, index uint64, rs []metadata.Record) error {
	v.log.mu.Lock()
	defer v.log.mu.Unlock()
	switch {
	case !v.leadership.Leading || v.leadership.Term != term:
		return quorum.ErrNotLeader
	case index != v.image.Version()+1+uint64(len(v.entries)):
		return quorum.ErrMoved
	case v.cut || v.holding:
		v.entries = append(v.entries, rs)
		return nil
	}
	v.log.commit(rs)
	return nil
}

func addressOf(n kafka.NodeID) string              { return fmt.Sprintf("n%v:1", n) }
func hostOf(n kafka.NodeID) string                 { return fmt.Sprintf("n%v", n) }
func directoryOf(n kafka.NodeID) kafka.DirectoryID { return kafka.DirectoryID{9, byte(n)} }

// cluster is nodes over an in-memory network and an ideal log.
type cluster struct {
	t      *testing.T
	net    *systest.Net
	log    *idealLog
	nodes  map[kafka.NodeID]*testNode
	starts uint64
	dev    bool
	// ends are what replicas hold of any partition.
	ends map[kafka.NodeID]metadata.ReplicaEnd
}

type testNode struct {
	c          *cluster
	id         kafka.NodeID
	start      uint64
	quorum     *view
	peers      *peer.Peers
	controller *Controller
	link       *Link
	stop       context.CancelFunc
	running    sync.WaitGroup

	mu     sync.Mutex
	epochs []kafka.BrokerEpoch // of its registrations
	unfit  error               // why it may not register
}

// newTestCluster starts three controllers; node 1 leads and every node is registered.
func newTestCluster(t *testing.T, dev bool) *cluster {
	t.Helper()
	c := &cluster{
		t: t, net: systest.NewNet(), log: newIdealLog(t, 1, 2, 3), nodes: map[kafka.NodeID]*testNode{}, dev: dev,
		ends: map[kafka.NodeID]metadata.ReplicaEnd{1: {Node: 1, LastEpoch: 1, End: 5}, 2: {Node: 2, LastEpoch: 0, End: 9}},
	}
	t.Cleanup(c.close)
	for n := range kafka.NodeID(3) {
		c.begin(n + 1)
	}
	c.log.lead(1)
	for n := range kafka.NodeID(3) {
		c.registered(n + 1)
	}
	return c
}

func (c *cluster) close() {
	for _, n := range c.nodes {
		n.kill()
	}
	synctest.Wait()
}

// begin starts the process of a node; registered waits until it is a broker.
func (c *cluster) begin(id kafka.NodeID) *testNode {
	c.t.Helper()
	c.starts++
	n := &testNode{c: c, id: id, start: c.starts, quorum: c.log.join(id)}
	c.nodes[id] = n
	log := slog.New(slog.DiscardHandler)
	n.peers = peer.New(peer.Config{
		Net: c.net.Host(hostOf(id)), Log: log, Metrics: metrics.New().Peer,
		Self: func() peer.Identity {
			return peer.Identity{Cluster: "test", Node: id, Directory: directoryOf(id), Start: n.start, Incarnation: kafka.ID{1, byte(n.start)}}
		},
		Resolve: func(to kafka.NodeID) (string, bool) { return addressOf(to), true },
		Gone:    func(who peer.Identity, class peer.Class) { n.controller.Gone(who, class) },
	})
	n.controller = New(Config{
		Quorum: n.quorum, Wall: systest.NewTickingWall(time.Now()), Log: log, Metrics: metrics.New().Broker,
		Peers: n.peers, Node: id, InternalReplicas: 3,
	})
	n.link = NewLink(LinkConfig{
		Node: id, Quorum: n.quorum, Controller: n.controller, Peers: n.peers, Log: log,
		Registration: func() (metadata.RegisterBroker, error) {
			ev := registration(id)
			ev.Incarnation, ev.StartNumber, ev.ClusterAddress = kafka.ID{1, byte(n.start)}, n.start, addressOf(id)
			return ev, nil
		},
		Registered: n.onRegistered,
		Unfit: func() error {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.unfit
		},
		Ends: n.told,
		Dev:  c.dev,
	})
	listener, err := c.net.Host(hostOf(id)).Listen(addressOf(id))
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	n.running.Go(func() { n.peers.Serve(ctx, listener) })
	n.running.Go(func() { n.controller.Run(ctx) })
	n.running.Go(func() { n.link.Run(ctx) })
	return n
}

func (c *cluster) registered(id kafka.NodeID) *testNode {
	c.t.Helper()
	n := c.nodes[id]
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := n.link.Register(ctx); err != nil {
		c.t.Fatalf("node %v: %v", id, err)
	}
	// It has sent a heartbeat, so there is a connection whose end tells of its own: a node that dies before is found by its session's time-out.
	sleepInBubble(heartbeatEvery + time.Millisecond)
	synctest.Wait()
	return n
}

// sleepInBubble lets bubble time pass.
func sleepInBubble(d time.Duration) { time.Sleep(d) }

func (n *testNode) onRegistered(ctx context.Context, r metadata.Registered, version uint64) error {
	for {
		changed := n.quorum.Changed()
		if n.quorum.Image().Version() >= version {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.epochs = append(n.epochs, r.Epoch)
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (n *testNode) told(tps []kafka.TopicPartition) []metadata.PartitionEnds {
	var out []metadata.PartitionEnds
	for _, tp := range tps {
		if end, ok := n.c.ends[n.id]; ok {
			out = append(out, metadata.PartitionEnds{TP: tp, Ends: []metadata.ReplicaEnd{end, {Node: 99}}}) // it speaks for nobody else
		}
	}
	return out
}

// registrations counts how often the node has registered.
func (n *testNode) registrations() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.epochs)
}

// kill ends the process: its connections are reset, its address refuses.
func (n *testNode) kill() {
	n.c.net.Kill(hostOf(n.id))
	n.stop()
	n.peers.Close()
	n.running.Wait()
}

// cutOff separates a node from all others, in its quorum too.
func (n *testNode) cutOff() {
	for id := range n.c.nodes {
		if id != n.id {
			n.c.net.CutBoth(hostOf(n.id), hostOf(id))
		}
	}
	n.quorum.set(true, false)
}

// heal ends cutOff.
func (n *testNode) heal() {
	n.c.net.HealAll()
	n.quorum.set(false, false)
}

func (c *cluster) submit(from kafka.NodeID, within time.Duration, ev metadata.Event) (any, uint64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return c.nodes[from].link.Submit(ctx, ev)
}

func (c *cluster) must(from kafka.NodeID, ev metadata.Event) any {
	c.t.Helper()
	reply, _, err := c.submit(from, 10*time.Second, ev)
	if err != nil {
		c.t.Fatalf("%T from node %v: %v", ev, from, err)
	}
	return reply
}

// untilInBubble waits for something that becomes true with time, at most so long, and returns how long it took.
func (c *cluster) untilInBubble(most time.Duration, what string, is func() bool) time.Duration {
	c.t.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		took := time.Since(begun)
		if is() {
			return took
		}
		if took > most {
			c.t.Fatalf("not within %v: %s", most, what)
		}
	}
}

func (c *cluster) image() *metadata.Image {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	return c.log.image
}

func (c *cluster) isFenced(id kafka.NodeID) bool { return c.image().Broker(id).Fenced }

// leader returns who leads a topic's first partition, and in which epoch.
func (c *cluster) leader(topic string) (kafka.NodeID, kafka.LeaderEpoch) {
	s := c.image().Topic(topic).Partitions[0]
	return s.Leader, s.LeaderEpoch
}

// identity is what a node's connections say.
func (c *cluster) identity(id kafka.NodeID) peer.Identity {
	if n := c.nodes[id]; n != nil {
		return peer.Identity{Cluster: "test", Node: id, Directory: directoryOf(id), Start: n.start}
	}
	return peer.Identity{Cluster: "test", Node: id}
}
