package record

import (
	"encoding/binary"
	"math/bits"
)

// Builder collects records and builds a batch of them. It is reused by Reset and belongs to one goroutine.
type Builder struct {
	codec   Codec
	base    int64
	max     int64
	count   int32
	records []byte
}

// NewBuilder returns an empty builder of batches with the given compression, which must be Known.
func NewBuilder(codec Codec) *Builder {
	if !codec.Known() {
		panic("record: NewBuilder with " + codec.String())
	}
	return &Builder{codec: codec}
}

// Add appends a record; ts is in milliseconds since the Unix epoch, -1 for none. Nil keys and values are null. The bytes are copied.
func (bu *Builder) Add(ts int64, key, value []byte, headers []Header) {
	if bu.count == 0 {
		bu.base, bu.max = ts, ts
	}
	bu.max = max(bu.max, ts)
	delta := ts - bu.base
	size := recordAttributeLen + varintSize(delta) + varintSize(int64(bu.count)) + fieldSize(key) + fieldSize(value) +
		varintSize(int64(len(headers)))
	for _, h := range headers {
		size += varintSize(int64(len(h.Key))) + len(h.Key) + fieldSize(h.Value)
	}
	dst := binary.AppendVarint(bu.records, int64(size))
	dst = append(dst, 0) // record attributes: none are defined
	dst = binary.AppendVarint(dst, delta)
	dst = binary.AppendVarint(dst, int64(bu.count))
	dst = appendField(dst, key)
	dst = appendField(dst, value)
	dst = binary.AppendVarint(dst, int64(len(headers)))
	for _, h := range headers {
		dst = binary.AppendVarint(dst, int64(len(h.Key)))
		dst = append(dst, h.Key...)
		dst = appendField(dst, h.Value)
	}
	bu.records = dst
	bu.count++
}

// Count is the number of records added since the last Reset.
func (bu *Builder) Count() int { return int(bu.count) }

// Size is the number of bytes of the batch as it would be without compression.
func (bu *Builder) Size() int { return HeaderSize + len(bu.records) }

// Reset forgets the records and keeps the buffer.
func (bu *Builder) Reset() {
	bu.records = bu.records[:0]
	bu.count, bu.base, bu.max = 0, 0, 0
}

// Build returns the batch in bytes of its own; nil when there are no records. It has base offset 0, no leader epoch (-1) and no
// producer. The records stay in the builder until Reset.
func (bu *Builder) Build() Batch {
	if bu.count == 0 {
		return nil
	}
	return bu.AppendTo(make([]byte, 0, bu.Size()))
}

// AppendTo appends the batch to dst and returns the batch alone, which lies at the end of the grown dst. There must be records.
func (bu *Builder) AppendTo(dst []byte) Batch {
	start := len(dst)
	dst = append(dst, make([]byte, HeaderSize)...)
	h := Batch(dst[start:])
	h.SetLeaderEpoch(-1)
	h[posMagic] = magic2
	binary.BigEndian.PutUint16(h[posAttributes:], uint16(bu.codec))
	binary.BigEndian.PutUint32(h[posLastOffsetDelta:], uint32(bu.count-1))
	binary.BigEndian.PutUint64(h[posBaseTimestamp:], uint64(bu.base))
	binary.BigEndian.PutUint64(h[posMaxTimestamp:], uint64(bu.max))
	binary.BigEndian.PutUint64(h[posProducerID:], ^uint64(0))
	binary.BigEndian.PutUint16(h[posProducerEpoch:], ^uint16(0))
	binary.BigEndian.PutUint32(h[posBaseSequence:], ^uint32(0))
	binary.BigEndian.PutUint32(h[posCount:], uint32(bu.count))
	dst, err := Compress(bu.codec, dst, bu.records)
	must(err)
	b := Batch(dst[start:])
	b.seal()
	return b
}

func appendField(dst, b []byte) []byte {
	if b == nil {
		return binary.AppendVarint(dst, nullLength)
	}
	dst = binary.AppendVarint(dst, int64(len(b)))
	return append(dst, b...)
}

func fieldSize(b []byte) int {
	if b == nil {
		return varintSize(nullLength)
	}
	return varintSize(int64(len(b))) + len(b)
}

// varintSize is the number of bytes of a zigzag varint.
func varintSize(v int64) int {
	u := uint64(v)<<1 ^ uint64(v>>63)
	return (bits.Len64(u|1) + 6) / 7
}
