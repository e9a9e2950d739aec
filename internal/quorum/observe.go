package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/record"
	"strandline.dev/internal/storage"
)

// An observer fetches committed entries from a voter, or from any node if no voter is there. They are stepped into its own raft core as an append of the leader: written, synced
// and applied on the same road as a voter's. A member that hears of no leader fetches too: it may have been taken out of the configuration while it
// was away, and then nobody else would tell it.

// position is how far the committed entries reach here.
type position struct{ index, term uint64 }

// told is what another node said about who leads. It counts while this node is no member.
type told struct {
	term   uint64
	leader kafka.NodeID
}

// answerFetch answers from what is committed here, now or within the time the asker would wait.
func (q *Quorum) answerFetch(ctx context.Context, m *metadataFetch) (peer.Message, error) {
	if !q.inForce() {
		return nil, errNoCluster
	}
	wait := time.NewTimer(min(time.Duration(max(m.WaitMs, 0))*time.Millisecond, fetchWaitMax))
	defer wait.Stop()
	for told := false; ; {
		led, changed := q.LeadershipChanged(), q.Changed()
		leads, at := q.Leadership(), q.position.Load()
		answer := &metadataFetched{Term: leads.Term, Leader: leads.Leader, Committed: at.index}
		if !q.isMember.Load() {
			answer.Leader = kafka.NoNode // only hearsay: two observers could keep each other in an old belief
		}
		if m.Next <= at.index || m.Next == at.index+1 && m.LastTerm != at.term {
			return answer, q.fillFetch(m, answer)
		}
		if told {
			return answer, nil
		}
		select {
		case <-changed:
		case <-led:
			told = true // the asker wants to know who leads, too
		case <-wait.C:
			told = true
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-q.stopped:
			return nil, ErrStopped
		}
	}
}

// fillFetch reads the entries asked for, or finds that a snapshot is needed.
func (q *Quorum) fillFetch(m *metadataFetch, answer *metadataFetched) error {
	next := kafka.Offset(m.Next)
	newest := q.newest.Load()
	switch {
	case m.Next == 0 || newest == nil:
		answer.Behind = true
	case m.Next == newest.Index+1:
		answer.Behind = m.LastTerm != newest.Term
	case next <= q.metalog.Start():
		answer.Behind = true
	default:
		// The term of an entry in front of the log's start is known only by snapshots.
		answer.Behind = q.metalog.EpochAt(next-1) != kafka.LeaderEpoch(m.LastTerm)
	}
	if answer.Behind || m.Next > answer.Committed {
		return nil
	}
	b, err := q.metalog.Read(next, kafka.Offset(answer.Committed+1), storage.ReadLimits{MaxBytes: fetchBytesMax, AtLeastOne: true}, nil)
	if errors.Is(err, storage.ErrOutOfRange) {
		answer.Behind = true // its prefix has gone meanwhile
		return nil
	}
	answer.Batches = b
	return err
}

// observe fetches while this node is no member, or hears of no leader. It ends with ctx.
func (q *Quorum) observe(ctx context.Context) {
	source, said := 0, time.Time{}
	for ctx.Err() == nil {
		if !q.fetches() {
			if !q.untilLeaderless(ctx) {
				return
			}
			continue
		}
		nodes := q.others()
		if len(nodes) == 0 {
			pause(ctx, fetchPause)
			continue
		}
		node := nodes[source%len(nodes)]
		err := q.fetchFrom(ctx, node)
		if err == nil || ctx.Err() != nil {
			continue
		}
		source++
		if now := time.Now(); errors.Is(err, errAltered) && now.Sub(said) >= alteredSayEvery {
			q.log.Warn("another node's metadata is not taken", "node", node, "err", err)
			said = now
		} else {
			q.log.Debug("metadata could not be fetched", "node", node, "err", err)
		}
		pause(ctx, fetchPause)
	}
}

// fetches says whether this node is to fetch.
func (q *Quorum) fetches() bool {
	return !q.isMember.Load() || q.Leadership().Leader == kafka.NoNode
}

