package wire

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The first versions with a change in the layout of the Fetch response.
const (
	fetchSessions     = 7  // error code and session id
	fetchLogStart     = 5  // log start offset
	fetchReadReplica  = 11 // preferred read replica
	fetchFlexible     = 12 // compact lengths and tags
	fetchTopicIDs     = 13 // ids in place of names
	tagDivergingEpoch = 0
	tagCurrentLeader  = 1
	tagNodeEndpoints  = 0
)

// The encoded sizes of the partition tags' structs, each with its own empty tag section.
const (
	divergingEpochSize = 4 + 8 + 1
	currentLeaderSize  = 4 + 4 + 1
)

// FetchEncoder encodes Fetch responses, version 4 to 18, around the records: the records of each partition become a segment of their
// own and are never copied. It is reused from response to response and belongs to one goroutine.
type FetchEncoder struct {
	meta []byte
	cuts []cut
	segs [][]byte
}

// cut is a place in meta where records belong.
type cut struct {
	at      int
	records []byte
}

// Encode returns the frame of resp (size, header, body) as segments for net.Buffers, and its size in bytes. The segments are views of
// the encoder's buffer and of resp's records; they are good until the next Encode. Null records are written as empty ones, which every
// client takes. UnknownTags and SnapshotID of resp are not written: we never set them.
func (e *FetchEncoder) Encode(resp *kmsg.FetchResponse, correlationID int32) (segments [][]byte, size int) {
	v := resp.Version
	flexible := v >= fetchFlexible
	e.meta, e.cuts = append(e.meta[:0], 0, 0, 0, 0), e.cuts[:0]
	d := AppendResponseHeader(e.meta, KeyFetch, v, correlationID)
	d = appendInt32(d, resp.ThrottleMillis)
	if v >= fetchSessions {
		d = appendInt16(d, resp.ErrorCode)
		d = appendInt32(d, resp.SessionID)
	}
	d = appendArrayLen(d, len(resp.Topics), flexible)
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if v >= fetchTopicIDs {
			d = append(d, t.TopicID[:]...)
		} else {
			d = appendString(d, t.Topic, flexible)
		}
		d = appendArrayLen(d, len(t.Partitions), flexible)
		for j := range t.Partitions {
			d = e.partition(d, &t.Partitions[j], v)
		}
		if flexible {
			d = append(d, 0)
		}
	}
	if flexible {
		d = appendNodeEndpoints(d, resp.Brokers)
	}
	e.meta = d
	return e.join()
}

// Forget drops the references to the last response's records, so that an idle encoder keeps no record buffer alive.
func (e *FetchEncoder) Forget() {
	clear(e.cuts)
	clear(e.segs[:cap(e.segs)])
	e.cuts, e.segs = e.cuts[:0], e.segs[:0]
}

func (e *FetchEncoder) partition(d []byte, p *kmsg.FetchResponseTopicPartition, v int16) []byte {
	flexible := v >= fetchFlexible
	d = appendInt32(d, p.Partition)
	d = appendInt16(d, p.ErrorCode)
	d = appendInt64(d, p.HighWatermark)
	d = appendInt64(d, p.LastStableOffset)
	if v >= fetchLogStart {
		d = appendInt64(d, p.LogStartOffset)
	}
	if p.AbortedTransactions == nil {
		// Null says read_uncommitted, an empty array says that nothing was aborted.
		d = appendNullArray(d, flexible)
	} else {
		d = appendArrayLen(d, len(p.AbortedTransactions), flexible)
	}
	for i := range p.AbortedTransactions {
		d = appendInt64(d, p.AbortedTransactions[i].ProducerID)
		d = appendInt64(d, p.AbortedTransactions[i].FirstOffset)
		if flexible {
			d = append(d, 0)
		}
	}
	if v >= fetchReadReplica {
		d = appendInt32(d, p.PreferredReadReplica)
	}
	d = appendArrayLen(d, len(p.RecordBatches), flexible) // bytes have the same length prefix as arrays
	if len(p.RecordBatches) > 0 {
		e.cuts = append(e.cuts, cut{len(d), p.RecordBatches})
	}
	if flexible {
		d = appendPartitionTags(d, p)
	}
	return d
}

