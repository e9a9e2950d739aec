package replica

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/record"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// cluster is some nodes with their hosts over a network and disks in memory. The metadata is ideal: events are decided at once, and every
// node that lives hears of it.
type cluster struct {
	t   testing.TB
	net *systest.Net
	// real, if set, is a directory: the nodes are on the machine's own disk and network.
	real  string
	nodes map[kafka.NodeID]*clusterNode

	mu      sync.Mutex
	img     *metadata.Image
	changed chan struct{}
	events  []metadata.Event
	// deaf nodes hear nothing of the metadata, mute ones cannot submit.
	deaf, mute map[kafka.NodeID]bool
	// intercept, if set, sees each event of a node before it is decided; an error is the answer.
	intercept func(metadata.Event) error
}

// clusterNode is one node: what stays of it, and its process.
type clusterNode struct {
	c       *cluster
	id      kafka.NodeID
	fs      *systest.FS
	log     *clusterLog
	metrics *metrics.Registry
	// files bounds its open segment files; 0 is the default.
	files int64
	// reserve is the size of the reserve for a full disk; 0 keeps none.
	reserve int64
	// limit is the disk limit in bytes; 0 is none.
	limit int64
	*clusterProcess
}

type clusterProcess struct {
	dir     *storage.Dir
	host    *Host
	peers   *peer.Peers
	epoch   kafka.BrokerEpoch
	cancel  context.CancelFunc
	running sync.WaitGroup
	found   Recovered
}

// clusterLog keeps what was logged.
type clusterLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *clusterLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *clusterLog) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

// inClusterBubble runs f with nodes 1 to n up.
func inClusterBubble(t *testing.T, n int, f func(t *testing.T, c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		for id := range kafka.NodeID(n) {
			id++
			c.nodes[id] = &clusterNode{c: c, id: id, fs: systest.NewFS(uint64(id)), log: &clusterLog{}}
			c.nodes[id].start()
		}
		defer func() {
			for _, node := range c.nodes {
				node.stop()
				if t.Failed() && testing.Verbose() {
					t.Logf("log of node %v:\n%s", node.id, node.log.text.String())
				}
			}
		}()
		f(t, c)
	})
}

