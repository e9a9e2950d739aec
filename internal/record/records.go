package record

import "iter"

// Header is one header of a record. A nil Value is the protocol's null.
type Header struct {
	Key   string
	Value []byte
}

// Record is one record of a batch. A nil Key or Value is the protocol's null and differs from an empty one.
type Record struct {
	// OffsetDelta is the record's offset less the batch's base offset.
	OffsetDelta int32
	// TimestampDelta is the record's timestamp less the batch's base timestamp, in milliseconds.
	TimestampDelta int64
	Key, Value     []byte
	Headers        []Header
}

// Records iterates over the records of the batch, decompressing at most maxDecompressed bytes (0: DecompressedLimit of the batch).
func (b Batch) Records(maxDecompressed int) iter.Seq2[Record, error] { panic("being written") }
