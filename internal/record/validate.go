package record

import (
	"errors"
	"math"
)

// Facts are what a walk over the records of a batch saw, which spares others another walk.
type Facts struct {
	// HasHeaders says that a record has a header.
	HasHeaders bool
}

// Validate decides whether a client's batch may be appended: framing, checksum, attributes, producer fields, and every record, which
// it walks without allocating (compressed ones through a window). It returns nil or an *InvalidError; one bad record refuses the
// whole batch.
//
// It changes one thing: where the header's max timestamp is not that of the records it writes the true one and recomputes the CRC, as
// Kafka does, since lookups by time rely on it.
func Validate(b Batch, r Rules) (Facts, error) {
	if err := validateHeader(b, &r); err != nil {
		return Facts{}, err
	}
	if r.MaxDecompressedBytes <= 0 {
		r.MaxDecompressedBytes = DecompressedLimit(max(r.MaxBatchBytes, len(b)))
	}
	maxTimestamp, facts, err := validateRecords(b, &r)
	if err != nil {
		return Facts{}, err
	}
	if !r.LogAppendTime && maxTimestamp != b.MaxTimestamp() {
		b.setMaxTimestamp(maxTimestamp)
	}
	return facts, nil
}

// validateHeader returns error, not *InvalidError, so that a nil stays nil.
func validateHeader(b Batch, r *Rules) error {
	if len(b) < HeaderSize || b.Size() != len(b) {
		return invalid(Corrupt, -1, "the batch length does not match the bytes received")
	}
	if b.Magic() != magic2 {
		return invalid(InvalidRecord, -1, "only record batches of magic 2 are accepted")
	}
	if r.MaxBatchBytes > 0 && len(b) > r.MaxBatchBytes {
		return &InvalidError{BatchTooLarge, -1, "the batch is larger than the topic allows", int64(len(b)), int64(r.MaxBatchBytes)}
	}
	if b.CRC() != b.ComputeCRC() {
		return invalid(Corrupt, -1, "the checksum does not match")
	}
	if err := validateAttributes(b, r); err != nil {
		return err
	}
	return validateProducer(b, r)
}

func validateAttributes(b Batch, r *Rules) error {
	attributes := b.Attributes()
	switch {
	case !b.Codec().Known():
		return invalid(InvalidRecord, -1, "unknown compression codec")
	case b.IsControl() && !r.AllowControl:
		return invalid(InvalidRecord, -1, "control batches come from brokers only")
	case b.HasDeleteHorizon():
		return invalid(InvalidRecord, -1, "the delete horizon is set by brokers only")
	case uint16(attributes)&^knownAttributes != 0:
		return invalid(InvalidRecord, -1, "unknown attribute bits")
	case b.Codec() == Zstd && !r.ZstdAllowed:
		return invalid(UnsupportedCompression, -1, "zstd needs Produce version 7")
	case b.TimestampType() == LogAppendTime:
		return invalid(InvalidTimestamp, -1, "log append time is set by brokers only")
	}
	return nil
}

func validateProducer(b Batch, r *Rules) error {
	id := b.ProducerID()
	switch {
	case id < -1:
		return invalid(InvalidRecord, -1, "impossible producer id")
	case b.IsTransactional() && !r.AllowTransactional:
		return invalid(InvalidRecord, -1, "transactional batches are not accepted")
	case b.IsTransactional() && id < 0:
		return invalid(InvalidRecord, -1, "a transactional batch needs a producer id")
	case id >= 0 && b.ProducerEpoch() < 0:
		return invalid(InvalidRecord, -1, "a producer id needs a producer epoch")
	case id >= 0 && b.BaseSequence() < 0 && !b.IsControl():
		return invalid(InvalidRecord, -1, "a producer id needs a base sequence")
	}
	return nil
}

func validateRecords(b Batch, r *Rules) (maxTimestamp int64, facts Facts, err error) {
	count := b.Count()
	if count <= 0 {
		return 0, facts, invalid(InvalidRecord, -1, "the batch declares no records")
	}
	if int64(b.LastOffsetDelta())+1 != int64(count) {
		return 0, facts, invalid(InvalidRecord, -1, "the last offset delta does not match the number of records")
	}
	capacity := r.MaxDecompressedBytes
	if b.Codec() == None {
		capacity = len(b.Payload())
	}
	if int64(count) > int64(capacity/minRecordSize) {
		return 0, facts, invalid(InvalidRecord, -1, "the number of records does not fit the batch")
	}
	var c cursor
	defer c.close()
	if err := c.open(b.Codec(), b.Payload(), r.MaxDecompressedBytes); err != nil {
		return 0, facts, refusal(err, -1, &c)
	}
	maxTimestamp = noTimestamp
	base := b.BaseTimestamp()
	for i := range int(count) {
		s, err := c.record(nil)
		if err != nil {
			return 0, facts, refusal(err, i, &c)
		}
		ts, err := validateRecord(s, i, base, r)
		if err != nil {
			return 0, facts, err
		}
		maxTimestamp = max(maxTimestamp, ts)
		facts.HasHeaders = facts.HasHeaders || s.headers > 0
	}
	if err := c.finish(); err != nil {
		return 0, facts, refusal(err, -1, &c)
	}
	return maxTimestamp, facts, nil
}

func validateRecord(s shape, index int, base int64, r *Rules) (timestamp int64, err error) {
	if int64(s.offsetDelta) != int64(index) {
		return 0, invalid(InvalidRecord, index, "the offset delta is not the record's place in its batch")
	}
	if r.MaxRecordBytes > 0 && s.userBytes > int64(r.MaxRecordBytes) {
		return 0, &InvalidError{RecordTooLarge, index, "the record is larger than the topic allows", s.userBytes, int64(r.MaxRecordBytes)}
	}
	if r.RequireKey && s.keyLength < 0 {
		return 0, invalid(InvalidRecord, index, "a compacted topic needs a key in every record")
	}
	if r.LogAppendTime {
		return noTimestamp, nil
	}
	if s.timestampDelta > 0 && base > math.MaxInt64-s.timestampDelta || s.timestampDelta < 0 && base < math.MinInt64-s.timestampDelta {
		return 0, invalid(InvalidTimestamp, index, "the timestamp is out of range")
	}
	ts := base + s.timestampDelta
	switch {
	case ts < noTimestamp:
		return 0, invalid(InvalidTimestamp, index, "the timestamp is negative")
	case ts == noTimestamp:
	case r.TimestampBefore > 0 && r.NowMs-ts > r.TimestampBefore.Milliseconds():
		return 0, invalid(InvalidTimestamp, index, "the timestamp is further in the past than the topic allows")
	case r.TimestampAfter > 0 && ts-r.NowMs > r.TimestampAfter.Milliseconds():
		return 0, invalid(InvalidTimestamp, index, "the timestamp is further in the future than the topic allows")
	}
	return ts, nil
}

// refusal turns what a walk found at a record into the client's answer.
func refusal(err error, index int, c *cursor) error {
	var f fault
	switch {
	case errors.As(err, &f):
		return invalid(InvalidRecord, index, string(f))
	case errors.Is(err, ErrTooLarge):
		return &InvalidError{BatchTooLarge, -1, "the batch decompresses to more than allowed", max(c.pulled, c.limit+1), c.limit}
	}
	return invalid(Corrupt, -1, "the compressed records are damaged")
}
