package sim

import (
	"slices"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// truth is what has been committed in a partition: every record that any leader's watermark has passed, in order from offset 0. Whatever
// any replica, leader or client does must agree with it.
type truth struct {
	entries []entry
	// start is the highest log start that anybody has asked for: below it records may be gone.
	start kafka.Offset
	// leaders are the processes that led in each epoch (I3).
	leaders map[kafka.LeaderEpoch]process
	acked   int
}

type process struct {
	n    *node
	life int
}

func (t *truth) end() kafka.Offset { return kafka.Offset(len(t.entries)) }

// begins is checked when a leadership begins: one process an epoch (I3), complete (P14).
func (r *replica) begins() {
	w, t := r.n.w, r.n.w.truth[r.p]
	epoch := r.state.LeaderEpoch
	me := process{r.n, r.n.life}
	if who, taken := t.leaders[epoch]; taken && who != me {
		w.fail("I3: partition %d epoch %d is led by %v process %d and by %v process %d", r.p, epoch, who.n, who.life, me.n, me.life)
	}
	t.leaders[epoch] = me
	if r.disk.last() > epoch {
		w.fail("I3: %v leads partition %d in epoch %d and has records of epoch %d", r.n, r.p, epoch, r.disk.last())
	}
	if w.state(w.ctl.committed, r.p).LeaderEpoch == epoch { // else it is deposed already and will find out
		r.complete("P14: a leader", t.end())
	}
	r.checked = min(r.core.HighWatermark(), t.end())
}

// wrote is checked when a leader appends.
func (r *replica) wrote() {
	t := r.n.w.truth[r.p]
	if who := t.leaders[r.state.LeaderEpoch]; who != (process{r.n, r.n.life}) || r.core.Epoch() != r.state.LeaderEpoch {
		r.n.w.fail("I3: %v appends to partition %d in epoch %d, which is led by %v", r.n, r.p, r.state.LeaderEpoch, who.n)
	}
}

// complete says that a replica holds everything committed below an end.
func (r *replica) complete(what string, end kafka.Offset) {
	w, t := r.n.w, r.n.w.truth[r.p]
	if r.disk.start > t.start {
		w.fail("%s: %v partition %d begins at %d, nobody has asked for more than %d", what, r.n, r.p, r.disk.start, t.start)
	}
	if r.disk.end() < end {
		w.fail("%s: %v partition %d ends at %d, below the true watermark %d", what, r.n, r.p, r.disk.end(), end)
	}
	r.agrees(what, r.disk.start, end)
}

// agrees says that a replica holds the committed records of a range.
func (r *replica) agrees(what string, from, to kafka.Offset) {
	t := r.n.w.truth[r.p]
	for o := max(from, r.disk.start); o < to; o++ {
		if have := r.disk.at(o); have != t.entries[o] {
			r.n.w.fail("%s: %v partition %d offset %d holds %v, committed is %v", what, r.n, r.p, o, have, t.entries[o])
		}
	}
}

// durable is the end of what a replica keeps whatever fair thing happens to it.
func (r *replica) durable() kafka.Offset {
	if r.n.w.o.Synced[r.p] {
		return r.disk.synced
	}
	return r.disk.end()
}

// advanced is checked when a leader's watermark has moved: it agrees with what was committed before (P2), and every node that may lead holds
// what it passed (I1, I2, P15, P18).
func (r *replica) advanced() {
	w, t := r.n.w, r.n.w.truth[r.p]
	hw := r.core.HighWatermark()
	if hw > r.disk.end() {
		w.fail("I2: %v partition %d: the watermark %d is above the end %d", r.n, r.p, hw, r.disk.end())
	}
	r.agrees("P2", r.checked, min(hw, t.end()))
	r.checked = hw
	old := t.end()
	if hw <= old {
		return
	}
	for o := old; o < hw; o++ {
		t.entries = append(t.entries, r.disk.at(o))
	}
	s := w.state(w.ctl.committed, r.p)
	held := 0
	for _, id := range slices.Concat(s.ISR, s.ELR) {
		m := w.nodes[id-1].reps[r.p]
		if m.n.lossy[r.p] {
			continue // what it has lost it had; the controller will hear of it before it may lead
		}
		held++
		if m.durable() < hw {
			w.fail("I2: %v partition %d: watermark %d, but %v, which may lead, keeps only %d (ISR %v, ELR %v)", r.n, r.p, hw, m.n, m.durable(), s.ISR, s.ELR)
		}
		m.agrees("P11", old, hw)
	}
	if held < w.o.MinISR && w.lossy == nil {
		w.fail("P18: %v partition %d: watermark %d is held by %d of those that may lead (ISR %v, ELR %v)", r.n, r.p, hw, held, s.ISR, s.ELR)
	}
}

// dropped is checked when a crash takes records: what counted is not among them, unless the fault is a lossy one.
func (r *replica) dropped(keep kafka.Offset, lossy bool) {
	if !lossy {
		r.losesNothing("P1: a crash", keep)
	}
}

// losesNothing says that no committed record is among those from an offset on, if the replica is one that may lead (P17). Any other may
// follow a leader that is deposed by now, and cut what it is to copy again; it is compared in full when it comes back in.
func (r *replica) losesNothing(what string, keep kafka.Offset) {
	t := r.n.w.truth[r.p]
	s := r.n.w.state(r.n.w.ctl.committed, r.p)
	if id := r.n.id; r.n.lossy[r.p] || !slices.Contains(s.ISR, id) && !slices.Contains(s.ELR, id) {
		return
	}
	for o := max(keep, r.disk.start, t.start); o < min(r.disk.end(), t.end()); o++ {
		if r.disk.at(o) == t.entries[o] {
			r.n.w.fail("%s takes committed offset %d from %v partition %d", what, o, r.n, r.p)
		}
	}
}

func (w *world) state(img *metadata.Image, p int) kafka.PartitionState {
	if t := img.TopicByID(w.topic); t != nil && p < len(t.Partitions) {
		return t.Partitions[p]
	}
	return kafka.PartitionState{}
}

// committed is checked for every change of the metadata.
func (w *world) committed(old, img *metadata.Image) {
	if img.Version() <= old.Version() {
		w.fail("I13: Image %d follows %d", img.Version(), old.Version())
	}
	for p := range w.truth {
		was, is := w.state(old, p), w.state(img, p)
		if was.PartitionEpoch != is.PartitionEpoch || was.LeaderEpoch != is.LeaderEpoch {
			w.changed(p, was, is)
		}
	}
	w.settleLosses(img)
}

func (w *world) changed(p int, was, is kafka.PartitionState) {
	w.trace("partition %d: leader %d epoch %d/%d replicas %v ISR %v ELR %v last known %v", p, is.Leader, is.LeaderEpoch, is.PartitionEpoch, is.Replicas, is.ISR, is.ELR, is.LastKnown)
	fresh := len(was.Replicas) == 0
	if is.LeaderEpoch < was.LeaderEpoch || is.PartitionEpoch < was.PartitionEpoch {
		w.fail("I3: partition %d: epochs %d/%d follow %d/%d", p, is.LeaderEpoch, is.PartitionEpoch, was.LeaderEpoch, was.PartitionEpoch)
	}
	if is.Leader != was.Leader && is.LeaderEpoch == was.LeaderEpoch && !fresh {
		w.fail("I3: partition %d: another leader in epoch %d", p, is.LeaderEpoch)
	}
	could := slices.Concat(was.ISR, was.ELR)
	if is.Leader != kafka.NoNode && is.LeaderEpoch != was.LeaderEpoch && !fresh {
		switch {
		case !slices.Contains(could, is.Leader) && (len(was.Adding) == 0 || !slices.Contains(is.ISR, is.Leader)): // a move may end with the election of who joined with that change
			w.fail("I4: partition %d: %d leads, of ISR %v and ELR %v", p, is.Leader, was.ISR, was.ELR)
		case slices.Contains(was.ELR, is.Leader):
			w.rare["ELR election"]++
		}
	}
	for _, id := range slices.Concat(is.ISR, is.ELR) {
		switch {
		case !slices.Contains(is.Replicas, id):
			w.fail("I4: partition %d: %d is in ISR %v or ELR %v and no replica (%v)", p, id, is.ISR, is.ELR, is.Replicas)
		case slices.Contains(is.ISR, id) && slices.Contains(is.ELR, id):
			w.fail("I4: partition %d: %d is in ISR and ELR", p, id)
		case !slices.Contains(could, id) && !w.nodes[id-1].lossy[p] && !fresh:
			w.nodes[id-1].reps[p].complete("P15: a new member", w.truth[p].end())
			if d := w.nodes[id-1].reps[p].durable(); d < w.truth[p].end() {
				w.fail("P15: %d joins partition %d and keeps %d of %d", id, p, d, w.truth[p].end())
			}
		}
	}
	if len(is.ISR) < len(was.ISR) && len(is.ISR) == int(is.EffectiveMinISR) {
		w.rare["ISR shrinks to the minimum"]++
	}
	if len(is.ISR) < int(is.EffectiveMinISR) && len(was.ISR) >= int(is.EffectiveMinISR) {
		w.rare["ISR below the minimum"]++
	}
}

// settleLosses notes where the controller has judged a lossy fault (P16), and when the cluster has got over one.
func (w *world) settleLosses(img *metadata.Image) {
	n := w.lossy
	if n == nil {
		return
	}
	b := img.Broker(n.id)
	whole := n.ready
	for p := range w.truth {
		s := w.state(img, p)
		member := slices.Contains(s.ISR, n.id) || slices.Contains(s.ELR, n.id)
		if n.lossy[p] && member && n.up && b != nil && b.Incarnation == n.incarnation && !n.foundDamaged[p] {
			w.fail("P16: %v may have lost records of partition %d, has registered, and is in ISR %v or ELR %v", n, p, s.ISR, s.ELR)
		}
		if !member && n.up && b != nil && b.Incarnation == n.incarnation && !n.foundDamaged[p] {
			n.lossy[p] = false
		}
		if slices.Contains(s.Replicas, n.id) && !slices.Contains(s.ISR, n.id) || n.lossy[p] {
			whole = false
		}
	}
	if whole {
		w.trace("%v has got over its loss", n)
		w.lossy = nil
	}
}

// whole is checked at the end of a run, long after everything was healed (P1, P12, P44).
func (w *world) whole() {
	for _, n := range w.nodes {
		w.trace("%v: up %v, process %d, ready %v, leaving %v, epoch %d, Image %d of %d, registration %+v", n, n.up, n.life, n.ready,
			n.leaving, n.epoch, n.image.Version(), w.ctl.committed.Version(), w.ctl.committed.Broker(n.id))
	}
	for p, t := range w.truth {
		s := w.state(w.ctl.committed, p)
		if s.Leader == kafka.NoNode {
			w.fail("P44: partition %d has no leader (ISR %v, ELR %v, last known %v)", p, s.ISR, s.ELR, s.LastKnown)
		}
		if len(s.ISR) != len(s.Replicas) || len(s.ELR) > 0 {
			w.fail("P44: partition %d: ISR %v, ELR %v of replicas %v", p, s.ISR, s.ELR, s.Replicas)
		}
		if t.acked == 0 {
			w.fail("P44: partition %d took no record after everything was healed", p)
		}
		for _, id := range s.Replicas {
			r := w.nodes[id-1].reps[p]
			r.complete("P1: at the end", t.end())
		}
	}
	for _, c := range w.clients {
		for _, a := range c.acked {
			t := w.truth[a.p]
			if a.at >= t.end() || t.entries[a.at].value != a.value {
				w.fail("P1: acknowledged value %d is not at offset %d of partition %d", a.value, a.at, a.p)
			}
		}
	}
}
