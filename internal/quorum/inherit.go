package quorum

import (
	"context"
	"errors"
	"slices"

	"go.etcd.io/raft/v3"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/peer"
)

// Gone says that a connection which another node had opened has ended. If that node leads and nobody listens at its address any more, its process is
// dead: the voters do not wait for the election time-out. It never blocks. A process that only looks dead costs an election, and no more than that:
// it hears of the newer term.
func (q *Quorum) Gone(who peer.Identity) {
	if !q.isMember.Load() || q.Leadership().Leader != who.Node {
		return
	}
	select {
	case q.gone <- who.Node:
	default: // it is being looked after
	}
}

// inherit looks for leaders that are gone. It ends with ctx.
func (q *Quorum) inherit(ctx context.Context) {
	for {
		select {
		case node := <-q.gone:
			q.inheritFrom(ctx, node)
		case <-ctx.Done():
			return
		}
	}
}

func (q *Quorum) inheritFrom(ctx context.Context, node kafka.NodeID) {
	ctx, cancel := context.WithTimeout(ctx, probeMax)
	defer cancel()
	term := q.Leadership().Term
	if !errors.Is(q.peers.Probe(ctx, node), peer.ErrRefused) {
		return
	}
	for turn := range controllersMax {
		done := false
		if q.onLoop(ctx, func(l *loop) error { done = l.succeed(node, term, turn); return nil }) != nil || done {
			return
		}
		// The one whose turn it was may be dead too, or behind.
		pause(ctx, turnEvery)
	}
}

// succeed forgets a leader that is dead, so that this node votes for another one, and campaigns if it is this node's turn: the voters go one after the
// other, in the order of their ids, or they would split the vote. It says whether there is nothing more to do.
func (l *loop) succeed(dead kafka.NodeID, term uint64, turn int) bool {
	status := l.node.BasicStatus()
	if status.GetTerm() != term || status.RaftState == raft.StateLeader || status.Lead != raft.None && l.nodeOf(status.Lead) != dead {
		return true
	}
	_ = l.node.ForgetLeader()
	heirs := slices.DeleteFunc(slices.Clone(l.conf.GetVoters()), func(id uint64) bool { return l.nodeOf(id) == dead })
	slices.Sort(heirs)
	if i := slices.Index(heirs, l.self); i >= 0 && i == turn {
		_ = l.node.Campaign()
	}
	return turn >= len(heirs)
}