func newCluster(t testing.TB) *cluster {
	return &cluster{
		t: t, net: systest.NewNet(), nodes: map[kafka.NodeID]*clusterNode{}, img: metadata.Empty(), changed: make(chan struct{}),
		deaf: map[kafka.NodeID]bool{}, mute: map[kafka.NodeID]bool{},
	}
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// decide is the controller.
func (c *cluster) decide(ev metadata.Event) (any, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.img.Version() + 1
	if r, ok := ev.(metadata.RegisterBroker); ok {
		r.NextVersion = next
		ev = r
	}
	c.events = append(c.events, ev)
	d := c.img.Decide(ev)
	if len(d.Records) > 0 {
		c.applyLocked(d.Records)
	}
	return d.Reply, c.img.Version()
}

func (c *cluster) applyLocked(rs []metadata.Record) {
	img, err := c.img.Apply(c.img.Version()+1, rs)
	if err != nil {
		panic(err)
	}
	c.img = img
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *cluster) view() (*metadata.Image, chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.img, c.changed
}

// state is what the metadata says about a partition.
func (c *cluster) state(tp kafka.TopicPartition) kafka.PartitionState {
	img, _ := c.view()
	return img.TopicByID(tp.Topic).Partitions[tp.Partition]
}

// change makes the metadata say something else about a partition, as no decision would.
func (c *cluster) change(tp kafka.TopicPartition, f func(*kafka.PartitionState)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.img.TopicByID(tp.Topic).Partitions[tp.Partition]
	s.PartitionEpoch++
	f(&s)
	c.applyLocked([]metadata.Record{metadata.PartitionRecord{Topic: tp.Topic, Partition: tp.Partition, State: s}})
}

// lead makes a node the leader in a new epoch.
func (c *cluster) lead(tp kafka.TopicPartition, leader kafka.NodeID) {
	c.change(tp, func(s *kafka.PartitionState) { s.Leader, s.LeaderEpoch = leader, s.LeaderEpoch+1 })
}

// fence is what the controller does when it hears nothing of a node.
func (c *cluster) fence(id kafka.NodeID) {
	img, _ := c.view()
	c.decide(metadata.FenceBroker{Now: time.Now(), Node: id, Epoch: img.Broker(id).Epoch})
}

// submit is how a node reaches the controller.
func (n *clusterNode) submit(ctx context.Context, ev metadata.Event) (any, uint64, error) {
	c := n.c
	select {
	case <-time.After(time.Millisecond): // the way there and back
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	c.mu.Lock()
	mute, intercept := c.mute[n.id], c.intercept
	c.mu.Unlock()
	if mute {
		<-ctx.Done()
		return nil, 0, ctx.Err()
	}
	if intercept != nil {
		if err := intercept(ev); err != nil {
			return nil, 0, err
		}
	}
	reply, version := c.decide(ev)
	return reply, version, nil
}

// start begins a process on the node's disk, as package node does.
func (n *clusterNode) start() {
	c, t := n.c, n.c.t
	t.Helper()
	m, path, address := n.machine()
	n.metrics = metrics.New()
	p := &clusterProcess{}
	n.clusterProcess = p
	level := slog.LevelDebug
	if c.real != "" {
		level = slog.LevelWarn
	}
	log := slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: level}))
	var err error
	p.dir, err = storage.OpenDir(storage.DirOptions{Machine: m, Path: path, Log: log, Metrics: n.metrics.Storage, OpenFilesMax: n.files, ReserveBytes: n.reserve, LimitBytes: n.limit})
	c.must(err)
	p.peers = peer.New(peer.Config{
		Net: m.Net, Log: log, Metrics: n.metrics.Peer,
		Self: func() peer.Identity {
			return peer.Identity{Cluster: "c", Node: n.id, Directory: p.dir.Identity().DirectoryID, Start: p.dir.StartNumber()}
		},
		Resolve: c.resolve,
	})
	p.host, err = NewHost(Config{
		Dir: p.dir, Node: n.id, Machine: m, Log: log, Metrics: n.metrics.Broker, TopicConfig: clusterTopicConfig,
		Purged: func([]kafka.TopicPartition) {}, Peers: p.peers, Submit: n.submit,
	})
	c.must(err)
	p.found, err = p.host.Recover(t.Context())
	c.must(err)
	l, err := m.Net.Listen(address)
	c.must(err)
	address = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.running.Go(func() { _ = p.peers.Serve(ctx, l) })
	reply, version := c.decide(metadata.RegisterBroker{
		Now: time.Now(), Node: n.id, Directory: p.dir.Identity().DirectoryID, StartNumber: p.dir.StartNumber(), BootID: p.dir.BootID(),
		Roles: []string{"broker"}, ClusterAddress: address, Unclean: p.found.Unclean, Damaged: p.found.Damaged, HolderSilent: time.Hour,
	})
	r := reply.(metadata.Registered)
	if !r.OK() {
		t.Fatalf("node %v: %s", n.id, r.Message)
	}
	p.epoch = r.Epoch
	p.host.SetBrokerEpoch(r.Epoch)
	c.must(p.dir.CommitBootID())
	p.running.Go(func() { n.reconcile(ctx, p) })
	p.running.Go(func() { p.host.Run(ctx) })
	c.must(p.host.WaitApplied(ctx, version))
	_, version = c.decide(metadata.BrokerReady{Now: time.Now(), Node: n.id, Epoch: r.Epoch})
	c.must(p.host.WaitApplied(ctx, version))
}

func (n *clusterNode) machine() (m sys.Machine, path, address string) {
	if n.c.real != "" {
		return sys.Real(), filepath.Join(n.c.real, n.id.String()), "127.0.0.1:0"
	}
	host := hostName(n.id)
	return systest.Machine(n.fs, n.c.net.Host(host), nil), "/data", host + ":9000"
}

