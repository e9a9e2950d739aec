package quorum

import (
	"context"
	"flag"
	"fmt"
	"hash/crc64"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/sys/systest"
)

var (
	chaosRuns = flag.Int("quorum.runs", 8, "runs of the random fault test")
	chaosSeed = flag.Uint64("quorum.seed", 1, "seed of the first run")

	crashStride = flag.Int64("quorum.stride", 1, "N: crash at every Nth file operation; odd, for what goes by turns (the race detector's runs)")
)

// Fault model of the random test: nodes are killed or lose power (systest's crash modes) and start again; both directions of a link are
// cut and healed one by one; syncs take up to 20 ms; voters are taken out and in; a controller's disk is replaced by an empty one only while every
// other disk is one on which the quorum can still count. Bytes that were synced are not damaged.

// referee watches all nodes.
type referee struct {
	t  *testing.T
	mu sync.Mutex
	// leaders is who led in a term.
	leaders map[uint64]kafka.NodeID
	// images is the checksum of the Image at a version.
	images map[uint64]uint64
	// acked are the keys of confirmed entries, with their index.
	acked map[string]uint64
	// reached is the highest version that any node has shown.
	reached uint64
	// quiet ends the writing.
	quiet atomic.Bool
}

func newReferee(t *testing.T) *referee {
	return &referee{t: t, leaders: map[uint64]kafka.NodeID{}, images: map[uint64]uint64{}, acked: map[string]uint64{}}
}

func (r *referee) failf(format string, args ...any) {
	r.t.Helper()
	r.t.Errorf(format, args...)
}

// watch follows one process of a node until it stops.
func (r *referee) watch(m *testMember, running func() bool) {
	go r.watchLeadership(m)
	go r.watchImages(m)
	go r.write(m)
	go func() {
		<-m.q.Stopped()
		if running() && !m.fs.Crashed() {
			r.failf("the quorum of node %d ended by itself", m.id)
		}
	}()
}

func (r *referee) watchLeadership(m *testMember) {
	for {
		changed := m.q.LeadershipChanged()
		l := m.q.Leadership()
		r.mu.Lock()
		if l.Leader != kafka.NoNode {
			if other, ok := r.leaders[l.Term]; ok && other != l.Leader {
				r.failf("term %d has leaders %d and, by node %d, %d", l.Term, other, m.id, l.Leader)
			}
			r.leaders[l.Term] = l.Leader
		}
		if l.Leading && l.Leader != m.id {
			r.failf("node %d leads in term %d and names node %d", m.id, l.Term, l.Leader)
		}
		r.mu.Unlock()
		select {
		case <-changed:
		case <-m.q.Stopped():
			return
		}
	}
}

func (r *referee) watchImages(m *testMember) {
	last := uint64(0)
	for {
		changed := m.q.Changed()
		image := m.q.Image()
		sum := crc64.Checksum(metadata.EncodeImage(nil, image), crc64.MakeTable(crc64.ECMA))
		r.mu.Lock()
		if image.Version() < last {
			r.failf("I13: node %d went from version %d back to %d", m.id, last, image.Version())
		}
		if other, ok := r.images[image.Version()]; ok && other != sum && image.Version() > 0 {
			r.failf("node %d has another Image at %d than others", m.id, image.Version())
		}
		r.images[image.Version()] = sum
		r.reached = max(r.reached, image.Version())
		r.mu.Unlock()
		last = image.Version()
		select {
		case <-changed:
		case <-m.q.Stopped():
			return
		}
	}
}

// write proposes entries while the node leads, and notes which were confirmed.
func (r *referee) write(m *testMember) {
	for n := 0; !r.quiet.Load(); n++ {
		led := m.q.LeadershipChanged()
		l := m.q.Leadership()
		if !l.Leading || m.q.Image().Version() < l.TermStart {
			select {
			case <-led:
			case <-time.After(10 * time.Millisecond):
			case <-m.q.Stopped():
				return
			}
			continue
		}
		r.mu.Lock()
		// Everything that was ever confirmed is here, before this leader acts.
		for key, index := range r.acked {
			if m.q.Image().BrokerConfigs(kafka.NoNode)[key] == "" {
				r.failf("node %d leads in term %d without %s, confirmed at %d; its Image is at %d", m.id, l.Term, key, index, m.q.Image().Version())
			}
		}
		r.mu.Unlock()
		key := fmt.Sprintf("k.%d.%d.%d.%d", m.id, m.dir.StartNumber(), l.Term, n)
		value := "v"
		index := m.q.LogEnd()
		if m.q.Propose(l.Term, index, []metadata.Record{metadata.ConfigRecord{Node: kafka.NoNode, Key: key, Value: &value}}) != nil {
			sleepInBubble(time.Millisecond)
			continue
		}
		for m.q.Image().Version() < index && m.q.Leadership().Term == l.Term {
			select {
			case <-m.q.Changed():
			case <-time.After(50 * time.Millisecond):
			case <-m.q.Stopped():
				return
			}
		}
		if now := m.q.Leadership(); m.q.Image().Version() >= index && now.Leading && now.Term == l.Term && !m.fs.Crashed() {
			r.mu.Lock()
			r.acked[key] = index
			r.mu.Unlock()
		}
		sleepInBubble(40 * time.Millisecond)
	}
}

// storm does random things to a cluster.
type storm struct {
	*testCluster
	rng     *rand.Rand
	referee *referee
	ids     []kafka.NodeID
	wiped   kafka.NodeID // whose directory has not become a voter yet; 0: none
	counts  map[string]int
}

func (s *storm) boot(id kafka.NodeID) {
	s.start(id)
	m := s.nodes[id]
	s.slow(m)
	s.referee.watch(m, m.running.Load)
}

