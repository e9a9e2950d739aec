package isr

import "slices"

// lags says that a member no longer belongs into the ISR: it has not stored in time what the leader had written, it cannot be heard, or it
// has lost what it had stored. The leader never lags: its end is the measure. A member that the leader has not heard of in this epoch has nothing
// that counts, and lags when the epoch is replica.lag.max old.
func (l *Leader) lags(r *progress) bool {
	return r.node != l.self && (r.lost || l.silent(r) || r.counted() < l.marks.required)
}

// sheds says that a replica is to lose its place in ISR or ELR because it has lost bytes (I4). One that has none to lose is forgiven:
// from there on it counts from what it has.
func (l *Leader) sheds(r *progress) bool {
	return r.lost && (r.member || slices.Contains(l.state.ELR, r.node))
}

// forgive ends the mark of those whose loss the controller has taken in.
func (l *Leader) forgive() {
	for i := range l.replicas {
		if r := &l.replicas[i]; r.lost && !l.sheds(r) {
			r.lost = false
		}
	}
}
