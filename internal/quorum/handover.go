package quorum

import (
	"context"
	"time"
)

// handOverEvery is the time between attempts to hand the leadership over; raft gives one up after an election time-out.
const handOverEvery = 500 * time.Millisecond

// HandOver gives the leadership to the voter that is furthest, and returns when this node does not lead. For a planned stop: without it
// the others wait for an election time-out, and may learn only then what was committed last. Errors: ErrNoLeader (nobody else could lead), ErrStopped, that of
// ctx.
func (q *Quorum) HandOver(ctx context.Context) error {
	for q.inForce() {
		changed := q.LeadershipChanged()
		if !q.Leadership().Leading {
			return nil
		}
		var to uint64
		err := q.onLoop(ctx, func(l *loop) error {
			if to = l.successor(); to != 0 {
				l.node.TransferLeader(to)
			}
			return nil
		})
		switch {
		case err != nil:
			return err
		case to == 0:
			return ErrNoLeader
		}
		select {
		case <-changed:
		case <-time.After(handOverEvery):
		case <-q.stopped:
			return ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// successor is the other voter that was heard lately and has come furthest, or 0.
func (l *loop) successor() uint64 {
	var best, match uint64
	for id, p := range l.node.Status().Progress {
		if id != l.self && !p.IsLearner && p.RecentActive && (best == 0 || p.Match > match || p.Match == match && id < best) {
			best, match = id, p.Match
		}
	}
	return best
}