func (s *storm) slow(m *testMember) {
	slowest := time.Duration(s.rng.IntN(20)) * time.Millisecond
	m.fs.SetLatency(func(op systest.Op) time.Duration {
		if op.Kind == systest.OpSync {
			return slowest
		}
		return 0
	})
}

func (s *storm) pick() kafka.NodeID { return s.ids[s.rng.IntN(len(s.ids))] }

func (s *storm) act() {
	id := s.pick()
	what := ""
	switch n := s.rng.IntN(100); {
	case n < 35:
		what = s.crashOrStart(id)
	case n < 55:
		what = "cut"
		if to := s.pick(); to != id {
			s.net.Cut(hostOf(id), hostOf(to))
		}
	case n < 75:
		what = "heal"
		s.net.HealAll()
	case n < 85:
		what = s.replaceDisk(id)
	default:
		what = s.change(id)
	}
	s.counts[what]++
}

func (s *storm) crashOrStart(id kafka.NodeID) string {
	if s.nodes[id] == nil {
		s.boot(id)
		return "start"
	}
	s.nodes[id].running.Store(false)
	s.crash([]systest.CrashMode{systest.LoseAll, systest.Random, systest.KeepAll, systest.KillProcess}[s.rng.IntN(4)], id)
	return "crash"
}

// replaceDisk gives a controller an empty disk, when all are there and the quorum bears it.
func (s *storm) replaceDisk(id kafka.NodeID) string {
	if s.wiped != 0 {
		if m := s.nodes[s.wiped]; m == nil || !m.isVoter() {
			return "no wipe"
		}
		s.wiped = 0
	}
	if len(s.nodes) < len(s.ids) || int(id) > len(s.list) {
		return "no wipe"
	}
	s.net.HealAll()
	sleepInBubble(3 * time.Second)
	m := s.nodes[id]
	if !m.isVoter() || m.fullVoters() < 3 || m.q.Leadership().Leader == kafka.NoNode {
		return "no wipe"
	}
	m.running.Store(false)
	s.crash(systest.LoseAll, id)
	s.wipe(id)
	s.boot(id)
	s.wiped = id
	return "wipe"
}

// change asks for a node to be taken in or out, and does not wait for it.
func (s *storm) change(id kafka.NodeID) string {
	m := s.nodes[s.pick()]
	if m == nil || s.wiped != 0 {
		return "no change"
	}
	in := slices.Contains(votersOf(m), id)
	if in && len(votersOf(m)) <= 3 && s.rng.IntN(2) == 0 {
		return "no change"
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if in {
			_ = m.q.RemoveVoter(ctx, id)
		} else {
			_ = m.q.AddVoter(ctx, id)
		}
	}()
	return "change"
}

// calm heals everything and expects the cluster to work.
func (s *storm) calm() {
	s.net.HealAll()
	for _, id := range s.ids {
		if s.nodes[id] == nil {
			s.boot(id)
		}
	}
	s.leader(60 * time.Second)
	s.goOn()
	s.referee.quiet.Store(true)
	sleepInBubble(3 * time.Second)
	s.agree(s.commit(metadata.ProducerIDsRecord{Next: 1 << 40}))
	final := s.nodes[s.ids[0]].q.Image()
	s.referee.mu.Lock()
	defer s.referee.mu.Unlock()
	for key, index := range s.referee.acked {
		if final.BrokerConfigs(kafka.NoNode)[key] == "" {
			s.t.Errorf("%s, confirmed at %d, is lost", key, index)
		}
	}
}

// goOn waits for the writers to get on.
func (s *storm) goOn() {
	s.referee.mu.Lock()
	before := s.referee.reached
	s.referee.mu.Unlock()
	s.eventually("the cluster goes on", 60*time.Second, func() bool {
		s.referee.mu.Lock()
		defer s.referee.mu.Unlock()
		return s.referee.reached > before+3
	})
}

func TestI13_RandomFaults(t *testing.T) {
	total := map[string]int{}
	for run := range *chaosRuns {
		seed := *chaosSeed + uint64(run)
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("go test ./internal/quorum -run RandomFaults -quorum.runs 1 -quorum.seed %d", seed)
				}
			}()
			controllers := 3 + 2*int(seed%2)
			c := newTestCluster(t, controllers)
			c.every = []int{0, 20, 5}[seed%3]
			s := &storm{testCluster: c, rng: rand.New(rand.NewPCG(seed, 0x90)), referee: newReferee(t), counts: total}
			for id := range controllers + 1 {
				s.ids = append(s.ids, kafka.NodeID(id+1))
				s.boot(kafka.NodeID(id + 1))
			}
			c.leader(10 * time.Second)
			c.eventually("all have joined", 10*time.Second, func() bool {
				for _, m := range c.nodes {
					if m.dir.Identity().ClusterID == "" {
						return false
					}
				}
				return true
			})
			for _, id := range s.ids {
				s.registered(id)
			}
			for range 40 {
				s.act()
				sleepInBubble(time.Duration(s.rng.IntN(1200)) * time.Millisecond)
			}
			s.calm()
			for _, m := range c.nodes {
				m.running.Store(false)
			}
			total["confirmed"] += len(s.referee.acked)
			total["terms"] += len(s.referee.leaders)
			c.end()
		})
	}
	for _, what := range slices.Sorted(maps.Keys(total)) {
		t.Logf("%s: %d", what, total[what])
	}
	for _, what := range []string{"crash", "start", "cut", "heal", "wipe", "change"} {
		if total[what] == 0 && *chaosRuns >= 8 {
			t.Errorf("no %s in any run", what)
		}
	}
}
