package record

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"strandline.dev/internal/kafka"
)

// HeaderSize is the number of bytes before the records of a batch.
const HeaderSize = 61

// Positions of the header's fields. The CRC covers everything from posAttributes on.
const (
	posBaseOffset      = 0
	posLength          = 8
	posLeaderEpoch     = 12
	posMagic           = 16
	posCRC             = 17
	posAttributes      = 21
	posLastOffsetDelta = 23
	posBaseTimestamp   = 27
	posMaxTimestamp    = 35
	posProducerID      = 43
	posProducerEpoch   = 51
	posBaseSequence    = 53
	posCount           = 57
)

// lengthOverhead is the number of bytes that the length field does not count: the base offset and itself.
const lengthOverhead = 12

// magic2 is the only batch format of this broker.
const magic2 = 2

// Bits of the attributes.
const (
	codecMask        = 0x07
	bitAppendTime    = 0x08
	bitTransactional = 0x10
	bitControl       = 0x20
	bitDeleteHorizon = 0x40
	knownAttributes  = codecMask | bitAppendTime | bitTransactional | bitControl | bitDeleteHorizon
	noTimestamp      = -1
	noSequence       = -1
	sequenceModulus  = int64(math.MaxInt32) + 1
)

// TimestampType says who set the timestamps of a batch.
type TimestampType uint8

// The two timestamp types of a batch.
const (
	// CreateTime: the producer set the timestamps.
	CreateTime TimestampType = 0
	// LogAppendTime: the leader set them when it appended; the batch's max timestamp holds for all its records.
	LogAppendTime TimestampType = 1
)

// castagnoli is the polynomial of the batch checksum; crc32 uses the CPU's instruction for it.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch is exactly one complete record batch of magic 2: a view over bytes, never a copy. Get one from Split or a Builder; on other
// bytes the accessors may panic. A Batch that did not pass VerifyCRC or Validate may say anything.
type Batch []byte

// BaseOffset is the offset of the batch's first record.
func (b Batch) BaseOffset() kafka.Offset {
	return kafka.Offset(binary.BigEndian.Uint64(b[posBaseOffset:]))
}

// LastOffset is the offset of the batch's last record (inclusive).
func (b Batch) LastOffset() kafka.Offset { return b.BaseOffset() + kafka.Offset(b.LastOffsetDelta()) }

// NextOffset is the first offset behind the batch: the end of a log that ends with it.
func (b Batch) NextOffset() kafka.Offset { return b.LastOffset() + 1 }

// Size is the number of bytes that the header declares, its own length field included. For a Batch from Split it equals len(b).
func (b Batch) Size() int {
	return int(int32(binary.BigEndian.Uint32(b[posLength:]))) + lengthOverhead
}

// LeaderEpoch is the epoch of the leader that appended the batch; it is outside the CRC.
func (b Batch) LeaderEpoch() kafka.LeaderEpoch {
	return kafka.LeaderEpoch(int32(binary.BigEndian.Uint32(b[posLeaderEpoch:])))
}

// Magic is the batch format: 2.
func (b Batch) Magic() int8 { return int8(b[posMagic]) }

// CRC is the checksum that the header holds.
func (b Batch) CRC() uint32 { return binary.BigEndian.Uint32(b[posCRC:]) }

// ComputeCRC is the checksum of the bytes as they are.
func (b Batch) ComputeCRC() uint32 { return crc32.Checksum(b[posAttributes:], castagnoli) }

// Attributes are the batch's flag bits.
func (b Batch) Attributes() int16 { return int16(binary.BigEndian.Uint16(b[posAttributes:])) }

// Codec is the compression of the records; it may be a value that no codec has (see Codec.Known).
func (b Batch) Codec() Codec { return Codec(b.Attributes() & codecMask) }

// TimestampType says who set the timestamps.
func (b Batch) TimestampType() TimestampType {
	if b.Attributes()&bitAppendTime != 0 {
		return LogAppendTime
	}
	return CreateTime
}

// IsTransactional says whether the batch belongs to a transaction.
func (b Batch) IsTransactional() bool { return b.Attributes()&bitTransactional != 0 }

// IsControl says whether the batch holds markers that clients filter out; only brokers write them.
func (b Batch) IsControl() bool { return b.Attributes()&bitControl != 0 }