// resolve is the address that a node has registered.
func (c *cluster) resolve(to kafka.NodeID) (string, bool) {
	img, _ := c.view()
	b := img.Broker(to)
	if b == nil {
		return "", false
	}
	return b.ClusterAddress, true
}

func (n *clusterNode) reconcile(ctx context.Context, p *clusterProcess) {
	for {
		img, changed := n.c.view()
		n.c.mu.Lock()
		deaf := n.c.deaf[n.id]
		n.c.mu.Unlock()
		var again <-chan time.Time
		if deaf {
			again = time.After(10 * time.Millisecond)
		} else if err := p.host.Reconcile(img); err != nil {
			again = time.After(10 * time.Millisecond)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-again:
		}
	}
}

// stop ends the process in no order that matters to others.
func (n *clusterNode) stop() {
	p := n.clusterProcess
	if p == nil {
		return
	}
	n.clusterProcess = nil
	if n.c.real == "" {
		n.c.net.Kill(hostName(n.id))
	}
	p.cancel()
	p.peers.Close()
	p.running.Wait()
	_ = p.host.Close(false)
	_ = p.dir.Close(storage.CloseOptions{})
}

// kill ends the process as kill -9 or a power cut does. The controller finds out by itself only in fence.
func (n *clusterNode) kill(mode systest.CrashMode) {
	fs := n.fs.Crash(mode)
	n.stop()
	n.fs = fs
}

func clusterTopicConfig(t *metadata.Topic) config.Topic {
	c := baseConfig()
	if t.Configs["strandline.flush"] == "replicated" {
		c.Flush = config.FlushReplicated
	}
	c.SegmentBytes = 1 << 16
	if n, err := strconv.ParseInt(t.Configs["strandline.dedup.window.ms"], 10, 64); err == nil {
		c.DedupWindow, c.DedupHeader = time.Duration(n)*time.Millisecond, idHeader
	}
	if n, err := strconv.ParseInt(t.Configs["segment.bytes"], 10, 64); err == nil {
		c.SegmentBytes = n
	}
	if t.Configs["cleanup.policy"] == "compact" {
		compact := compacting()
		compact.SegmentBytes = c.SegmentBytes
		return compact
	}
	return c
}

// topic creates a topic of one partition on nodes 1, 2, 3 (or those given), with min.insync.replicas 2 and other configs as "key=value".
func (c *cluster) topic(name string, partitions int, configs ...string) kafka.TopicPartition {
	c.t.Helper()
	var replicas []kafka.NodeID
	for id := range c.nodes {
		replicas = append(replicas, id)
	}
	slices.Sort(replicas)
	values := map[string]*string{}
	for _, kv := range append([]string{"min.insync.replicas=2"}, configs...) {
		k, v, _ := strings.Cut(kv, "=")
		values[k] = &v
	}
	id := kafka.TopicID{0: 0xaa, 14: byte(len(name)), 15: name[0]}
	nt := metadata.NewTopic{ID: id, Name: name, Partitions: -1, ReplicationFactor: -1, Configs: values}
	for p := range partitions {
		nt.Assignments = append(nt.Assignments, metadata.Assignment{Partition: int32(p), Replicas: replicas})
	}
	reply, version := c.decide(metadata.CreateTopics{Now: time.Now(), Topics: []metadata.NewTopic{nt}})
	if r := reply.([]metadata.TopicResult)[0]; !r.OK() {
		c.t.Fatal(r.Message)
	}
	tp := kafka.TopicPartition{Topic: id}
	for _, n := range c.nodes {
		if n.clusterProcess != nil {
			c.must(n.host.WaitApplied(c.t.Context(), version))
		}
	}
	for p := range partitions {
		tp.Partition = int32(p)
		c.change(tp, func(s *kafka.PartitionState) { s.Leader, s.LeaderEpoch = 1, s.LeaderEpoch+1 }) // known to the tests
	}
	tp.Partition = 0
	c.eventually("the leader leads", func() bool {
		s, ok := c.nodes[1].host.Describe(tp)
		return ok && s.Role == Leading && s.Epoch == c.state(tp).LeaderEpoch
	})
	return tp
}

