package quorum

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/peer"
)

// arrival is Raft messages of one frame and the process they came from.
type arrival struct {
	from     peer.Identity
	messages []*raftpb.Message
}

// transport is what the loop knows of the other members.
type transport struct {
	// heard is when a raft id was last heard, by the monotonic clock, and routes is the node behind it.
	heard  map[uint64]time.Time
	routes map[uint64]kafka.NodeID
	// starts are the highest start numbers seen of each directory: what an older process of it says is not heard any more.
	starts map[kafka.DirectoryID]uint64
	// refused are the processes that were refused, so that each is logged once.
	refused map[kafka.DirectoryID]uint64
}

func newTransport() transport {
	return transport{heard: map[uint64]time.Time{}, routes: map[uint64]kafka.NodeID{}, starts: map[kafka.DirectoryID]uint64{}, refused: map[kafka.DirectoryID]uint64{}}
}

// handle registers what this package answers with the peers.
func (q *Quorum) handle() {
	q.peers.HandleOneWay(peer.KindRaft, func() peer.Message { return &raftMessages{} }, func(from peer.Identity, m peer.Message) {
		select {
		case q.arrivals <- arrival{from: from, messages: m.(*raftMessages).messages}:
		default: // Raft takes a message that does not come for a lost one.
		}
	})
	q.peers.HandleRequest(peer.KindForming, func() peer.Message { return &formingAsk{} }, func(_ context.Context, _ peer.Identity, m peer.Message) (peer.Message, error) {
		return q.answerForming(m.(*formingAsk)), nil
	})
	q.peers.HandleRequest(peer.KindMetadataFetch, func() peer.Message { return &metadataFetch{} }, func(ctx context.Context, _ peer.Identity, m peer.Message) (peer.Message, error) {
		return q.answerFetch(ctx, m.(*metadataFetch))
	})
	q.peers.HandleRequest(peer.KindRaftSnapshot, func() peer.Message { return &pieceAsk{} }, func(ctx context.Context, from peer.Identity, m peer.Message) (peer.Message, error) {
		return q.answerPiece(ctx, from, m.(*pieceAsk))
	})
	q.peers.HandleRequest(peer.KindMembership, func() peer.Message { return &membership{} }, func(ctx context.Context, from peer.Identity, m peer.Message) (peer.Message, error) {
		return q.answerMembership(ctx, from, m.(*membership))
	})
}

