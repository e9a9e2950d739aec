package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"strandline.dev/internal/kafka"
)

const (
	// healTime is how long a healed cluster has to become whole.
	healTime = 30 * time.Second
	// eventsMax bounds a run whatever its length was to be: no run of the fault model comes near it.
	eventsMax = 5_000_000
)

// Outcome is what a run came to.
type Outcome struct {
	Seed    uint64
	Options Options
	Events  int
	Acked   int
	Rare    map[string]int
	// Failure is the violation with the last lines of the trace; empty when there is none.
	Failure string
}

// Run runs one seed: at least that many events under faults, then a healed cluster until it is whole.
func Run(seed uint64, events int) (out Outcome) {
	rng := rand.New(rand.NewPCG(seed, 0x5eed))
	w := newWorld(draw(rng), rng)
	out = Outcome{Seed: seed, Options: w.o, Rare: w.rare}
	defer func() {
		for _, c := range w.clients {
			out.Acked += len(c.acked)
		}
		if p := recover(); p != nil {
			v, ok := p.(violation)
			if !ok {
				v.text = fmt.Sprintf("panic: %v", p)
				defer panic(p)
			}
			out.Failure = fmt.Sprintf("seed %d at %v: %s\noptions %+v\n%s", seed, w.now, v.text, w.o, strings.Join(w.lines, "\n"))
		}
	}()
	w.begin()
	for out.Events = 0; out.Events < events; out.Events++ {
		if !w.step() {
			w.fail("P44: nothing happens any more")
		}
	}
	w.heal()
	for until := w.now + healTime; w.now < until; out.Events++ {
		if !w.step() || out.Events > eventsMax {
			w.fail("P44: nothing happens any more, or far too much")
		}
	}
	w.whole()
	return out
}

func newWorld(o Options, rng *rand.Rand) *world {
	w := &world{o: o, rng: rng, rare: map[string]int{}}
	w.topic = w.newID()
	for range o.Partitions {
		w.truth = append(w.truth, &truth{leaders: map[kafka.LeaderEpoch]process{}})
	}
	for i := range o.Nodes {
		n := &node{w: w, id: kafka.NodeID(i + 1), index: i, directory: w.newID(), lossy: make([]bool, o.Partitions), foundDamaged: make([]bool, o.Partitions)}
		for p := range o.Partitions {
			n.reps = append(n.reps, &replica{n: n, p: p})
		}
		w.nodes = append(w.nodes, n)
	}
	w.links = make([]link, (o.Nodes+1)*(o.Nodes+1))
	w.ctl = newController(w)
	for range 3 {
		w.clients = append(w.clients, newClient(w))
	}
	return w
}

// begin forms the cluster and lets faults and clients loose.
func (w *world) begin() {
	w.ctl.form()
	for _, n := range w.nodes {
		n.start()
	}
	w.every(100*time.Millisecond, nil, w.ctl.watch)
	w.every(2*time.Second, nil, func() {
		if w.ctl.downUntil <= w.now && !w.healed {
			w.ctl.administer()
		}
	})
	w.after(time.Second, nil, func() {
		w.ctl.create(func() {
			for _, c := range w.clients {
				w.after(w.between(0, time.Second), nil, c.act)
			}
			w.after(time.Second, nil, w.faults)
		})
	})
}

func (w *world) faults() {
	if w.healed {
		return
	}
	w.strike()
	w.after(w.between(w.o.FaultEvery/4, 2*w.o.FaultEvery), nil, w.faults)
}

// heal takes all faults away. Nodes that are down start within the time of their restarts.
func (w *world) heal() {
	w.healed = true
	w.trace("everything is healed")
	for i := range w.links {
		w.links[i].cutUntil = 0
	}
	for _, n := range w.nodes {
		n.frozenUntil, n.slowUntil = min(n.frozenUntil, w.now), 0
	}
}
