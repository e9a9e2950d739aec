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
	// Change says that another ISR may be due: call Propose.
	Change bool
}

// Leader is the leadership of one partition in one leader epoch.
type Leader struct {
	self       kafka.NodeID
	state      kafka.PartitionState
	proposed   []kafka.NodeID // nil when no ISR change is open
	refused    bool           // the controller refused to take somebody in, in this partition epoch
	epochStart kafka.Offset
	hw         kafka.Offset // only advance (highwatermark.go) sets it after New
	replicas   []progress   // self and every other replica, in the order of state.Replicas
	marks      marks        // ends of the leader's log, to measure lag by
}

// New begins a leadership. Its effects are those of the leader's own stored end: with one replica the watermark may be at
// the end already.
func New(s Start) (*Leader, Effects) {
	l := &Leader{self: s.Self, epochStart: s.End, hw: s.HighWatermark, marks: marks{required: kafka.NoOffset}}
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

// Fetched takes in that a replica fetched at an offset which was found free of divergence.
func (l *Leader) Fetched(from Origin, at kafka.Offset) Effects {
	r := l.speaker(from)
	if r == nil {
		return Effects{}
	}
	return l.heard(r, r.fetched(from.Sequence, at))
}

// Reported takes in the stored end and the log start that a replica reported.
func (l *Leader) Reported(from Origin, stored, start kafka.Offset) Effects {
	r := l.speaker(from)
	if r == nil {
		return Effects{}
	}
	return l.heard(r, r.reported(from.Sequence, stored, start))
}

// speaker is the replica that speaks, or nil when what it says is not about this reign, or not of its present process (I3), or when
// it holds no replica.
func (l *Leader) speaker(from Origin) *progress {
	r := l.replica(from.Node)
	if from.Epoch != l.state.LeaderEpoch || r == nil || from.Node == l.self || !r.heard(from.Broker) {
		return nil
	}
	return r
}

// heard draws the conclusions from what a replica said.
func (l *Leader) heard(r *progress, lost bool) Effects {
	if lost {
		sheds := l.sheds(r)
		l.forgive()
		return Effects{Lost: true, LostReplica: r.node, Change: sheds}
	}
	e := l.advance()
	e.Change = !r.member && l.proposed == nil && l.joins(r)
	return e
}

// StartHeld is the smallest log start among the other members of the maximal ISR, or the leader's own, given, where there are none:
// what lies below it comes back with no clean election.
func (l *Leader) StartHeld(own kafka.Offset) kafka.Offset {
	for i := range l.replicas {
		if r := &l.replicas[i]; r.node != l.self && l.inMaximalISR(r.node) {
			own = min(own, r.start)
		}
	}
	return own
}

// Update takes in a newer committed state of the same leader epoch; an older or equal one is ignored (I13). It ends an open
// ISR change, whatever its outcome. Whether yet another change is due shows at the next Tick or word of a replica.
func (l *Leader) Update(s kafka.PartitionState) Effects {
	if s.LeaderEpoch != l.state.LeaderEpoch || s.PartitionEpoch <= l.state.PartitionEpoch {
		return Effects{}
	}
	had := l.Admits()
	l.adopt(s)
	l.proposed, l.refused = nil, false
	l.forgive()
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
	for i := range replicas {
		replicas[i].member = slices.Contains(s.ISR, replicas[i].node)
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
