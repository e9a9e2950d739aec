package sim

import (
	"time"

	"strandline.dev/internal/kafka"
)

// client publishes, watches the ends, and deletes old records. It carries leader epochs.
type client struct {
	w *world
	// seen is the highest end that it was shown or that follows from its acknowledgements, epoch the newest leader epoch it knows.
	seen  []kafka.Offset
	epoch []kafka.LeaderEpoch
	acked []ack
}

type ack struct {
	p     int
	at    kafka.Offset
	value uint64
}

func newClient(w *world) *client {
	c := &client{w: w}
	for range w.truth {
		c.seen, c.epoch = append(c.seen, 0), append(c.epoch, kafka.NoEpoch)
	}
	return c
}

// act does one thing and then the next.
func (c *client) act() {
	w := c.w
	p := w.rng.IntN(len(w.truth))
	if r := c.leader(p); r != nil {
		switch {
		case w.chance(2):
			r.n.w.after(w.between(0, w.o.Delay), r.n, func() { r.deleteTo(r.disk.start + kafka.Offset(w.rng.IntN(20))) })
		case w.chance(30):
			w.after(w.between(0, w.o.Delay), r.n, func() { c.watch(r, p) })
		default:
			w.after(w.between(0, w.o.Delay), r.n, func() { c.publish(r, p) })
		}
	}
	w.after(w.between(0, 2*clientEvery), nil, c.act)
}

const clientEvery = 100 * time.Millisecond

// leader is whom the client takes for the leader: any node's opinion, new or old.
func (c *client) leader(p int) *replica {
	n := c.w.nodes[c.w.rng.IntN(len(c.w.nodes))]
	if !n.up {
		return nil
	}
	s := c.w.state(n.image, p)
	if c.w.chance(10) {
		return n.reps[p] // a guess
	}
	if s.Leader == kafka.NoNode || len(s.Replicas) == 0 {
		return nil
	}
	return c.w.nodes[s.Leader-1].reps[p]
}

func (c *client) publish(r *replica, p int) {
	w := c.w
	all := !w.chance(10)
	for range 1 + w.rng.IntN(3) { // a few in flight
		w.values++
		value := w.values
		r.publish(value, all, func(at kafka.Offset, ok, _ bool) {
			if !ok || !all {
				return
			}
			t := w.truth[p]
			if at >= t.end() || t.entries[at].value != value {
				w.fail("I1: %v acknowledges value %d at offset %d of partition %d, which is not committed", r.n, value, at, p)
			}
			if w.healed {
				t.acked++
			}
			c.acked = append(c.acked, ack{p, at, value})
			c.seen[p] = max(c.seen[p], at+1)
			c.epoch[p] = max(c.epoch[p], r.core.Epoch())
		})
	}
}

// watch asks for the end (P9, P10). A leader of an older epoch than the client's is refused by it; what is not settled is not shown, but for
// the one documented exception of I2.
func (c *client) watch(r *replica, p int) {
	if r.core == nil || r.core.Epoch() < c.epoch[p] || r.core.Withheld() {
		return
	}
	c.epoch[p] = r.core.Epoch()
	hw := r.core.HighWatermark()
	if !r.core.Settled() {
		c.w.rare["end shown below the minimum"]++
		return
	}
	if hw < c.seen[p] {
		c.w.fail("P10: a client was shown the end %d of partition %d, and now %d by %v", c.seen[p], p, hw, r.n)
	}
	c.seen[p] = hw
}