// untilLeaderless waits until there may be a reason to fetch: a member gives an election its time first.
func (q *Quorum) untilLeaderless(ctx context.Context) bool {
	changed, led := q.Changed(), q.LeadershipChanged()
	if q.fetches() {
		return true
	}
	select {
	case <-changed:
	case <-led:
		if q.isMember.Load() {
			return pause(ctx, leaderlessPatience)
		}
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// others are the nodes to fetch from: those of the table first, then the configured controllers, then every broker. The last two are asked
// when the table is so old that none of its nodes is there.
func (q *Quorum) others() (nodes []kafka.NodeID) {
	add := func(node kafka.NodeID) {
		if node != q.node && !slices.Contains(nodes, node) && len(nodes) < sourcesMax {
			nodes = append(nodes, node)
		}
	}
	image := q.Image()
	for _, v := range image.Voters() {
		add(v.Node)
	}
	for _, c := range q.configured.list {
		add(c.node)
	}
	for b := range image.Brokers() {
		add(b.ID)
	}
	return nodes
}

// fetchFrom fetches once, and hands on what comes. An error means that another node should be asked.
func (q *Quorum) fetchFrom(ctx context.Context, node kafka.NodeID) error {
	at := q.position.Load()
	call, cancel := context.WithTimeout(ctx, fetchWaitMax+fetchGrace)
	defer cancel()
	var got metadataFetched
	ask := &metadataFetch{Next: at.index + 1, LastTerm: at.term, WaitMs: int32(fetchWaitMax.Milliseconds())}
	if err := q.peers.Call(call, node, ask, &got); err != nil {
		return err
	}
	if got.Behind {
		return q.fetchSnapshot(ctx, node)
	}
	entries, err := checkedEntries(got.Batches, ask.Next, got.Committed)
	if err != nil {
		return fmt.Errorf("%w: entries from %d on: %w", errAltered, ask.Next, err)
	}
	if err := q.onLoop(ctx, func(l *loop) error { l.feed(*at, got, entries); return nil }); err != nil {
		return err
	}
	if len(entries) > 0 {
		if err := q.untilApplied(ctx, ask.Next+uint64(len(entries))-1); err != nil {
			return err
		}
	}
	if got.Leader == kafka.NoNode {
		return errNoLeader // another node may know one
	}
	return nil
}

// fetchSnapshot replaces what this observer has by the newest snapshot of a node.
func (q *Quorum) fetchSnapshot(ctx context.Context, node kafka.NodeID) error {
	snap, err := pullSnapshot(ctx, q.from(node), nil)
	if err != nil {
		return err
	}
	refused := errNotOffered
	err = q.onLoop(ctx, func(l *loop) error {
		// A member may have acknowledged entries that are behind the snapshot. Unless the snapshot says that it is none any more, it leaves
		// this to its leader.
		if l.member() && isMember(snap.Conf, l.self) || snap.Index <= l.image.Version() || snap.Image.ClusterID() != l.image.ClusterID() {
			return nil
		}
		refused = nil
		return l.reinstall(ctx, &snap)
	})
	return errors.Join(err, refused)
}

// untilApplied waits until entries that were handed to the loop are in the Image.
func (q *Quorum) untilApplied(ctx context.Context, index uint64) error {
	wait := time.NewTimer(applyWaitMax)
	defer wait.Stop()
	for {
		changed := q.Changed()
		if q.Image().Version() >= index {
			return nil
		}
		select {
		case <-changed:
		case <-wait.C:
			return nil // a full disk; what is fetched again is not written twice
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// checkedEntries decodes fetched batches: entries from next on without gaps, none above the last committed one.
func checkedEntries(b []byte, next, committed uint64) ([]*raftpb.Entry, error) {
	entries, err := decodeFetched(b)
	if err != nil {
		return nil, fmt.Errorf("fetched metadata: %w", err)
	}
	for i, e := range entries {
		if e.GetIndex() != next+uint64(i) || e.GetIndex() > committed || i > 0 && e.GetTerm() < entries[i-1].GetTerm() {
			return nil, fmt.Errorf("fetched metadata: %w: index %d, term %d", errEntry, e.GetIndex(), e.GetTerm())
		}
	}
	return entries, nil
}

// feed steps committed entries that continue at as an append of the leader. No conflict is possible with what is committed here, and what is
// not gives way, as to any leader's append.
func (l *loop) feed(at position, got metadataFetched, entries []*raftpb.Entry) {
	status := l.node.BasicStatus()
	if l.told.term <= got.Term {
		l.told = told{term: got.Term, leader: got.Leader}
	}
	if len(entries) == 0 || status.RaftState == raft.StateLeader || l.image.Version() < at.index {
		l.publishLeadership(nil)
		return
	}
	// The term is one that the cluster has reached. Who leads in it is not said: raft would answer that node, and wait for its heartbeats.
	_ = l.node.Step(&raftpb.Message{
		Type:    raftpb.MsgApp.Enum(),
		To:      proto.Uint64(l.self),
		From:    proto.Uint64(raft.None),
		Term:    proto.Uint64(max(status.GetTerm(), got.Term)),
		Index:   proto.Uint64(at.index),
		LogTerm: proto.Uint64(at.term),
		Entries: entries,
		Commit:  proto.Uint64(entries[len(entries)-1].GetIndex()),
	})
}

// pause waits; false means that ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// decodeFetched is decodeEntries for batches that came over the network.
func decodeFetched(b []byte) ([]*raftpb.Entry, error) {
	for rest := b; len(rest) > 0; {
		batch, behind, err := record.Split(rest)
		if err == nil {
			err = batch.VerifyCRC()
		}
		if err != nil {
			return nil, err
		}
		rest = behind
	}
	return decodeEntries(b)
}
