package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"strandline.dev/internal/kafka"
)

// epochZero is where virtual time begins.
var epochZero = time.Unix(1_700_000_000, 0)

// traceMax is how many of the last lines of a run are kept for a failure.
const traceMax = 120

// event is something that will happen.
type event struct {
	at  time.Duration
	seq uint64
	// on is the node whose process it belongs to, nil for none; it does not happen when that process is gone, and waits while it stands still.
	on   *node
	life int
	do   func()
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(a, b int) bool {
	return q[a].at < q[b].at || q[a].at == q[b].at && q[a].seq < q[b].seq
}
func (q queue) Swap(a, b int) { q[a], q[b] = q[b], q[a] }
func (q *queue) Push(e any)   { *q = append(*q, e.(event)) }
func (q *queue) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return e
}

// link carries messages one way.
type link struct {
	cutUntil time.Duration
	// last is when the last message of the present connection arrives: order is kept within it.
	last time.Duration
}

type world struct {
	o     Options
	rng   *rand.Rand
	now   time.Duration
	seq   uint64
	queue queue
	nodes []*node
	links []link
	ctl   *controller
	topic kafka.TopicID
	truth []*truth

	// lossy is the node with a lossy fault that the cluster has not got over, or nil.
	lossy   *node
	healed  bool
	values  uint64
	clients []*client
	// Rare counts the rare states that were reached.
	rare  map[string]int
	lines []string
}

// violation ends a run.
type violation struct{ text string }

func (w *world) fail(format string, args ...any) {
	panic(violation{fmt.Sprintf(format, args...)})
}

func (w *world) trace(format string, args ...any) {
	if len(w.lines) == traceMax {
		w.lines = append(w.lines[:0], w.lines[traceMax/2:]...)
	}
	w.lines = append(w.lines, fmt.Sprintf("%10v ", w.now)+fmt.Sprintf(format, args...))
}

// after has something done on a node, or with nil anywhere, in a while.
func (w *world) after(d time.Duration, on *node, do func()) {
	w.seq++
	e := event{at: w.now + d, seq: w.seq, on: on, do: do}
	if on != nil {
		e.life = on.life
	}
	heap.Push(&w.queue, e)
}

// between returns a random duration of [low, high).
func (w *world) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.rng.Int64N(int64(high-low)))
}

func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }

// link returns the link between two places: the nodes by index, then the controller.
func (w *world) link(from, to int) *link { return &w.links[from*(len(w.nodes)+1)+to] }

// controllerAt is the controller's place among the links.
func (w *world) controllerAt() int { return len(w.nodes) }

// send carries a message. It may come late, after the heal of a cut link, or not at all; it comes in order with what is sent on the same
// connection. to is the node that receives it, nil for the controller.
func (w *world) send(from, at int, to *node, do func()) {
	l := w.link(from, at)
	arrives := w.now + w.between(w.o.Delay/2, 2*w.o.Delay)
	switch {
	case l.cutUntil > w.now && w.chance(50):
		return // lost with its connection
	case l.cutUntil > w.now:
		arrives = l.cutUntil + w.between(0, w.o.Delay)
	case !w.healed && w.chance(2):
		arrives += w.between(0, 3*time.Second) // on a connection that was given up; the next one overtakes it
		w.after(arrives-w.now, to, do)
		return
	}
	arrives = max(arrives, l.last)
	l.last = arrives
	w.after(arrives-w.now, to, do)
}

// step makes the next event happen and reports whether there was one.
func (w *world) step() bool {
	for len(w.queue) > 0 {
		e := heap.Pop(&w.queue).(event)
		w.now = max(w.now, e.at)
		if n := e.on; n != nil {
			if !n.up || n.life != e.life {
				continue
			}
			if n.frozenUntil > w.now {
				e.at = n.frozenUntil
				heap.Push(&w.queue, e)
				continue
			}
		}
		e.do()
		return true
	}
	return false
}

// every does something on a node again and again, as long as its process lives.
func (w *world) every(d time.Duration, on *node, do func()) {
	w.after(w.between(d/2, d+d/2), on, func() {
		do()
		w.every(d, on, do)
	})
}

// wall is the time as the cores see it.
func (w *world) wall() time.Time { return epochZero.Add(w.now) }
