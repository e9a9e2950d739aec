package chaos

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"strandline.dev/test/chaos/proxy"
	"strandline.dev/test/chaos/raw"
	"strandline.dev/test/chaos/rig"
)

var (
	minutesFlag = flag.Float64("chaos.minutes", 0.1, "how long random faults last")
	modeFlag    = flag.String("chaos.mode", "safety", "safety: any fault, judged at the end; liveness: what is left sound must go on")
)

const (
	// gapMin is the least time between two faults.
	gapMin = 2 * time.Second
	// faultMax bounds a fault of safety mode; it is past session and lag limits.
	faultMax = 7 * time.Second
)

// The fault model of random mode. One fault is on at a time, or two for nodes that are down: any set of nodes may be killed, since a process
// that ends loses nothing it wrote; links lose, delay, slow or break what passes, in one direction or both; a node stands still. What is not
// done, because it proves nothing: damaged disks (they have tests of their own) and clocks.

// fault is one random thing that happens. do returns what ends it.
type fault struct {
	name   string
	weight int
	do     func(*trial) (end func())
}

var faults = []fault{
	{"kill one", 4, func(tr *trial) func() { return tr.down(tr.node()) }},
	{"kill two", 1, func(tr *trial) func() {
		spared := tr.rng.IntN(3)
		return tr.down(tr.c.Nodes[(spared+1)%3], tr.c.Nodes[(spared+2)%3])
	}},
	{"kill all", 1, func(tr *trial) func() { return tr.down(tr.c.Nodes...) }},
	{"kill, and again while it starts", 2, func(tr *trial) func() {
		n := tr.node()
		n.Kill()
		tr.start(n)
		pause(tr.rng.Int64N(int64(500 * time.Millisecond)))
		return tr.down(n)
	}},
	{"stop one", 2, func(tr *trial) func() {
		n := tr.node()
		tr.stop(n)
		return func() { tr.start(n) }
	}},
	{"pause one", 4, func(tr *trial) func() {
		n := tr.node()
		n.Pause()
		return n.Resume
	}},
	{"cut a link", 3, func(tr *trial) func() {
		a, b := tr.pair()
		tr.c.Cut(a, b)
		return tr.c.Heal
	}},
	{"cut a link one way", 3, func(tr *trial) func() {
		a, b := tr.pair()
		tr.c.CutOneWay(a, b)
		return tr.c.Heal
	}},
	{"isolate a node from the others", 3, func(tr *trial) func() {
		n := tr.node()
		tr.isolate(n)
		return tr.c.Heal
	}},
	{"a node is heard by nobody", 2, func(tr *trial) func() {
		n := tr.node()
		for _, o := range tr.c.Nodes {
			if o != n {
				tr.c.CutOneWay(n.ID, o.ID)
			}
		}
		return tr.c.Heal
	}},
	{"isolate a node from everybody", 2, func(tr *trial) func() {
		n := tr.node()
		tr.isolate(n)
		n.Clients.Cut()
		return tr.c.Heal
	}},
	{"cut clients off a node and kill it", 2, func(tr *trial) func() {
		n := tr.node()
		n.Clients.Cut()
		pause(tr.rng.Int64N(int64(time.Second)))
		end := tr.down(n)
		return func() { tr.c.Heal(); end() }
	}},
	{"answers to clients are lost", 2, func(tr *trial) func() {
		n := tr.node()
		n.Clients.Set(proxy.ToDialler, proxy.Fault{Blackhole: true})
		return func() { n.Clients.Reset(); tr.c.Heal() }
	}},
	{"slow links", 2, func(tr *trial) func() {
		for _, d := range []proxy.Direction{proxy.ToTarget, proxy.ToDialler} {
			a, b := tr.pair()
			tr.c.Link(a, b).Set(d, proxy.Fault{Delay: time.Duration(tr.rng.Int64N(int64(300 * time.Millisecond)))})
		}
		return tr.c.Heal
	}},
	{"a narrow link", 1, func(tr *trial) func() {
		a, b := tr.pair()
		tr.c.Link(a, b).Set(proxy.ToDialler, proxy.Fault{BytesPerSecond: 20_000})
		return tr.c.Heal
	}},
	{"connections break again and again", 2, func(tr *trial) func() {
		for range 1 + tr.rng.IntN(10) {
			a, b := tr.pair()
			tr.c.Link(a, b).Reset()
			tr.node().Clients.Reset()
			pause(tr.rng.Int64N(int64(200 * time.Millisecond)))
		}
		return func() {}
	}},
}

