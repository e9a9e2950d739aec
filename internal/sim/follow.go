package sim

import (
	"time"

	"strandline.dev/internal/isr"
	"strandline.dev/internal/kafka"
)

// follow makes the replica follow the leader of its state, if there is one.
func (r *replica) follow() {
	if r.role == following && r.core == nil && r.followed == [2]int64{int64(r.state.Leader), int64(r.state.LeaderEpoch)} {
		return
	}
	r.stepDown(following)
	r.followed = [2]int64{int64(r.state.Leader), int64(r.state.LeaderEpoch)}
	r.cuts = 0
	if r.state.Leader != kafka.NoNode {
		r.fetch()
	}
}

func (r *replica) origin() isr.Origin {
	r.n.sequence++
	return isr.Origin{Node: r.n.id, Broker: r.n.epoch, Epoch: r.state.LeaderEpoch, Sequence: r.n.sequence}
}

// leader is the replica that this one follows, by its own Image.
func (r *replica) leader() *replica { return r.n.w.nodes[r.state.Leader-1].reps[r.p] }

// fetch asks the leader for what follows.
func (r *replica) fetch() {
	w, n, pull := r.n.w, r.n, r.pull
	to := r.leader()
	if to.n == n {
		return
	}
	q := fetchRequest{from: r.origin(), at: r.disk.end(), last: r.disk.last(), stored: r.stored(), start: r.disk.start}
	answered := false
	w.send(n.index, to.n.index, to.n, func() {
		to.serve(q, func(a fetchAnswer) {
			w.send(to.n.index, n.index, n, func() {
				if r.pull == pull && !answered {
					answered = true
					r.absorb(a)
				}
			})
		})
	})
	w.after(answerMax, n, func() {
		if r.pull == pull && !answered {
			answered = true // on another connection, whatever the first one still brings
			r.fetch()
		}
	})
}

// report tells the leader what is stored.
func (r *replica) report() {
	if r.role != following || r.state.Leader == kafka.NoNode {
		return
	}
	to := r.leader()
	from, stored, start := r.origin(), r.stored(), r.disk.start
	r.n.w.send(r.n.index, to.n.index, to.n, func() {
		if to.core != nil {
			to.carry(to.core.Reported(from, stored, start))
		}
	})
}

// absorb does what the leader's answer asks for.
func (r *replica) absorb(a fetchAnswer) {
	w := r.n.w
	again := w.between(0, 5*time.Millisecond)
	switch {
	case a.wrong:
		again = w.between(20*time.Millisecond, 300*time.Millisecond)
	case a.verdict == isr.TooOld:
		if isr.Outdated(a.start, r.disk.end()) {
			w.rare["reset"]++
			r.losesNothing("I5: a reset", r.disk.start)
			r.disk.reset(a.start)
			r.syncTo, r.hw = a.start, a.start
		}
	case a.verdict == isr.Diverges:
		r.absorbCut(a.diverging)
	default:
		r.cuts = 0
		r.absorbRecords(a)
	}
	pull := r.pull
	w.after(again, r.n, func() {
		if r.pull == pull {
			r.fetch()
		}
	})
}

func (r *replica) absorbCut(at kafka.EpochEnd) {
	w := r.n.w
	start, end := r.disk.start, r.disk.end()
	to, anew := isr.CutAt(at, r.disk.epochEnd(at.Epoch), start, end)
	w.rare["truncation"]++
	if r.cuts++; r.cuts == 2 {
		w.rare["diverging twice in a row"]++
	}
	if to >= end && !anew && start < end {
		w.fail("I5: %v partition %d is told to cut at %v and would keep everything up to %d", r.n, r.p, at, end)
	}
	w.trace("%v cuts partition %d from %d to %d", r.n, r.p, end, to)
	if anew {
		r.losesNothing("I5: a reset", start)
		r.disk.reset(to)
		r.syncTo = r.disk.start
	} else {
		r.cut(to)
	}
	r.hw = min(r.hw, r.disk.end())
}

func (r *replica) absorbRecords(a fetchAnswer) {
	if len(a.entries) > 0 {
		if a.at != r.disk.end() {
			return // an answer to an older question
		}
		r.disk.append(a.entries...)
		if r.n.w.o.Synced[r.p] {
			r.sync()
		} else {
			r.storedMoved()
		}
	}
	r.hw = isr.FollowerWatermark(r.hw, a.hw, r.disk.start, r.disk.end())
	if to := min(a.start, r.disk.end()); to > r.disk.start {
		r.disk.advance(to)
		r.hw = max(r.hw, to)
	}
}
