package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// process is the network as one process sees it: when it is killed it says nothing more, whatever its goroutines still do.
type process struct {
	sys.Net
	dead atomic.Bool
}

var errDead = errors.New("this process was killed")

func (p *process) Dial(ctx context.Context, address string) (net.Conn, error) {
	if p.dead.Load() {
		return nil, errDead
	}
	return p.Net.Dial(ctx, address)
}

func (p *process) Listen(address string) (net.Listener, error) {
	if p.dead.Load() {
		return nil, errDead
	}
	return p.Net.Listen(address)
}

// member is one node of a cluster in a bubble, across its restarts.
type member struct {
	id      kafka.NodeID
	fs      *systest.FS
	process *process
	node    *Node
	log     *lines
}

func (m *member) host() string { return fmt.Sprintf("n%v", m.id) }

// cluster is a cluster in a bubble. Members are numbered from 1.
type cluster struct {
	t       *testing.T
	net     *systest.Net
	members []*member
	change  func(*config.Node)
}

// clusterBubble runs a test with a formed cluster of that many nodes, all controllers and brokers unless change says otherwise.
func clusterBubble(t *testing.T, count int, change func(*config.Node), test func(t *testing.T, c *cluster)) {
	t.Helper()
	preparedBubble(t, count, change, func(*cluster) {}, func(c *cluster) { test(c.t, c) })
}

// preparedBubble is clusterBubble with something to do before the nodes start.
func preparedBubble(t *testing.T, count int, change func(*config.Node), prepare, test func(*cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, net: systest.NewNet(), change: change}
		for i := range count {
			c.members = append(c.members, &member{id: kafka.NodeID(i + 1), fs: systest.NewFS(uint64(i + 1)), log: &lines{}})
		}
		defer func() {
			for _, m := range c.members {
				if m.node != nil {
					c.kill(m.id)
				}
			}
			if t.Failed() {
				for _, m := range c.members {
					t.Logf("node %v:\n%s", m.id, m.log)
				}
			}
		}()
		prepare(c)
		c.start(c.ids()...)
		test(c)
	})
}

// TestCluster_TheDirectoryOfAnotherClusterServesNobody: a disk that is the only voter of its own cluster, in the place of node 2.
func TestCluster_TheDirectoryOfAnotherClusterServesNobody(t *testing.T) {
	clusterBubble(t, 3, nil, func(t *testing.T, c *cluster) {
		c.kill(2)
		m := c.member(2)
		m.fs = systest.NewFS(99)
		all := c.change
		c.change = func(n *config.Node) { n.Cluster.Controllers = []string{"2@n2:19091"} }
		c.start(2)
		c.kill(2)
		c.change = all
		m.process = &process{Net: c.net.Host(m.host())}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := Start(ctx, Options{Config: c.configOf(m), Machine: systest.Machine(m.fs, m.process, nil), Log: slog.New(slog.NewTextHandler(m.log, nil))}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("it serves: %v", err)
		}
		if !strings.Contains(m.log.String(), "it may have the data directory of another cluster") {
			t.Error("and nobody is told why")
		}
		m.node = nil
	})
}

func (c *cluster) ids() []kafka.NodeID {
	var ids []kafka.NodeID
	for _, m := range c.members {
		ids = append(ids, m.id)
	}
	return ids
}

func (c *cluster) member(id kafka.NodeID) *member { return c.members[id-1] }

func (c *cluster) configOf(m *member) config.Node {
	n := config.Defaults()
	n.Node.ID, n.Data.Dir, n.HTTP.Address = m.id, "/data", config.NoHTTP
	n.Cluster.Address = m.host() + ":19091"
	for _, o := range c.members[:min(3, len(c.members))] {
		n.Cluster.Controllers = append(n.Cluster.Controllers, fmt.Sprintf("%v@%s:19091", o.id, o.host()))
	}
	n.Listeners = []config.Listener{{Name: "plain", Address: m.host() + ":9092", Advertise: config.AdvertiseAuto}}
	n.Kafka.OffsetsTopicPartitions = 1
	if c.change != nil {
		c.change(&n)
	}
	return n
}

// start starts members at once and waits until all accept work.
func (c *cluster) start(ids ...kafka.NodeID) {
	c.t.Helper()
	errs := make(chan error, len(ids))
	for _, id := range ids {
		m := c.member(id)
		m.process = &process{Net: c.net.Host(m.host())}
		go func() {
			var err error
			m.node, err = Start(c.t.Context(), Options{
				Config: c.configOf(m), Machine: systest.Machine(m.fs, m.process, nil), Log: slog.New(slog.NewTextHandler(m.log, nil)),
			})
			errs <- err
		}()
	}
	for range ids {
		if err := <-errs; err != nil {
			c.t.Fatalf("start: %v", err)
		}
	}
}