// TestRandom harms a cluster of three at random for -chaos.minutes with everybody at work, and judges at the end.
//
// In safety mode any fault may come, and all end after a while. In liveness mode two of three nodes are sound and hear each other, the third is
// harmed and stays so: within -chaos.progress every partition must take writes and topics must be created.
func TestRandom(t *testing.T) {
	if *modeFlag != "safety" && *modeFlag != "liveness" {
		t.Fatalf("-chaos.mode %s: safety or liveness", *modeFlag)
	}
	tr := startTrial(t, newCluster(t, false), mixedTopics)
	tr.work()
	counts := map[string]int{}
	for until := time.Now().Add(time.Duration(*minutesFlag * float64(time.Minute))); time.Now().Before(until) && !t.Failed(); {
		f := tr.pick()
		counts[f.name]++
		t.Logf("%v %s", tr.l.R.Now().Round(time.Millisecond), f.name)
		if *modeFlag == "liveness" {
			tr.frozen(f)
			continue
		}
		end := f.do(tr)
		pause(tr.rng.Int64N(int64(faultMax)))
		end()
		if tr.rng.IntN(3) == 0 { // else the next fault meets what this one has left behind
			tr.whole()
		}
		pause(int64(gapMin) + tr.rng.Int64N(int64(gapMin)))
	}
	tr.finish()
	t.Logf("faults: %v", counts)
}

// frozen brings a fault about, heals two nodes and what is between them, leaves the third as it is or worse, and asks for progress.
func (tr *trial) frozen(f fault) {
	tr.t.Helper()
	end := f.do(tr)
	pause(tr.rng.Int64N(int64(gapMin)))
	end()
	out := tr.node()
	for _, n := range tr.c.Nodes {
		if !n.Running() {
			tr.start(n)
		}
		if err := n.Ready(within(tr.t, rig.StartMax)); err != nil {
			tr.t.Fatal(err)
		}
	}
	heal := func() {}
	how := []string{"down", "paused", "isolated", "half-connected", "not heard"}[tr.rng.IntN(5)]
	switch how {
	case "down":
		heal = tr.down(out)
	case "paused":
		out.Pause()
		heal = out.Resume
	case "isolated":
		tr.isolate(out)
	case "half-connected":
		tr.c.Cut(out.ID, out.ID%3+1)
	case "not heard": // it hears all
		tr.c.CutOneWay(out.ID, out.ID%3+1)
		tr.c.CutOneWay(out.ID, (out.ID+1)%3+1)
	}
	pause(tr.rng.Int64N(int64(gapMin)))
	begin := time.Now()
	tr.progress(*progressFlag)
	tr.created(time.Until(begin.Add(*progressFlag)), tr.c.Node(out.ID%3+1), tr.c.Node((out.ID+1)%3+1))
	tr.t.Logf("%v node %d is %s: progress after %v", tr.l.R.Now().Round(time.Millisecond), out.ID, how, time.Since(begin).Round(time.Millisecond))
	tr.c.Heal()
	heal()
	tr.whole()
}

// created creates a topic by way of one of the nodes, as a client that asks another when one does not answer: a node that cannot reach the
// active controller, which others can, cannot do it.
func (tr *trial) created(max time.Duration, via ...*rig.Node) {
	tr.t.Helper()
	name := fmt.Sprintf("made-%d", tr.rng.Uint64())
	asked := 0
	err := rig.Until(within(tr.t, max), "creation of a topic", func(ctx context.Context) error {
		via := via[asked%len(via)]
		asked++
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		err := rig.Create(ctx, via.Kafka, rig.Topic{Name: name, Partitions: 1, Replicas: 2})
		if err != nil {
			if _, _, there := raw.Topic(ctx, via.Kafka, name); there == nil { // an earlier try has
				return nil
			}
		}
		return err
	})
	if err != nil {
		tr.t.Error(err)
	}
}

func (tr *trial) pick() fault {
	all := 0
	for _, f := range faults {
		all += f.weight
	}
	n := tr.rng.IntN(all)
	for _, f := range faults {
		if n -= f.weight; n < 0 {
			return f
		}
	}
	return faults[0]
}

func (tr *trial) node() *rig.Node { return tr.c.Nodes[tr.rng.IntN(len(tr.c.Nodes))] }

func (tr *trial) pair() (a, b int32) {
	i := tr.rng.Int32N(3)
	return i + 1, (i+1+tr.rng.Int32N(2))%3 + 1
}

func (tr *trial) isolate(n *rig.Node) {
	for _, o := range tr.c.Nodes {
		if o != n {
			tr.c.Cut(n.ID, o.ID)
		}
	}
}

func (tr *trial) start(n *rig.Node) {
	if err := n.Start(); err != nil {
		tr.t.Error(err)
	}
}

// down kills nodes within moments of each other; the end starts them in any order.
func (tr *trial) down(nodes ...*rig.Node) (end func()) {
	order := append([]*rig.Node(nil), nodes...)
	shuffle(tr.rng, order)
	for _, n := range order {
		n.Kill()
	}
	return func() {
		shuffle(tr.rng, order)
		for _, n := range order {
			tr.start(n)
			pause(tr.rng.Int64N(int64(200 * time.Millisecond)))
		}
	}
}

func shuffle(rng *rand.Rand, nodes []*rig.Node) {
	rng.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
}
