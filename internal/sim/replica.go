package sim

import (
	"slices"
	"time"

	"strandline.dev/internal/isr"
	"strandline.dev/internal/kafka"
)

type role uint8

const (
	idle role = iota
	leading
	following
)

// replica is one partition on one node.
type replica struct {
	n       *node
	p       int
	disk    disk
	present bool // the node has a directory for it
	offline bool // damaged, and not yet judged

	state kafka.PartitionState
	role  role
	hw    kafka.Offset // while core is nil
	core  *isr.Leader
	waits []wait
	// parked are the fetches of followers that have everything.
	parked []func()
	// recovered: a sync has followed the recovery, so what is here counts.
	recovered bool
	syncing   bool
	// syncTo is what the sync under way will have stored.
	syncTo kafka.Offset
	// asking: an ISR proposal waits for its answer.
	asking bool
	// pull numbers what is followed: the leader and the epoch. asked is when the last fetch was sent, or 0.
	pull, cuts int
	// followed is the leader and the epoch that are followed.
	followed [2]int64
	asked    time.Duration
	// checked is the end up to which this leadership was compared with what is committed.
	checked kafka.Offset
}

// wait is a publish that is not acknowledged.
type wait struct {
	end  kafka.Offset
	done func(ok bool)
}

// recover begins a process's life of the log.
func (r *replica) recover() {
	r.die()
	r.state = kafka.PartitionState{Leader: kafka.NoNode, LeaderEpoch: kafka.NoEpoch, PartitionEpoch: -1}
	r.hw = min(max(r.disk.hw, r.disk.start), r.disk.end())
	r.recovered = false
	r.sync()
}

// die drops what is in memory only.
func (r *replica) die() {
	r.stepDown(idle)
	r.syncing, r.asking, r.recovered = false, false, false
	r.state.PartitionEpoch = -1
}

// loseUnsynced is what a power cut does.
func (r *replica) loseUnsynced() {
	w := r.n.w
	if end := r.disk.end(); end > r.disk.synced {
		keep := r.disk.synced + kafka.Offset(w.rng.Int64N(int64(end-r.disk.synced)+1))
		r.dropped(keep, !w.o.Synced[r.p])
		r.disk.cut(keep)
	}
}

// forget removes the directory.
func (r *replica) forget() {
	r.die()
	r.disk, r.present, r.hw, r.offline = disk{}, false, 0, false
}

// stored is the end that counts as stored by the topic's policy.
func (r *replica) stored() kafka.Offset {
	switch {
	case !r.recovered:
		return r.disk.start
	case r.n.w.o.Synced[r.p]:
		return max(r.disk.synced, r.disk.start)
	}
	return r.disk.end()
}

func (r *replica) hwNow() kafka.Offset {
	if r.core != nil {
		return r.core.HighWatermark()
	}
	return r.hw
}

// sync makes durable what is written, if anybody waits for it.
func (r *replica) sync() {
	w := r.n.w
	if r.syncing || r.recovered && (!w.o.Synced[r.p] || r.disk.synced >= r.disk.end()) {
		return
	}
	r.syncing, r.syncTo = true, r.disk.end()
	takes := w.between(500*time.Microsecond, 8*time.Millisecond)
	if r.n.slowUntil > w.now {
		takes += r.n.slowUntil - w.now
	}
	w.after(takes, r.n, func() {
		if !r.syncing {
			return
		}
		r.syncing, r.recovered = false, true
		r.disk.synced = max(r.disk.synced, min(r.syncTo, r.disk.end()))
		r.storedMoved()
		r.sync()
	})
}

// cut truncates the log.
func (r *replica) cut(to kafka.Offset) {
	r.losesNothing("I5: a truncation", to)
	r.disk.cut(to)
	r.syncTo = min(r.syncTo, to)
}

// storedMoved tells who wants to know.
func (r *replica) storedMoved() {
	if r.core != nil {
		r.carry(r.core.Stored(r.stored()))
	} else if r.role == following {
		r.report()
	}
}

// assign brings the replica to what the Image says.
func (r *replica) assign(s kafka.PartitionState) {
	n := r.n
	if !slices.Contains(s.Replicas, n.id) {
		if r.present && n.registered() {
			n.w.trace("%v gives partition %d up", n, r.p)
			r.forget()
		}
		return
	}
	if !r.present {
		r.present = true
		r.sync()
	}
	if s.PartitionEpoch >= r.state.PartitionEpoch {
		r.state = s
	}
	switch {
	case r.offline || !n.registered():
		r.stepDown(idle)
	case r.state.Leader != n.id:
		r.follow()
	case r.core != nil && r.core.Epoch() == r.state.LeaderEpoch:
		r.carry(r.core.Update(r.state))
	default:
		r.lead()
	}
}

// stepDown ends a leadership or the following of a leader; what is parked fails, its outcome unknown (I3).
func (r *replica) stepDown(to role) {
	if r.core != nil {
		if r.core.Open() {
			r.n.w.rare["leader change with an open proposal"]++
		}
		r.hw = r.core.HighWatermark()
		r.core = nil
	}
	r.role, r.asking, r.asked = to, false, 0
	r.pull++
	r.parked = nil
	r.failWaits()
}

func (r *replica) failWaits() {
	waits := r.waits
	r.waits = nil
	for _, w := range waits {
		w.done(false)
	}
}