// kill ends a process as kill -9 does: from one moment on nobody hears of it, and its disk is what it was then.
func (c *cluster) kill(id kafka.NodeID) {
	c.t.Helper()
	m := c.member(id)
	m.process.dead.Store(true)
	c.net.Kill(m.host())
	m.fs = m.fs.Clone(systest.KillProcess)
	_ = m.node.unwind() // what is left of it; its errors are nobody's
	m.node = nil
}

// stop stops a node as SIGTERM does.
func (c *cluster) stop(id kafka.NodeID) {
	c.t.Helper()
	m := c.member(id)
	if err := m.node.Stop(c.t.Context()); err != nil {
		c.t.Fatalf("stop of node %v: %v", id, err)
	}
	m.node = nil
}

// client is a client outside the cluster.
func (c *cluster) client(o ...kgo.Opt) *kgo.Client {
	c.t.Helper()
	var seeds []string
	for _, m := range c.members {
		seeds = append(seeds, m.host()+":9092")
	}
	outside := c.net.Host("client")
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(seeds...), kgo.MetadataMinAge(50 * time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.Dialer(func(ctx context.Context, _, address string) (net.Conn, error) { return outside.Dial(ctx, address) }),
	}, o...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	return cl
}

// create creates a topic of one copy on each of three nodes.
func (c *cluster) create(cl *kgo.Client, topic string, partitions int32) {
	c.t.Helper()
	ct := kmsg.NewCreateTopicsRequestTopic()
	ct.Topic, ct.NumPartitions, ct.ReplicationFactor = topic, partitions, 3
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = 10_000, append(req.Topics, ct)
	resp, err := req.RequestWith(c.t.Context(), cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		c.t.Fatalf("create %s: %v", topic, err)
	}
	c.untilInBubble("every node knows the topic", func() bool {
		return !slices.ContainsFunc(c.members, func(m *member) bool { return m.node != nil && m.node.Image().Topic(topic) == nil })
	})
}

// alive is a node that runs.
func (c *cluster) alive() *Node {
	for _, m := range c.members {
		if m.node != nil {
			return m.node
		}
	}
	return nil
}

// state is what a running node knows of a partition.
func (c *cluster) state(topic string, partition int32) kafka.PartitionState {
	return c.alive().Image().Topic(topic).Partitions[partition]
}

// until waits for a state of the cluster, and that every node that is in contact knows it; what it waits for takes seconds at most.
func (c *cluster) untilInBubble(what string, ok func() bool) {
	c.t.Helper()
	for range 600 {
		if ok() {
			c.spreadInBubble()
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	c.t.Fatalf("not within a minute: %s", what)
}

// spreadInBubble waits until the running nodes that are not fenced have applied what the best informed has; a node that is cut off may take too long.
func (c *cluster) spreadInBubble() {
	var newest *metadata.Image
	for _, m := range c.members {
		if m.node != nil && (newest == nil || m.node.Image().Version() > newest.Version()) {
			newest = m.node.Image()
		}
	}
	behind := func(m *member) bool {
		b := newest.Broker(m.id)
		return m.node != nil && b != nil && !b.Fenced && m.node.Image().Version() < newest.Version()
	}
	for range 100 {
		if !slices.ContainsFunc(c.members, behind) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// whole says that every replica of a topic is in sync.
func (c *cluster) whole(topic string) bool {
	t := c.alive().Image().Topic(topic)
	return !slices.ContainsFunc(t.Partitions, func(s kafka.PartitionState) bool { return len(s.ISR) < len(s.Replicas) || s.Leader == kafka.NoNode })
}

// publisher publishes numbered records to a partition, one every millisecond, until it is ended.
type publisher struct {
	end    chan struct{}
	ended  chan struct{}
	values []string
	failed error
	gap    time.Duration // the longest time between two acknowledgements
}

func (c *cluster) publish(cl *kgo.Client, topic string, partition int32) *publisher {
	p := &publisher{end: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		last := time.Now()
		for i := 0; ; i++ {
			select {
			case <-p.end:
				return
			case <-time.After(time.Millisecond):
			}
			value := fmt.Sprint(i)
			r := &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}
			if err := cl.ProduceSync(c.t.Context(), r).FirstErr(); err != nil {
				p.failed = err
				return
			}
			p.gap = max(p.gap, time.Since(last))
			last = time.Now()
			p.values = append(p.values, value)
		}
	}()
	return p
}

// finish ends publishing and returns what was acknowledged, in order.
func (p *publisher) finish(t *testing.T) []string {
	t.Helper()
	close(p.end)
	<-p.ended
	if p.failed != nil {
		t.Fatalf("publishing failed after %d records: %v", len(p.values), p.failed)
	}
	return p.values
}

// read reads a partition from its start until it has that many records and nothing more comes for a while.
func (c *cluster) read(topic string, partition int32, count int) []string {
	c.t.Helper()
	cl := c.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}))
	defer cl.Close()
	var values []string
	for {
		wait := 2 * time.Second
		if len(values) < count {
			wait = time.Minute
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), wait)
		fetched := cl.PollFetches(ctx)
		cancel()
		fetched.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
		if fetched.NumRecords() == 0 {
			return values
		}
	}
}

