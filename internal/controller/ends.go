package controller

import (
	"context"
	"fmt"
	"slices"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/wire"
)

// The types of the messages in their headers.
const (
	typeEnds       = uint16(peer.KindReplicaEnds)
	typeEndsAnswer = uint16(peer.KindReplicaEnds) + 0x4000
)

// askEnds asks what a node's replicas hold.
type askEnds struct{ partitions []kafka.TopicPartition }

// toldEnds is the answer: what it has no log of is left out.
type toldEnds struct{ partitions []metadata.PartitionEnds }

func (*askEnds) Kind() peer.Kind  { return peer.KindReplicaEnds }
func (*toldEnds) Kind() peer.Kind { return peer.KindReplicaEnds }

func appendTP(e *wire.Encoder, tp kafka.TopicPartition) {
	e.ID(tp.Topic)
	e.Int32(tp.Partition)
}

func readTP(d *wire.Decoder) kafka.TopicPartition {
	return kafka.TopicPartition{Topic: d.ID(), Partition: d.Int32()}
}

// Append implements peer.Message.
func (m *askEnds) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(typeEnds, messageVersion)
	wire.AppendArray(&e, m.partitions, appendTP)
	e.NoTags()
	return e.B
}

// Decode implements peer.Message.
func (m *askEnds) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(typeEnds, messageVersion)
	m.partitions = wire.ReadArray(d, 20, readTP)
	d.Tags(nil)
	if len(m.partitions) > endsMax {
		d.Fail(fmt.Errorf("%w: %d partitions, limit %d", wire.ErrMalformed, len(m.partitions), endsMax))
	}
	return d.Done()
}

// Append implements peer.Message.
func (m *toldEnds) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(typeEndsAnswer, messageVersion)
	wire.AppendArray(&e, m.partitions, func(e *wire.Encoder, p metadata.PartitionEnds) {
		appendTP(e, p.TP)
		wire.AppendArray(e, p.Ends, func(e *wire.Encoder, end metadata.ReplicaEnd) {
			e.Int32(int32(end.Node))
			e.Int32(int32(end.LastEpoch))
			e.Int64(int64(end.End))
		})
		e.NoTags()
	})
	e.NoTags()
	return e.B
}

// Decode implements peer.Message.
func (m *toldEnds) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(typeEndsAnswer, messageVersion)
	m.partitions = wire.ReadArray(d, 22, func(d *wire.Decoder) metadata.PartitionEnds {
		p := metadata.PartitionEnds{TP: readTP(d), Ends: wire.ReadArray(d, 16, func(d *wire.Decoder) metadata.ReplicaEnd {
			return metadata.ReplicaEnd{Node: kafka.NodeID(d.Int32()), LastEpoch: kafka.LeaderEpoch(d.Int32()), End: kafka.Offset(d.Int64())}
		})}
		d.Tags(nil)
		return p
	})
	d.Tags(nil)
	return d.Done()
}

// serveEnds tells other nodes what this one holds.
func (l *Link) serveEnds(p *peer.Peers) {
	p.HandleRequest(peer.KindReplicaEnds, func() peer.Message { return &askEnds{} }, func(_ context.Context, _ peer.Identity, m peer.Message) (peer.Message, error) {
		return &toldEnds{l.cfg.Ends(m.(*askEnds).partitions)}, nil
	})
}

// Ends asks every broker that is up and holds a replica of the partitions what it has of them. Whoever does not answer in time is left out. The order
// is that of the partitions, of which there may be endsMax; of each the replicas in the order of the replica list.
func (l *Link) Ends(ctx context.Context, tps []kafka.TopicPartition) []metadata.PartitionEnds {
	ctx, cancel := context.WithTimeout(ctx, endsWaitMax)
	defer cancel()
	image := l.cfg.Quorum.Image()
	asked := map[kafka.NodeID][]kafka.TopicPartition{}
	for _, tp := range tps[:min(len(tps), endsMax)] {
		for _, n := range replicasOf(image, tp) {
			if b := image.Broker(n); b != nil && !b.Fenced {
				asked[n] = append(asked[n], tp)
			}
		}
	}
	answers := make(chan []metadata.PartitionEnds, len(asked))
	for n, list := range asked {
		go func() { answers <- l.endsOf(ctx, n, list) }()
	}
	told := map[kafka.TopicPartition][]metadata.ReplicaEnd{}
	for range asked {
		for _, p := range <-answers {
			told[p.TP] = append(told[p.TP], p.Ends...)
		}
	}
	out := make([]metadata.PartitionEnds, 0, len(tps))
	for _, tp := range tps {
		order := replicasOf(image, tp)
		slices.SortFunc(told[tp], func(a, b metadata.ReplicaEnd) int { return slices.Index(order, a.Node) - slices.Index(order, b.Node) })
		out = append(out, metadata.PartitionEnds{TP: tp, Ends: told[tp]})
	}
	return out
}

// endsOf asks one node, which tells only of itself.
func (l *Link) endsOf(ctx context.Context, node kafka.NodeID, tps []kafka.TopicPartition) []metadata.PartitionEnds {
	var told toldEnds
	switch {
	case node == l.cfg.Node:
		told.partitions = l.cfg.Ends(tps)
	case l.cfg.Peers == nil:
		return nil
	default:
		if err := l.cfg.Peers.Call(ctx, node, &askEnds{tps}, &told); err != nil {
			l.cfg.Log.Warn("a broker does not say what its replicas hold", "broker", node, "error", err)
			return nil
		}
	}
	for i := range told.partitions {
		p := &told.partitions[i]
		p.Ends = slices.DeleteFunc(p.Ends, func(e metadata.ReplicaEnd) bool { return e.Node != node })
	}
	return told.partitions
}

func replicasOf(image *metadata.Image, tp kafka.TopicPartition) []kafka.NodeID {
	t := image.TopicByID(tp.Topic)
	if t == nil || tp.Partition < 0 || int(tp.Partition) >= len(t.Partitions) {
		return nil
	}
	return t.Partitions[tp.Partition].Replicas
}
