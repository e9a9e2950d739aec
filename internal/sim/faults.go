package sim

import (
	"math/rand/v2"
	"time"
)

// The fault model. Fair, that is, nothing may be lost or shown wrongly under any mix of these:
//
//   - kill -9 of any number of nodes: what was written survives, synced or not; what was in memory is gone.
//   - a stop by request: leaderships are handed over first, everything is synced.
//   - SIGSTOP: a node stands still for up to ten seconds and then goes on with what it believed before; what was sent to it waits.
//   - a link cut in one direction or both: what is sent waits and is delivered after the heal, or is lost with its connection.
//   - a message delivered after the connection that carried it was given up, so later than what was sent on the next one.
//   - a slow disk: a sync that takes up to seven seconds.
//   - loss of the controller's leadership: decisions that are not committed vanish, answers with them.
//   - a power cut of any number of nodes, for partitions whose policy is `synced`: unsynced records are lost, all or some of them.
//   - one lossy fault at a time, and only with a minimum of two in-sync replicas: a power cut under `replicated`, a wiped disk, or damage
//     found in a log. The next one may come when that node is in sync with everything again. Two at once can take every copy of an
//     acknowledged record, which is why `synced` is the default.
//
// Unfair, never injected: a disk that lies about a sync; two lossy faults at once; a restored old disk (docs/operating says what to do).

// Options are drawn from the seed.
type Options struct {
	Nodes, Partitions, Factor int
	MinISR                    int
	// Synced says for each partition whether its topic's policy is `synced`.
	Synced []bool
	// FaultEvery is the mean time between faults.
	FaultEvery time.Duration
	// Delay is the mean delay of a message.
	Delay time.Duration
	// Weights of the faults.
	Weights [faultKinds]int
	// Moves says that replicas are moved now and then.
	Moves bool
	// Lag is replica.lag.max.
	Lag time.Duration
}

// fault is a kind of fault.
type fault int

const (
	kill fault = iota
	stop
	pause
	cut
	slowDisk
	failOver
	powerCut
	powerCutAll
	wipe
	damage
	faultKinds
)

func draw(rng *rand.Rand) Options {
	o := Options{
		Nodes: 3 + rng.IntN(3), Partitions: 1 + rng.IntN(3), Factor: 3, MinISR: 2,
		FaultEvery: time.Duration(100+rng.IntN(2000)) * time.Millisecond,
		Delay:      time.Duration(1+rng.IntN(20)) * time.Millisecond,
		Moves:      rng.IntN(3) == 0,
		Lag:        time.Duration(1+rng.IntN(5)) * time.Second,
	}
	if rng.IntN(6) == 0 {
		o.MinISR = 1
	}
	for range o.Partitions {
		o.Synced = append(o.Synced, rng.IntN(2) == 0)
	}
	for k := range o.Weights {
		if rng.IntN(3) > 0 { // each run leaves some kinds out, so that the others have time to show what they do alone
			o.Weights[k] = 1 + rng.IntN(4)
		}
	}
	return o
}

// strike injects one fault, if there is a fair one to inject.
func (w *world) strike() {
	total := 0
	for _, n := range w.o.Weights {
		total += n
	}
	if total == 0 {
		return
	}
	pick := w.rng.IntN(total)
	kind := fault(0)
	for ; pick >= w.o.Weights[kind]; kind++ {
		pick -= w.o.Weights[kind]
	}
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	switch kind {
	case kill:
		w.crash(n, false)
	case stop:
		n.leave()
	case pause:
		if n.up {
			n.frozenUntil = w.now + time.Duration(w.rng.IntN(10000))*time.Millisecond
			w.trace("node %d stands still until %v", n.id, n.frozenUntil)
		}
	case cut:
		w.cutLinks(n)
	case slowDisk:
		n.slowUntil = w.now + time.Duration(w.rng.IntN(7000))*time.Millisecond
	case failOver:
		w.ctl.failOver()
	case powerCut:
		if w.mayLose(n) || w.allSynced() {
			w.crash(n, true)
		}
	case powerCutAll:
		if w.allSynced() {
			for _, n := range w.nodes {
				w.crash(n, true)
			}
		}
	case wipe:
		if w.mayLose(n) {
			w.crash(n, false)
			n.wipe()
		}
	case damage:
		if n.up && w.mayLose(n) {
			n.findDamage()
		}
	}
}

func (w *world) allSynced() bool {
	for _, s := range w.o.Synced {
		if !s {
			return false
		}
	}
	return true
}

// mayLose says that a lossy fault on a node is fair now.
func (w *world) mayLose(n *node) bool {
	if w.o.MinISR < 2 || w.lossy != nil && w.lossy != n {
		return false
	}
	return w.lossy == nil
}

// cutLinks cuts the links of a node to some others or to the controller, in one direction or both, for a while.
func (w *world) cutLinks(n *node) {
	until := w.now + time.Duration(200+w.rng.IntN(8000))*time.Millisecond
	way := w.rng.IntN(3)
	for other := range len(w.nodes) + 1 { // the last is the controller
		if other == n.index || w.rng.IntN(2) == 0 {
			continue
		}
		if way != 1 {
			w.link(n.index, other).cutUntil = until
		}
		if way != 0 {
			w.link(other, n.index).cutUntil = until
		}
		w.trace("links of node %d and %d cut (way %d) until %v", n.id, other+1, way, until)
	}
}
