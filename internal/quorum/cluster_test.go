package quorum

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys/systest"
)

// testCluster is quorums of several nodes over one network in memory. It lives in a bubble.
type testCluster struct {
	t    *testing.T
	net  *systest.Net
	list []string // cluster.controllers
	// disks are those of the next start of each node.
	disks map[kafka.NodeID]*systest.FS
	nodes map[kafka.NodeID]*testMember
	every int
	gone  bool // the quorums are told of connections that end
	log   *slog.Logger
}

// testMember is one node.
type testMember struct {
	*testNode
	id    kafka.NodeID
	peers *peer.Peers
	end   context.CancelFunc
	done  chan struct{} // Serve has returned
	// running is false from the moment the test ends the node.
	running atomic.Bool
}

// sleepInBubble lets bubble time pass.
func sleepInBubble(d time.Duration) { time.Sleep(d) }

func hostOf(id kafka.NodeID) string    { return fmt.Sprintf("n%d", id) }
func addressOf(id kafka.NodeID) string { return hostOf(id) + ":9093" }

// newTestCluster makes a cluster whose controllers are nodes 1 to controllers. Nothing runs yet.
func newTestCluster(t *testing.T, controllers int) *testCluster {
	c := &testCluster{
		t: t, gone: true, net: systest.NewNet(), disks: map[kafka.NodeID]*systest.FS{}, nodes: map[kafka.NodeID]*testMember{},
		log: slog.New(slog.DiscardHandler),
	}
	if os.Getenv("QUORUM_TEST_LOG") != "" {
		c.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	for id := range controllers {
		c.list = append(c.list, fmt.Sprintf("%d@%s", id+1, addressOf(kafka.NodeID(id+1))))
	}
	return c
}

// open opens and runs a node on its disk.
func (c *testCluster) open(id kafka.NodeID) (*testMember, error) {
	if c.disks[id] == nil {
		c.disks[id] = systest.NewFS(uint64(id))
	}
	fs := c.disks[id]
	host := c.net.Host(hostOf(id))
	machine := systest.Machine(fs, host, nil)
	dir, err := storage.OpenDir(storage.DirOptions{Machine: machine, Path: dataDir, Metrics: metrics.New().Storage})
	if err != nil {
		return nil, err
	}
	incarnation := kafka.ID{byte(id), byte(dir.StartNumber())}
	log := c.log.With("at", id)
	var q *Quorum
	opened := make(chan struct{})
	peers := peer.New(peer.Config{
		Gone: func(who peer.Identity, class peer.Class) {
			<-opened
			if class == peer.Control && c.gone {
				q.Gone(who)
			}
		},
		Net: host, Log: log, Metrics: metrics.New().Peer,
		Self: func() peer.Identity {
			self := dir.Identity()
			return peer.Identity{Cluster: self.ClusterID, Node: id, Directory: self.DirectoryID, Start: dir.StartNumber(), Incarnation: incarnation}
		},
		Resolve: func(to kafka.NodeID) (string, bool) { return addressOf(to), true },
	})
	q, err = Open(Config{Machine: machine, Dir: dir, Node: id, Controllers: c.list, Peers: peers, Log: log, SnapshotEntries: c.every})
	if err != nil {
		peers.Close()
		_ = dir.Close(storage.CloseOptions{})
		return nil, err
	}
	close(opened)
	l, err := host.Listen(addressOf(id))
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	m := &testMember{testNode: &testNode{t: c.t, fs: fs, dir: dir, q: q}, id: id, peers: peers, end: end, done: make(chan struct{})}
	go func() { defer close(m.done); _ = peers.Serve(ctx, l) }()
	m.running.Store(true)
	m.run()
	c.nodes[id] = m
	return m, nil
}

// start is open for a node that must come up.
func (c *testCluster) start(ids ...kafka.NodeID) {
	c.t.Helper()
	for _, id := range ids {
		if _, err := c.open(id); err != nil {
			c.t.Fatalf("node %d: %v", id, err)
		}
	}
}

// halt ends a node in order.
func (c *testCluster) halt(ids ...kafka.NodeID) {
	c.t.Helper()
	for _, id := range ids {
		m := c.nodes[id]
		delete(c.nodes, id)
		if err := m.halt(); err != nil {
			c.t.Errorf("node %d: %v", id, err)
		}
	}
}

func (m *testMember) halt() error {
	m.end()
	m.peers.Close()
	<-m.done
	return m.close()
}

// crash ends a node as if its machine had lost power or its process were killed; nothing it says afterwards is heard.
func (c *testCluster) crash(mode systest.CrashMode, ids ...kafka.NodeID) {
	for _, id := range ids {
		m := c.nodes[id]
		delete(c.nodes, id)
		c.net.Kill(hostOf(id))
		c.disks[id] = m.fs.Crash(mode)
		_ = m.halt()
	}
}

// wipe replaces the disk of a node that does not run.
func (c *testCluster) wipe(id kafka.NodeID) { c.disks[id] = systest.NewFS(uint64(id) + 100) }

// end halts everything.
func (c *testCluster) end() { c.halt(slices.Sorted(maps.Keys(c.nodes))...) }

// eventually waits until ok holds.
func (c *testCluster) eventually(what string, within time.Duration, ok func() bool) {
	c.t.Helper()
	for began := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > within {
			c.t.Fatalf("%s: not within %v\n%s", what, within, c.describe())
		}
	}
}

