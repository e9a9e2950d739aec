package isr

import (
	"slices"

	"strandline.dev/internal/kafka"
)

// Start describes the beginning of a leadership.
type Start struct {
	// Self is this node; State.Leader must be it.
	Self kafka.NodeID
	// State is the committed state that grants the epoch.
	State kafka.PartitionState
	// End is the log's written end when the epoch began: the start of the epoch.
	End kafka.Offset
	// Stored is the leader's own stored end.
	Stored kafka.Offset
	// HighWatermark is the one the node knew before it led: as follower, or the lower bound found at recovery.
	HighWatermark kafka.Offset
}

// Effects is what an event asks of the shell. The zero value asks for nothing.
type Effects struct {
	// Advanced says that the high watermark moved, to HighWatermark.
	Advanced      bool
	HighWatermark kafka.Offset
	// BelowMinISR says that this event took the committed ISR below the effective min ISR: parked acks=all publishes can no
	// longer be confirmed by it, and fetches from below the watermark are served again (I2).
	BelowMinISR bool
	// Lost says that the replica LostReplica no longer holds bytes it had counted for.
	Lost        bool
	LostReplica kafka.NodeID
}

// Leader is the leadership of one partition in one leader epoch.
type Leader struct {
	self       kafka.NodeID
	state      kafka.PartitionState
	proposed   []kafka.NodeID // nil when no ISR change is open
	epochStart kafka.Offset
	hw         kafka.Offset // only advance (highwatermark.go) sets it after New
	replicas   []progress   // self and every other replica, in the order of state.Replicas
}

// New begins a leadership. Its effects are those of the leader's own stored end: with one replica the watermark may be at
// the end already.
func New(s Start) (*Leader, Effects) {
	l := &Leader{self: s.Self, epochStart: s.End, hw: s.HighWatermark}
	l.adopt(s.State)
	l.replica(s.Self).own(s.Stored)
	return l, l.advance()
}

// Epoch returns the leader epoch this leadership was granted in.
func (l *Leader) Epoch() kafka.LeaderEpoch { return l.state.LeaderEpoch }

// State returns the committed state the leader works by. The caller must not change its slices.
func (l *Leader) State() kafka.PartitionState { return l.state }

// Stored takes in the leader's own stored end.
func (l *Leader) Stored(end kafka.Offset) Effects {
	l.replica(l.self).own(end)
	return l.advance()
}

// Fetched takes in that a replica fetched at an offset which was found free of divergence, in the given leader epoch.
func (l *Leader) Fetched(node kafka.NodeID, epoch kafka.LeaderEpoch, at kafka.Offset) Effects {
	return l.follow(node, epoch, func(r *progress) bool { return r.fetched(at) })
}

// Reported takes in the stored end that a replica reported in the given leader epoch.
func (l *Leader) Reported(node kafka.NodeID, epoch kafka.LeaderEpoch, stored kafka.Offset) Effects {
	return l.follow(node, epoch, func(r *progress) bool { return r.reported(stored) })
}

func (l *Leader) follow(node kafka.NodeID, epoch kafka.LeaderEpoch, f func(*progress) bool) Effects {
	r := l.replica(node)
	if epoch != l.state.LeaderEpoch || r == nil || node == l.self {
		return Effects{} // of another reign, or of a node that holds no replica: says nothing about this one (I3)
	}
	if lost := f(r); lost {
		return Effects{Lost: true, LostReplica: node}
	}
	return l.advance()
}

// Propose opens an ISR change. From now until Update brings a newer partition epoch the watermark also waits for the
// proposed members: the controller may have committed the change although no answer came (C018). Proposing the committed
// ISR again is how an open change is given up (I3).
func (l *Leader) Propose(isr []kafka.NodeID) {
	for _, n := range isr {
		if !slices.Contains(l.proposed, n) {
			// Members of an earlier, still open proposal stay: that one may yet be the one committed.
			l.proposed = append(l.proposed, n)
		}
	}
}

// Update takes in a newer committed state of the same leader epoch; an older or equal one is ignored (I13). It ends an open
// ISR change, whatever its outcome.
func (l *Leader) Update(s kafka.PartitionState) Effects {
	if s.LeaderEpoch != l.state.LeaderEpoch || s.PartitionEpoch <= l.state.PartitionEpoch {
		return Effects{}
	}
	had := l.Admits()
	l.adopt(s)
	l.proposed = nil
	e := l.advance()
	e.BelowMinISR = had && !l.Admits()
	return e
}

// adopt takes ISR, effective min ISR and replicas from one state and keeps what is known of replicas that stay.
func (l *Leader) adopt(s kafka.PartitionState) {
	replicas := make([]progress, 0, len(s.Replicas)+1)
	for _, n := range s.Replicas {
		replicas = append(replicas, l.known(n))
	}
	if !slices.Contains(s.Replicas, l.self) {
		replicas = append(replicas, l.known(l.self))
	}
	l.state, l.replicas = s, replicas
}

func (l *Leader) known(n kafka.NodeID) progress {
	if r := l.replica(n); r != nil {
		return *r
	}
	return newProgress(n)
}

func (l *Leader) replica(n kafka.NodeID) *progress {
	for i := range l.replicas {
		if l.replicas[i].node == n {
			return &l.replicas[i]
		}
	}
	return nil
}
