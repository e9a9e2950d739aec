package chaos

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"strandline.dev/test/chaos/load"
	"strandline.dev/test/chaos/rig"
)

var (
	drillFlag  = flag.String("chaos.drill", "kill-leader", "named drills to run, comma separated, or all")
	drillsFlag = flag.Int("chaos.drills", 1, "rounds of each named drill")
	// Measured runs ask for 10s; the default is for machines with other work.
	progressFlag = flag.Duration("chaos.progress", 30*time.Second, "time within which every partition takes writes again, whatever one node or link does")
)

// drill is one fault that is tried again and again on three nodes with everybody at work.
type drill struct {
	name string
	// power runs the fault build: what was not synced dies with a killed process.
	power  bool
	topics []load.Topic
	do     func(*trial)
}

var drills = []drill{
	{name: "kill-leader", topics: mixedTopics, do: func(tr *trial) { tr.harm(tr.other(), (*rig.Node).Kill) }},
	{name: "kill-controller", topics: mixedTopics, do: func(tr *trial) { tr.harm(tr.active(), (*rig.Node).Kill) }},
	{name: "pause", topics: mixedTopics, do: func(tr *trial) { tr.paused(tr.other()) }},
	{name: "pause-controller", topics: mixedTopics, do: func(tr *trial) { tr.paused(tr.active()) }},
	{name: "rolling-restart", topics: mixedTopics, do: func(tr *trial) {
		for _, n := range tr.c.Nodes {
			tr.harm(n, tr.stop)
			tr.whole()
		}
	}},
	// A leader and one of its followers do not hear each other; the third node hears both.
	{name: "cut-link", topics: mixedTopics, do: func(tr *trial) {
		a := tr.other()
		tr.c.Cut(a.ID, a.ID%3+1)
		pause(int64(6 * time.Second)) // past replica.lag.max
		tr.progress(*progressFlag)
		tr.c.Heal()
	}},
	// What a node sends is not heard, what it is sent is: it can neither lead nor be a reason for others to wait.
	{name: "cut-one-way", topics: mixedTopics, do: func(tr *trial) {
		a := tr.active()
		tr.c.CutOneWay(a.ID, a.ID%3+1)
		tr.c.CutOneWay(a.ID, (a.ID+1)%3+1)
		tr.progress(*progressFlag)
		tr.c.Heal()
	}},
	{name: "wiped-disk", topics: mixedTopics, do: func(tr *trial) {
		tr.harm(tr.other(), func(n *rig.Node) {
			n.Kill()
			if err := n.Wipe(); err != nil {
				tr.t.Fatal(err)
			}
		})
	}},
	{name: "power-cut-one", power: true, topics: mixedTopics, do: func(tr *trial) { tr.harm(tr.other(), (*rig.Node).Kill) }},
	// All nodes lose their power at once, and come back in any order.
	{name: "power-cut-all", power: true, topics: syncedTopics, do: func(tr *trial) {
		tr.c.KillAll()
		for _, i := range tr.rng.Perm(len(tr.c.Nodes)) {
			if err := tr.c.Nodes[i].Start(); err != nil {
				tr.t.Fatal(err)
			}
			pause(tr.rng.Int64N(int64(500 * time.Millisecond)))
		}
	}},
}

// TestDrill runs named faults, each on a whole cluster with everybody at work, and judges at the end: P1-P10, P12, P13, P19, P20, P30, P40, and
// that every partition takes writes again within -chaos.progress.
func TestDrill(t *testing.T) {
	wanted := strings.Split(*drillFlag, ",")
	for _, d := range drills {
		if !slices.Contains(wanted, d.name) && *drillFlag != "all" {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			tr := startTrial(t, newCluster(t, d.power), d.topics)
			for range *drillsFlag {
				tr.whole()
				tr.work()
				d.do(tr)
				tr.progress(*progressFlag)
			}
			tr.work()
			tr.finish()
		})
	}
	for _, d := range special {
		if slices.Contains(wanted, d.name) || *drillFlag == "all" {
			t.Run(d.name, d.run)
		}
	}
}

// work lets everybody work undisturbed for a moment.
func (tr *trial) work() {
	tr.t.Helper()
	tr.progress(*progressFlag)
	pause(int64(time.Second))
}

// harm brings a node down, sees that the others go on, and starts it again.
func (tr *trial) harm(n *rig.Node, down func(*rig.Node)) {
	tr.t.Helper()
	down(n)
	tr.progress(*progressFlag)
	if err := n.Start(); err != nil {
		tr.t.Fatal(err)
	}
	if err := n.Ready(within(tr.t, rig.StartMax)); err != nil {
		tr.t.Fatal(err)
	}
}

// paused stops a node for longer than its session and lets it go on as if nothing had happened (I3).
func (tr *trial) paused(n *rig.Node) {
	tr.t.Helper()
	n.Pause()
	pause(int64(3 * time.Second))
	tr.progress(*progressFlag)
	n.Resume()
}

func (tr *trial) stop(n *rig.Node) {
	tr.t.Helper()
	if err := n.Stop(); err != nil {
		tr.t.Error(err)
	}
}

// active is the active controller; other is a node that is not.
func (tr *trial) active() *rig.Node {
	tr.t.Helper()
	id, err := tr.c.Controller(within(tr.t, healMax))
	if err != nil {
		tr.t.Fatal(err)
	}
	return tr.c.Node(id)
}

func (tr *trial) other() *rig.Node { return tr.c.Node(tr.active().ID%3 + 1) }