// same compares what was acknowledged with what is read: nothing lost, doubled or reordered.
func same(t *testing.T, acked, read []string) {
	t.Helper()
	if !slices.Equal(acked, read) {
		at := 0
		for at < min(len(acked), len(read)) && acked[at] == read[at] {
			at++
		}
		t.Fatalf("%d records acknowledged, %d read; they differ from %d on: %.200q and %.200q", len(acked), len(read), at, acked[at:], read[at:])
	}
}

// TestCluster_FormsAndReplicates: three empty directories become one cluster, and a record is on three disks before it is acknowledged.
func TestCluster_FormsAndReplicates(t *testing.T) {
	clusterBubble(t, 3, nil, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.create(cl, "t", 3)
		for p := range int32(3) {
			pub := c.publish(cl, "t", p)
			time.Sleep(time.Second)
			acked := pub.finish(t)
			if len(acked) < 100 {
				t.Fatalf("%d records in a second", len(acked))
			}
			same(t, acked, c.read("t", p, len(acked)))
		}
		if !c.whole("t") {
			t.Fatalf("not all in sync: %+v", c.state("t", 0))
		}
		cluster := c.alive().Image().ClusterID()
		for _, m := range c.members {
			if got := m.node.Image().ClusterID(); got != cluster || cluster == "" {
				t.Errorf("node %v belongs to %q, node 1 to %q", m.id, got, cluster)
			}
		}
	})
}

// TestCluster_LeaderKilled: publishing goes on when the leader is killed, nothing acknowledged is lost or doubled, and the node catches up when it is
// back. Once with the active controller, once with another node.
func TestCluster_LeaderKilled(t *testing.T) {
	for _, active := range []bool{false, true} {
		t.Run(fmt.Sprintf("active_%v", active), func(t *testing.T) {
			clusterBubble(t, 3, nil, func(t *testing.T, c *cluster) {
				cl := c.client()
				defer cl.Close()
				c.create(cl, "t", 6)
				p := c.ledBy("t", active)
				pub := c.publish(cl, "t", p)
				time.Sleep(time.Second)
				leader := c.state("t", p).Leader
				c.kill(leader)
				time.Sleep(5 * time.Second)
				if now := c.state("t", p); now.Leader == leader || now.Leader == kafka.NoNode || now.LeaderEpoch == 0 {
					t.Fatalf("no new leader: %+v", now)
				}
				c.start(leader)
				c.untilInBubble("the killed node is in sync again", func() bool { return c.whole("t") })
				time.Sleep(time.Second)
				acked := pub.finish(t)
				same(t, acked, c.read("t", p, len(acked)))
				if limit := 2 * time.Second; pub.gap > limit {
					t.Errorf("no acknowledgement for %v, want at most %v", pub.gap, limit)
				}
				t.Logf("longest gap %v (bubble time)", pub.gap)
			})
		})
	}
}

// ledBy is a partition whose leader is, or is not, the active controller.
func (c *cluster) ledBy(topic string, active bool) int32 {
	c.t.Helper()
	controller := c.alive().quorum.Leadership().Leader
	for p, s := range c.alive().Image().Topic(topic).Partitions {
		if (s.Leader == controller) == active {
			return int32(p)
		}
	}
	c.t.Fatalf("no partition of %s whose leader being the controller is %v", topic, active)
	return 0
}