// eventually waits for something that must come about. Time in a bubble is free; the limit only ends a test that hangs.
func (c *cluster) eventually(what string, ok func() bool) {
	c.t.Helper()
	if !pollInBubble(60*time.Second, ok) {
		c.t.Fatalf("not within a minute: %s", what)
	}
}

func pollInBubble(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); ; {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
}

// publish appends a batch at the leader the metadata names, without waiting.
func (c *cluster) publish(tp kafka.TopicPartition, b record.Batch, acks int16) *Produce {
	n := c.nodes[c.state(tp).Leader]
	return n.host.Append([]AppendItem{{TP: tp, Batch: b}}, acks, time.Minute)
}

// outcome waits for a publish.
func (c *cluster) outcome(p *Produce) AppendResult {
	select {
	case <-p.Ready():
	case <-time.After(time.Until(p.Deadline())):
		p.Expire()
	}
	return p.Results()[0]
}

// acked publishes with acks=all until that succeeds, as a client does, and returns the base offset.
func (c *cluster) acked(tp kafka.TopicPartition, b func() record.Batch) kafka.Offset {
	c.t.Helper()
	var r AppendResult
	c.eventually("a publish succeeds", func() bool {
		if n := c.nodes[c.state(tp).Leader]; n == nil || n.clusterProcess == nil {
			return false
		}
		r = c.outcome(c.publish(tp, b(), AcksAll))
		return r.Err == nil
	})
	return r.Base
}

func oneBatch() record.Batch { return batch(1) }

// end is a node's view of a partition.
func (c *cluster) status(id kafka.NodeID, tp kafka.TopicPartition) PartitionStatus {
	c.t.Helper()
	s, ok := c.nodes[id].host.Describe(tp)
	if !ok {
		c.t.Fatalf("node %v does not hold %v", id, tp)
	}
	return s
}

// content is everything in a replica's log from an offset on, whoever may see it.
func (c *cluster) content(id kafka.NodeID, tp kafka.TopicPartition, from kafka.Offset) []byte {
	c.t.Helper()
	p := c.nodes[id].host.partition(tp)
	p.mu.Lock()
	l := p.mu.log
	p.unlock()
	var out []byte
	for at := max(from, l.Start()); at < l.End(); {
		b, err := l.Read(at, l.End(), storage.ReadLimits{MaxBytes: 1 << 20, AtLeastOne: true}, nil)
		c.must(err)
		out = append(out, b...)
		at = lastOf(b)
	}
	return out
}

// alike waits until all nodes hold the same records, all of them committed and all in sync.
func (c *cluster) alike(tp kafka.TopicPartition) {
	c.t.Helper()
	live := func() (ids []kafka.NodeID) {
		for id, n := range c.nodes {
			if n.clusterProcess != nil {
				ids = append(ids, id)
			}
		}
		return ids
	}()
	c.eventually("all replicas have the same records and are in sync", func() bool {
		leader := c.state(tp).Leader
		if n := c.nodes[leader]; n == nil || n.clusterProcess == nil || len(c.state(tp).ISR) < len(live) {
			return false
		}
		want := c.status(leader, tp)
		for _, id := range live {
			if s := c.status(id, tp); s.Start != want.Start || s.End != want.End || s.HW != want.End {
				return false
			}
		}
		return true
	})
	want := c.content(c.state(tp).Leader, tp, 0)
	for _, id := range live {
		if got := c.content(id, tp, 0); !bytes.Equal(got, want) {
			c.t.Fatalf("node %v has %d bytes, the leader %d, and they differ", id, len(got), len(want))
		}
	}
}

// submitted counts the events of a kind.
func submitted[E metadata.Event](c *cluster) (events []E) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ev := range c.events {
		if e, ok := ev.(E); ok {
			events = append(events, e)
		}
	}
	return events
}

var errNoController = errors.New("the controller is away")

// waitInBubble lets time pass.
func waitInBubble(d time.Duration) { time.Sleep(d) }