// HasDeleteHorizon says whether the base timestamp is a compaction's delete horizon.
func (b Batch) HasDeleteHorizon() bool { return b.Attributes()&bitDeleteHorizon != 0 }

// LastOffsetDelta is the offset of the last record, less the base offset.
func (b Batch) LastOffsetDelta() int32 { return int32(binary.BigEndian.Uint32(b[posLastOffsetDelta:])) }

// BaseTimestamp is what the records' timestamp deltas count from, in milliseconds since the Unix epoch.
func (b Batch) BaseTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[posBaseTimestamp:])) }

// MaxTimestamp is the largest timestamp in the batch, in milliseconds since the Unix epoch, or -1.
func (b Batch) MaxTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[posMaxTimestamp:])) }

// ProducerID is the idempotent producer's id, or NoProducerID. Epoch and sequence mean nothing without it: kafkajs sends 0 there.
func (b Batch) ProducerID() kafka.ProducerID {
	return kafka.ProducerID(int64(binary.BigEndian.Uint64(b[posProducerID:])))
}

// ProducerEpoch is the idempotent producer's epoch.
func (b Batch) ProducerEpoch() kafka.ProducerEpoch {
	return kafka.ProducerEpoch(int16(binary.BigEndian.Uint16(b[posProducerEpoch:])))
}

// BaseSequence is the producer's sequence number of the first record.
func (b Batch) BaseSequence() int32 { return int32(binary.BigEndian.Uint32(b[posBaseSequence:])) }

// LastSequence is the producer's sequence number of the last record; sequences wrap from MaxInt32 to 0. Without a base sequence it
// is -1.
func (b Batch) LastSequence() int32 {
	base := b.BaseSequence()
	if base < 0 {
		return noSequence
	}
	return int32((int64(base) + int64(b.LastOffsetDelta())) % sequenceModulus)
}

// Count is the number of records. After compaction it may be less than LastOffsetDelta+1.
func (b Batch) Count() int32 { return int32(binary.BigEndian.Uint32(b[posCount:])) }

// Payload is the records as stored: compressed if Codec is not None.
func (b Batch) Payload() []byte { return b[HeaderSize:] }

// SetBaseOffset gives the batch its place in the log. The field is outside the CRC.
func (b Batch) SetBaseOffset(o kafka.Offset) {
	binary.BigEndian.PutUint64(b[posBaseOffset:], uint64(o))
}

// SetLeaderEpoch names the leader epoch that appended the batch. The field is outside the CRC.
func (b Batch) SetLeaderEpoch(e kafka.LeaderEpoch) {
	binary.BigEndian.PutUint32(b[posLeaderEpoch:], uint32(e))
}

// SetAppendTime stamps all records with the leader's time, in milliseconds since the Unix epoch, and recomputes the CRC.
func (b Batch) SetAppendTime(ms int64) {
	binary.BigEndian.PutUint16(b[posAttributes:], uint16(b.Attributes())|bitAppendTime)
	b.setMaxTimestamp(ms)
}

// SetProducer makes the batch one of an idempotent producer and recomputes the CRC. Transactional also sets that bit.
func (b Batch) SetProducer(id kafka.ProducerID, epoch kafka.ProducerEpoch, sequence int32, transactional bool) {
	binary.BigEndian.PutUint64(b[posProducerID:], uint64(id))
	binary.BigEndian.PutUint16(b[posProducerEpoch:], uint16(epoch))
	binary.BigEndian.PutUint32(b[posBaseSequence:], uint32(sequence))
	if transactional {
		binary.BigEndian.PutUint16(b[posAttributes:], uint16(b.Attributes())|bitTransactional)
	}
	b.putCRC()
}

func (b Batch) setMaxTimestamp(ms int64) {
	binary.BigEndian.PutUint64(b[posMaxTimestamp:], uint64(ms))
	b.putCRC()
}

func (b Batch) putCRC() { binary.BigEndian.PutUint32(b[posCRC:], b.ComputeCRC()) }

// VerifyCRC returns ErrChecksum unless the batch holds the bytes that its producer wrote (I11).
func (b Batch) VerifyCRC() error {
	if b.CRC() != b.ComputeCRC() {
		return ErrChecksum
	}
	return nil
}