func (c *testCluster) describe() string {
	var b bytes.Buffer
	for _, id := range slices.Sorted(maps.Keys(c.nodes)) {
		m := c.nodes[id]
		core := ""
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = m.q.onLoop(ctx, func(l *loop) error {
			core = fmt.Sprintf("conf %v, raft %+v, last %d", l.conf, l.node.BasicStatus(), l.last)
			return nil
		})
		cancel()
		fmt.Fprintf(&b, "node %d (%x): %+v, image %d, end %d, member %v, waiting %q, voters %s; %s\n",
			id, m.q.start.self, m.q.Leadership(), m.q.Image().Version(), m.q.LogEnd(), m.q.isMember.Load(), m.q.Waiting(), describeVoters(m.q.Image().Voters()), core)
	}
	return b.String()
}

// leader waits for a node that leads and has everything committed.
func (c *testCluster) leader(within time.Duration) (leads *testMember) {
	c.t.Helper()
	c.eventually("a leader", within, func() bool {
		for _, id := range slices.Sorted(maps.Keys(c.nodes)) {
			if l := c.nodes[id].q.Leadership(); l.Leading && c.nodes[id].q.Image().Version() >= l.TermStart {
				leads = c.nodes[id]
				return true
			}
		}
		return false
	})
	return leads
}

// commit commits records through whoever leads, however often that changes. It returns the index.
func (c *testCluster) commit(rs ...metadata.Record) (index uint64) {
	c.t.Helper()
	c.eventually("a commit", 20*time.Second, func() bool {
		m := c.leader(20 * time.Second)
		l := m.q.Leadership()
		index = m.q.LogEnd()
		if !l.Leading || m.q.Propose(l.Term, index, rs) != nil {
			return false
		}
		for began := time.Now(); time.Since(began) < 3*time.Second; sleepInBubble(time.Millisecond) {
			if m.q.Image().Version() >= index {
				now := m.q.Leadership()
				return now.Leading && now.Term == l.Term
			}
		}
		return false
	})
	return index
}

// fill commits n entries that differ.
func (c *testCluster) fill(n int) (last uint64) {
	c.t.Helper()
	for range n {
		value := fmt.Sprint(len(c.list), last)
		last = c.commit(metadata.ConfigRecord{Node: kafka.NoNode, Key: fmt.Sprintf("key.%d", last%11), Value: &value})
	}
	return last
}

// agree waits until all running nodes have the same Image, at version or later.
func (c *testCluster) agree(version uint64) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("equal Images at %d", version), 15*time.Second, func() bool {
		var first []byte
		for _, m := range c.nodes {
			image := m.q.Image()
			if image.Version() < version {
				return false
			}
			b := metadata.EncodeImage(nil, image)
			if first == nil {
				first = b
			}
			if !bytes.Equal(first, b) {
				return false
			}
		}
		return true
	})
}

// voters are the nodes in the table of a node.
func votersOf(m *testMember) (ids []kafka.NodeID) {
	for _, v := range m.q.Image().Voters() {
		ids = append(ids, v.Node)
	}
	slices.Sort(ids)
	return ids
}

// registered commits the registration of a node that follows, as the controller would.
func (c *testCluster) registered(id kafka.NodeID) {
	m := c.nodes[id]
	c.commit(metadata.BrokerRecord{
		Node: id, Epoch: kafka.BrokerEpoch(m.dir.StartNumber()), Incarnation: kafka.ID{byte(id)}, Directory: m.dir.Identity().DirectoryID,
		StartNumber: m.dir.StartNumber(), ClusterAddress: addressOf(id), Roles: []string{"controller"},
	})
}