func appendPartitionTags(d []byte, p *kmsg.FetchResponseTopicPartition) []byte {
	diverging := p.DivergingEpoch.Epoch != -1 || p.DivergingEpoch.EndOffset != -1
	leader := p.CurrentLeader.LeaderID != -1 || p.CurrentLeader.LeaderEpoch != -1
	count := byte(0)
	if diverging {
		count++
	}
	if leader {
		count++
	}
	d = append(d, count)
	if diverging {
		d = append(d, tagDivergingEpoch, divergingEpochSize)
		d = appendInt32(d, p.DivergingEpoch.Epoch)
		d = appendInt64(d, p.DivergingEpoch.EndOffset)
		d = append(d, 0)
	}
	if leader {
		d = append(d, tagCurrentLeader, currentLeaderSize)
		d = appendInt32(d, p.CurrentLeader.LeaderID)
		d = appendInt32(d, p.CurrentLeader.LeaderEpoch)
		d = append(d, 0)
	}
	return d
}

// appendNodeEndpoints appends the response's tag section. The tag's length comes before what it measures, so that is encoded twice;
// it is there only in answers that tell a client of a new leader.
func appendNodeEndpoints(d []byte, brokers []kmsg.FetchResponseBroker) []byte {
	if len(brokers) == 0 {
		return append(d, 0)
	}
	d = append(d, 1, tagNodeEndpoints)
	at := len(d)
	d = appendBrokers(d, brokers)
	size := len(d) - at
	d = binary.AppendUvarint(d[:at], uint64(size))
	return appendBrokers(d, brokers)
}

func appendBrokers(d []byte, brokers []kmsg.FetchResponseBroker) []byte {
	d = appendArrayLen(d, len(brokers), true)
	for i := range brokers {
		b := &brokers[i]
		d = appendInt32(d, b.NodeID)
		d = appendString(d, b.Host, true)
		d = appendInt32(d, b.Port)
		if b.Rack == nil {
			d = append(d, 0)
		} else {
			d = appendString(d, *b.Rack, true)
		}
		d = append(d, 0)
	}
	return d
}

// join cuts meta at the records and writes the frame's size.
func (e *FetchEncoder) join() (segments [][]byte, size int) {
	size = len(e.meta)
	e.segs = e.segs[:0]
	from := 0
	for _, c := range e.cuts {
		size += len(c.records)
		e.segs = append(e.segs, e.meta[from:c.at], c.records)
		from = c.at
	}
	if from < len(e.meta) {
		e.segs = append(e.segs, e.meta[from:])
	}
	binary.BigEndian.PutUint32(e.meta, uint32(size-frameSizeBytes))
	return e.segs, size
}

func appendInt16(d []byte, v int16) []byte { return binary.BigEndian.AppendUint16(d, uint16(v)) }
func appendInt32(d []byte, v int32) []byte { return binary.BigEndian.AppendUint32(d, uint32(v)) }
func appendInt64(d []byte, v int64) []byte { return binary.BigEndian.AppendUint64(d, uint64(v)) }

func appendArrayLen(d []byte, n int, flexible bool) []byte {
	if flexible {
		return binary.AppendUvarint(d, uint64(n)+1)
	}
	return appendInt32(d, int32(n))
}

func appendNullArray(d []byte, flexible bool) []byte {
	if flexible {
		return append(d, 0)
	}
	return appendInt32(d, -1)
}

func appendString(d []byte, s string, flexible bool) []byte {
	if flexible {
		d = binary.AppendUvarint(d, uint64(len(s))+1)
	} else {
		d = appendInt16(d, int16(len(s)))
	}
	return append(d, s...)
}
