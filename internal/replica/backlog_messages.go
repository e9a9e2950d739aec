package replica

import (
	"fmt"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/wire"
)

// backlogQuestion asks a leader what lies behind offsets of its partitions.
type backlogQuestion struct{ parts []backlogEntry }

type backlogEntry struct {
	tp     kafka.TopicPartition
	offset kafka.Offset
}

// backlogAnswer has an answer for each entry of the question, in its order.
type backlogAnswer struct{ parts []toldBacklog }

// toldBacklog is Backlog as it is sent: -1 is none.
type toldBacklog struct {
	known            bool
	start, end       kafka.Offset
	oldestMs, lossMs int64
}

// noBacklog is what a node says that does not lead, or not yet.
var noBacklog = toldBacklog{start: kafka.NoOffset, end: kafka.NoOffset, oldestMs: -1, lossMs: -1}

const (
	typeBacklogQuestion = uint16(peer.KindBacklog)
	typeBacklogAnswer   = uint16(peer.KindBacklog) + 0x4000
	backlogEntryBytes   = 16 + 4 + 8
	toldBacklogBytes    = 1 + 4*8
)

func (t toldBacklog) backlog(leader kafka.NodeID) Backlog {
	if !t.known {
		return Backlog{Start: kafka.NoOffset, End: kafka.NoOffset, Err: fmt.Errorf("%w: node %v does not lead the partition, or not for long enough", errBacklogUnknown, leader)}
	}
	return Backlog{
		Start: t.start, End: t.end, Unread: t.oldestMs >= 0, Oldest: time.Duration(max(t.oldestMs, 0)) * time.Millisecond,
		LossIn: time.Duration(max(t.lossMs, 0)) * time.Millisecond, Expires: t.lossMs >= 0,
	}
}

// Kind implements peer.Message.
func (*backlogQuestion) Kind() peer.Kind { return peer.KindBacklog }

// Kind implements peer.Message.
func (*backlogAnswer) Kind() peer.Kind { return peer.KindBacklog }

// Append implements peer.Message.
func (m *backlogQuestion) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(typeBacklogQuestion, messageVersion)
	wire.AppendArray(&e, m.parts, func(e *wire.Encoder, p backlogEntry) {
		e.ID(p.tp.Topic)
		e.Int32(p.tp.Partition)
		e.Int64(int64(p.offset))
	})
	e.NoTags()
	return e.B
}

// Decode implements peer.Message.
func (m *backlogQuestion) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(typeBacklogQuestion, messageVersion)
	m.parts = wire.ReadArray(d, backlogEntryBytes, func(d *wire.Decoder) backlogEntry {
		return backlogEntry{kafka.TopicPartition{Topic: d.ID(), Partition: d.Int32()}, kafka.Offset(d.Int64())}
	})
	d.Tags(nil)
	if len(m.parts) > backlogItemsMax {
		d.Fail(fmt.Errorf("%w: %d partitions, above the limit of %d", wire.ErrMalformed, len(m.parts), backlogItemsMax))
	}
	return d.Done()
}

// Append implements peer.Message.
func (m *backlogAnswer) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(typeBacklogAnswer, messageVersion)
	wire.AppendArray(&e, m.parts, func(e *wire.Encoder, p toldBacklog) {
		e.Bool(p.known)
		e.Int64(int64(p.start))
		e.Int64(int64(p.end))
		e.Int64(p.oldestMs)
		e.Int64(p.lossMs)
	})
	e.NoTags()
	return e.B
}

// Decode implements peer.Message.
func (m *backlogAnswer) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(typeBacklogAnswer, messageVersion)
	m.parts = wire.ReadArray(d, toldBacklogBytes, func(d *wire.Decoder) toldBacklog {
		return toldBacklog{known: d.Bool(), start: kafka.Offset(d.Int64()), end: kafka.Offset(d.Int64()), oldestMs: d.Int64(), lossMs: d.Int64()}
	})
	d.Tags(nil)
	return d.Done()
}
