package isr

import (
	"time"

	"strandline.dev/internal/kafka"
)

// Of a partition without writes its followers say nothing, and are in sync. But one that cannot be heard at all would stay in the ISR until the
// next write, which then waits replica.lag.max for it; and a client that writes to one partition after the other waits as often. So a member
// whose node has been silent towards this one for replica.lag.max lags, whatever it has stored.

// HeardOf takes in when anything was last heard from the node of a replica; the next Tick judges by it. Without it a node counts as heard.
func (l *Leader) HeardOf(node kafka.NodeID, at time.Time) {
	if r := l.replica(node); r != nil {
		r.heardOf = at
	}
}

// silent says that nothing has been heard from a replica's node for replica.lag.max, all of it within this epoch: before it, the follower
// may have had no reason to speak.
func (l *Leader) silent(r *progress) bool {
	if r.heardOf.IsZero() {
		return false
	}
	since := r.heardOf
	if since.Before(l.marks.begun) {
		since = l.marks.begun
	}
	return l.marks.now.Sub(since) >= l.marks.lag
}