// onLoop runs do in the loop's goroutine and waits for it. An error of do ends the loop. Errors: ErrStopped, that of ctx.
func (q *Quorum) onLoop(ctx context.Context, do func(*loop) error) error {
	done := make(chan struct{})
	select {
	case q.tasks <- func(l *loop) error { defer close(done); return do(l) }:
		<-done
		return nil
	case <-q.stopped:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// spoken are the messages that members send each other by themselves. Proposals, transfers and Raft's local messages are not among them.
func spoken(t raftpb.MessageType) bool {
	switch t {
	case raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp,
		raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp, raftpb.MsgTimeoutNow:
		return true
	}
	return false
}

// arrive steps what other members have sent, and some of what waits behind it.
func (l *loop) arrive(a arrival) error {
	for n := 1; ; n++ {
		if l.admits(a.from) {
			for _, m := range a.messages {
				if err := l.stepRemote(a.from, m); err != nil {
					return err
				}
			}
		}
		if n == arrivalsPerTurn {
			return nil
		}
		select {
		case a = <-l.q.arrivals:
		default:
			return nil
		}
	}
}

// admits says whether a process may take part. Its start number must not be below one already known of its directory: its disk was restored,
// and may have forgotten a vote or an entry. A directory without a row in the table is heard: the table here may be an old one, and whoever
// leads now may have come later. It counts for nothing unless it is in the configuration, and what is there has a row.
func (l *loop) admits(from peer.Identity) bool {
	id, err := raftID(from.Directory)
	if err != nil || from.Cluster != l.image.ClusterID() {
		return false
	}
	if row, ok := findVoter(l.image.Voters(), id); ok && (row.Directory != from.Directory || row.Node != from.Node) {
		return false
	}
	known := l.starts[from.Directory]
	if b := l.image.Broker(from.Node); b != nil && b.Directory == from.Directory {
		known = max(known, b.StartNumber)
	}
	if from.Start < known {
		if l.refused[from.Directory] != from.Start {
			l.refused[from.Directory] = from.Start
			l.q.log.Error("a voter is refused: its data directory was restored to an earlier state; empty it, and it joins anew",
				"node", from.Node, "directory", from.Directory.Hex(), "start", from.Start, "known", known)
		}
		return false
	}
	if len(l.heard) >= heardMax {
		l.transport = newTransport() // years of replaced disks; who is there is heard again at once
	}
	l.starts[from.Directory], l.heard[id], l.routes[id] = from.Start, time.Now(), from.Node
	return true
}

// route is the node behind a raft id: by the table, or as it was heard.
func (l *loop) route(id uint64) (kafka.NodeID, bool) {
	if row, ok := findVoter(l.image.Voters(), id); ok {
		return row.Node, true
	}
	node, ok := l.routes[id]
	return node, ok
}

// stepRemote steps one message. Not being a member by its own configuration, this node hears nothing: everything it has then is
// committed, and stays so. It learns that it is one by fetching (observe.go).
func (l *loop) stepRemote(from peer.Identity, m *raftpb.Message) error {
	id, _ := raftID(from.Directory)
	if m.GetTo() != l.self || m.GetFrom() != id || !spoken(m.GetType()) || !l.member() {
		return nil
	}
	if m.GetType() == raftpb.MsgHeartbeat && m.GetCommit() > l.last && m.GetTerm() >= l.node.BasicStatus().GetTerm() {
		// The leader tells a follower of commits only as far as the follower has acknowledged entries.
		return fmt.Errorf("%w: the leader counts on entry %d, and the log ends with %d", ErrRestored, m.GetCommit(), l.last)
	}
	// Errors are about messages from peers that raft does not know.
	_ = l.node.Step(m)
	return nil
}

// member says whether this directory takes part in Raft, as a voter or a learner: by the configuration and by the table.
func (l *loop) member() bool { return isMember(l.conf, l.self) }

// isMember says whether an id is in a configuration.
func isMember(conf *raftpb.ConfState, id uint64) bool {
	return slices.Contains(conf.GetVoters(), id) || slices.Contains(conf.GetVotersOutgoing(), id) ||
		slices.Contains(conf.GetLearners(), id) || slices.Contains(conf.GetLearnersNext(), id)
}

// send hands messages to the peers, those to one member together and in order.
func (l *loop) send(messages []*raftpb.Message) {
	if len(messages) == 0 || l.q.peers == nil || !l.member() {
		return
	}
	var order []uint64
	to := map[uint64][]*raftpb.Message{}
	for _, m := range messages {
		if m.GetType() == raftpb.MsgSnap {
			l.offerSnapshot(m)
			continue
		}
		if to[m.GetTo()] == nil {
			order = append(order, m.GetTo())
		}
		to[m.GetTo()] = append(to[m.GetTo()], m)
	}
	for _, id := range order {
		node, ok := l.route(id)
		if !ok {
			continue
		}
		for _, frame := range frames(to[id]) {
			if err := l.q.peers.Send(node, frame); err != nil {
				l.node.ReportUnreachable(id)
				break
			}
		}
	}
}

// frames splits messages so that none is larger than a frame may be.
func frames(messages []*raftpb.Message) (out []*raftMessages) {
	size := 0
	for _, m := range messages {
		n := 0
		for _, e := range m.GetEntries() {
			n += len(e.GetData())
		}
		if len(out) == 0 || size+n > frameEntriesMax {
			out, size = append(out, &raftMessages{}), 0
		}
		size += n
		last := out[len(out)-1]
		last.messages = append(last.messages, m)
	}
	return out
}

// silentFor is how long a member has not been heard, counted at most from the moment this node began to lead.
func (l *loop) silentFor(id uint64) time.Duration {
	since := l.ledSince
	if at, ok := l.heard[id]; ok && at.After(since) {
		since = at
	}
	return time.Since(since)
}

// snapshotStatus is what raft is told about an offered snapshot.
func snapshotStatus(err error) raft.SnapshotStatus {
	if err != nil {
		return raft.SnapshotFailure
	}
	return raft.SnapshotFinish
}