// TestCluster_PlannedStop: a node that stops hands over first. No publish fails, the gap is short, and nothing waits for a session to end.
func TestCluster_PlannedStop(t *testing.T) {
	for _, active := range []bool{false, true} {
		t.Run(fmt.Sprintf("active_%v", active), func(t *testing.T) {
			clusterBubble(t, 3, nil, func(t *testing.T, c *cluster) {
				cl := c.client(kgo.RequestRetries(20))
				defer cl.Close()
				c.create(cl, "t", 6)
				p := c.ledBy("t", active)
				pub := c.publish(cl, "t", p)
				time.Sleep(time.Second)
				leader := c.state("t", p).Leader
				c.stop(leader)
				time.Sleep(2 * time.Second)
				if got := c.state("t", p); slices.Contains(got.ISR, leader) || got.Leader == leader {
					t.Errorf("a stopped node is still in the ISR: %+v", got)
				}
				c.start(leader)
				c.untilInBubble("the node is in sync again", func() bool { return c.whole("t") })
				acked := pub.finish(t)
				same(t, acked, c.read("t", p, len(acked)))
				if limit := time.Second; pub.gap > limit { // measured 482-520 ms at most; half a session time-out is the bound
					t.Errorf("no acknowledgement for %v, want at most %v", pub.gap, limit)
				}
				t.Logf("longest gap %v (bubble time)", pub.gap)
			})
		})
	}
}

// TestCluster_AllKilledAtOnce: all nodes are killed and started again; everything acknowledged is there.
func TestCluster_AllKilledAtOnce(t *testing.T) {
	clusterBubble(t, 3, nil, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.create(cl, "t", 1)
		pub := c.publish(cl, "t", 0)
		for range 3 {
			time.Sleep(time.Second)
			for _, id := range c.ids() {
				c.kill(id)
			}
			c.start(c.ids()...)
		}
		c.untilInBubble("all in sync", func() bool { return c.whole("t") })
		acked := pub.finish(t)
		same(t, acked, c.read("t", 0, len(acked)))
	})
}

// TestCluster_WaitingNodeSaysForWhom: a node that cannot form a cluster alone is not ready and names whom it waits for.
func TestCluster_WaitingNodeSaysForWhom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, net: systest.NewNet()}
		for i := range 3 {
			c.members = append(c.members, &member{id: kafka.NodeID(i + 1), fs: systest.NewFS(uint64(i + 1)), log: &lines{}})
		}
		m := c.member(1)
		cfg := c.configOf(m)
		cfg.HTTP.Address = "n1:8080"
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := Start(ctx, Options{Config: cfg, Machine: systest.Machine(m.fs, c.net.Host("n1"), nil), Log: slog.New(slog.NewTextHandler(m.log, nil))})
			ended <- err
		}()
		time.Sleep(12 * time.Second)
		status, body := httpGet(t, c.net.Host("client"), "n1:8080", "/readyz")
		for _, want := range []string{"node 2 at n2:19091", "node 3 at n3:19091", "waiting for all controllers, to form a cluster"} {
			if status != 503 || !strings.Contains(body, want) {
				t.Errorf("readyz is %d %q, want %q", status, body, want)
			}
		}
		if got := strings.Count(m.log.String(), "waiting for a cluster"); got != 2 {
			t.Errorf("%d log lines in 12 s, want 2\n%s", got, m.log)
		}
		cancel()
		if err := <-ended; err == nil {
			t.Error("started")
		}
	})
}

// TestCluster_ObserverJoins: a node that is no controller joins, gets partitions, and survives a restart of everybody.
func TestCluster_ObserverJoins(t *testing.T) {
	change := func(n *config.Node) {
		if n.Node.ID == 4 {
			n.Roles = []string{config.RoleBroker}
		}
	}
	clusterBubble(t, 4, change, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.create(cl, "t", 8)
		var p int32 = -1
		for i, s := range c.alive().Image().Topic("t").Partitions {
			if s.Leader == 4 {
				p = int32(i)
			}
		}
		if p < 0 {
			t.Fatal("the observer leads nothing")
		}
		pub := c.publish(cl, "t", p)
		time.Sleep(time.Second)
		c.kill(4)
		time.Sleep(3 * time.Second)
		c.start(4)
		c.untilInBubble("the observer is in sync again", func() bool { return c.whole("t") })
		acked := pub.finish(t)
		same(t, acked, c.read("t", p, len(acked)))
		if voters := c.alive().Image().Voters(); len(voters) != 3 {
			t.Errorf("voters %+v", voters)
		}
	})
}
