package isr

import (
	"slices"

	"strandline.dev/internal/kafka"
)

// The watermark rule (I1, I2). The high watermark is the end of what can not be lost by a clean election:
//
//   - Every node that could be elected must hold it. Those are the members of the committed ISR, and, while a change is open,
//     of the proposed one: the controller may have committed it without our knowing. Together: the maximal ISR (C018).
//   - It must be held by enough of them. Only committed members count for that, and the number comes from the same state.
//   - The leader counts like any other member, and is counted even when it is not a member: a watermark above its own stored
//     end could be lost by its power cut and then seen to move back.

// HighWatermark is the end (exclusive) of what is committed. It never moves back while this Leader lives.
func (l *Leader) HighWatermark() kafka.Offset { return l.hw }

// Committed says whether everything below end is committed.
func (l *Leader) Committed(end kafka.Offset) bool { return l.hw >= end }

// advance moves the watermark as far as the rule allows. It is the only place that sets hw after New.
func (l *Leader) advance() Effects {
	if !l.Admits() {
		return Effects{}
	}
	end := l.replica(l.self).counted()
	for i := range l.replicas {
		r := &l.replicas[i]
		if l.inMaximalISR(r.node) {
			end = min(end, r.counted())
		}
	}
	for _, n := range l.state.ISR {
		if l.replica(n) == nil {
			end = kafka.NoOffset // an ISR member that is no replica can not be known to hold anything
		}
	}
	for _, n := range l.proposed {
		if l.replica(n) == nil {
			end = kafka.NoOffset
		}
	}
	if end <= l.hw {
		return Effects{}
	}
	l.hw = end
	return Effects{Advanced: true, HighWatermark: end}
}

func (l *Leader) inMaximalISR(n kafka.NodeID) bool {
	return slices.Contains(l.state.ISR, n) || slices.Contains(l.proposed, n)
}
