package quorum

import (
	"errors"
	"fmt"
	"math"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

// An entry is one batch with one record: base offset = raft index, leader epoch = raft term, record value = one byte of
// entry type (raft's numbers: 0 records, 1 and 2 membership changes) and the payload as it came. An empty payload is stored
// too: a new leader's first entry has one. The record has no key and no time, so an entry has the same bytes on every node.

// noTimestamp is the time of every record of the metadata log: a clock would make the nodes' bytes differ.
const noTimestamp = -1

// maxTerm is the largest term that fits into a batch header. A term rises by an election; 2^31 of them take centuries.
const maxTerm = math.MaxInt32

var (
	errTerm  = errors.New("raft term does not fit into a leader epoch")
	errEntry = errors.New("not an entry of the metadata log")
)

// appendEntry appends the batch of an entry to dst.
func appendEntry(dst []byte, e *raftpb.Entry) ([]byte, error) {
	if e.GetTerm() > maxTerm || e.GetIndex() > math.MaxInt64 {
		return dst, fmt.Errorf("entry %d of term %d: %w", e.GetIndex(), e.GetTerm(), errTerm)
	}
	value := make([]byte, 0, 1+len(e.GetData()))
	value = append(value, byte(e.GetType()))
	value = append(value, e.GetData()...)
	b := record.NewBuilder(record.None)
	b.Add(noTimestamp, nil, value, nil)
	batch := b.Build()
	batch.SetBaseOffset(kafka.Offset(e.GetIndex()))
	batch.SetLeaderEpoch(kafka.LeaderEpoch(e.GetTerm()))
	return append(dst, batch...), nil
}

// encodeChunk appends to dst the batches of the first entries, at least one and about appendChunk bytes, and counts them.
func encodeChunk(dst []byte, entries []*raftpb.Entry) (b []byte, n int, err error) {
	for b = dst; n < len(entries) && len(b) < appendChunk; n++ {
		if b, err = appendEntry(b, entries[n]); err != nil {
			return b, n, err
		}
	}
	return b, n, nil
}

// decodeEntry reads the batch of an entry, whose checksum has been verified. The entry does not alias the batch.
func decodeEntry(b record.Batch) (*raftpb.Entry, error) {
	if b.Count() != 1 || b.LastOffsetDelta() != 0 || b.Codec() != record.None || b.BaseOffset() < 1 || b.LeaderEpoch() < 1 {
		return nil, fmt.Errorf("offset %d: %w: not one plain record with an index and a term", b.BaseOffset(), errEntry)
	}
	var value []byte
	for r, err := range b.Records(len(b)) {
		if err != nil {
			return nil, fmt.Errorf("offset %d: %w", b.BaseOffset(), err)
		}
		value = r.Value
	}
	if len(value) == 0 || value[0] > byte(raftpb.EntryConfChangeV2) {
		return nil, fmt.Errorf("offset %d: %w: no known entry type", b.BaseOffset(), errEntry)
	}
	e := &raftpb.Entry{
		Type:  raftpb.EntryType(value[0]).Enum(),
		Term:  proto.Uint64(uint64(b.LeaderEpoch())),
		Index: proto.Uint64(uint64(b.BaseOffset())),
	}
	if len(value) > 1 {
		e.Data = append([]byte(nil), value[1:]...)
	}
	return e, nil
}

// decodeEntries reads the batches that lie back to back in b.
func decodeEntries(b []byte) ([]*raftpb.Entry, error) {
	var entries []*raftpb.Entry
	for len(b) > 0 {
		batch, rest, err := record.Split(b)
		if err != nil {
			return nil, err
		}
		e, err := decodeEntry(batch)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
		b = rest
	}
	return entries, nil
}
