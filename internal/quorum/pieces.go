package quorum

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/peer"
)

// Snapshots cross the network as their files, in pieces that are asked for one by one: whoever needs one keeps its own pace, and nothing is
// held for it on the other side. The file's checksum covers the whole.

// answerPiece reads a piece of a snapshot file, or takes an offered snapshot.
func (q *Quorum) answerPiece(ctx context.Context, from peer.Identity, m *pieceAsk) (peer.Message, error) {
	if m.Offer != nil {
		return q.takeOffer(ctx, from, m.Offer)
	}
	id := snapshotID{Index: m.Index, Term: m.Term}
	if m.Newest {
		newest := q.newest.Load()
		if newest == nil {
			return nil, errNoSnapshot
		}
		id = *newest
	}
	b, size, err := readPiece(q.start.machine.FS, filepath.Join(q.start.dir, id.file()), m.Offset)
	if err != nil {
		return nil, err
	}
	return &piece{Index: id.Index, Term: id.Term, Size: size, Bytes: b}, nil
}

// pieceSource asks one node for pieces.
type pieceSource func(ctx context.Context, ask *pieceAsk, answer *piece) error

// pullSnapshot fetches and verifies a snapshot: the newest of the source, or the one named.
func pullSnapshot(ctx context.Context, source pieceSource, id *snapshotID) (snapshot, error) {
	var b []byte
	ask := &pieceAsk{Newest: id == nil}
	if id != nil {
		ask.Index, ask.Term = id.Index, id.Term
	}
	for size := int64(-1); int64(len(b)) != size; {
		ask.Offset = int64(len(b))
		var got piece
		one, cancel := context.WithTimeout(ctx, pieceWaitMax)
		err := source(one, ask, &got)
		cancel()
		if err != nil {
			return snapshot{}, fmt.Errorf("fetch a metadata snapshot: %w", err)
		}
		if size < 0 {
			size, ask = got.Size, &pieceAsk{Index: got.Index, Term: got.Term}
		}
		if got.Index != ask.Index || got.Term != ask.Term || got.Size != size || len(got.Bytes) == 0 || int64(len(b)+len(got.Bytes)) > size {
			return snapshot{}, fmt.Errorf("fetch a metadata snapshot: %w", errPiece)
		}
		b = append(b, got.Bytes...)
	}
	snap, err := decodeSnapshot(b)
	if err == nil && (snap.Index != ask.Index || snap.Term != ask.Term) {
		err = errSnapshotIndex
	}
	if err != nil {
		return snapshot{}, fmt.Errorf("%w: metadata snapshot %d: %w", errAltered, ask.Index, err)
	}
	return snap, nil
}

// from is a node as the source of pieces.
func (q *Quorum) from(node kafka.NodeID) pieceSource {
	return func(ctx context.Context, ask *pieceAsk, answer *piece) error {
		return q.peers.Call(ctx, node, ask, answer)
	}
}

// offerSnapshot tells a member of the snapshot that raft wants it to have, and raft what came of it. One offer a member is on its way at a
// time, because raft sends it nothing more before it hears of this one.
func (l *loop) offerSnapshot(m *raftpb.Message) {
	row, ok := findVoter(l.image.Voters(), m.GetTo())
	if !ok {
		return
	}
	q, ask := l.q, &pieceAsk{Offer: proto.Clone(m).(*raftpb.Message)}
	q.background.Go(func() {
		ctx, cancel := context.WithTimeout(q.lifetime, offerWaitMax)
		defer cancel()
		err := q.peers.Call(ctx, row.Node, ask, &piece{})
		if err != nil {
			q.log.Warn("a metadata snapshot did not reach another controller; it is offered again", "node", row.Node, "err", err)
			// Raft offers the next one as soon as it hears of this one.
			pause := time.NewTimer(offerPause)
			defer pause.Stop()
			select {
			case <-pause.C:
			case <-q.lifetime.Done():
			}
		}
		_ = q.onLoop(q.lifetime, func(l *loop) error {
			l.node.ReportSnapshot(m.GetTo(), snapshotStatus(err))
			return nil
		})
	})
}

// takeOffer fetches an offered snapshot and hands it to raft, which may find that it needs none.
func (q *Quorum) takeOffer(ctx context.Context, from peer.Identity, m *raftpb.Message) (peer.Message, error) {
	id := snapshotID{Index: m.GetSnapshot().GetMetadata().GetIndex(), Term: m.GetSnapshot().GetMetadata().GetTerm()}
	if m.GetType() != raftpb.MsgSnap || id.Index == 0 {
		return nil, errPiece
	}
	snap, err := pullSnapshot(ctx, q.from(from.Node), &id)
	if err != nil {
		return nil, err
	}
	refused := errNotOffered
	err = q.onLoop(ctx, func(l *loop) error {
		sender, err := raftID(from.Directory)
		if err != nil || !l.admits(from) || m.GetFrom() != sender || m.GetTo() != l.self || !l.member() ||
			snap.Image.ClusterID() != l.image.ClusterID() || !proto.Equal(snap.Conf, m.GetSnapshot().GetMetadata().GetConfState()) {
			return nil
		}
		refused = nil
		l.offered = &snap
		_ = l.node.Step(m)
		return nil
	})
	if err = errors.Join(err, refused); err != nil {
		return nil, err
	}
	return &piece{Index: id.Index, Term: id.Term}, nil
}
