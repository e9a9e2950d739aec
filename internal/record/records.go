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

// Timestamp is the time of a record of b, in milliseconds since the Unix epoch: its own, or that of the whole batch where the leader
// stamped it.
func (b Batch) Timestamp(r *Record) int64 { return b.timestamp(r.TimestampDelta) }

func (b Batch) timestamp(delta int64) int64 {
	if b.TimestampType() == LogAppendTime {
		return b.MaxTimestamp()
	}
	return b.BaseTimestamp() + delta
}

// Records iterates over the records of the batch, decompressing at most maxDecompressed bytes (0: DecompressedLimit of the batch).
// Keys and values are views: of the batch if it is not compressed, else of a pooled buffer that is good until the loop ends. The first
// error ends the loop; it is one of ErrCodec, ErrCompressed, ErrTooLarge, ErrRecord.
func (b Batch) Records(maxDecompressed int) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		payload, release, err := b.plain(maxDecompressed)
		if err != nil {
			yield(Record{}, err)
			return
		}
		defer release()
		c := cursor{buf: payload}
		for range b.Count() {
			var r Record
			if _, err := c.record(&r); err != nil {
				yield(Record{}, err)
				return
			}
			if !yield(r, nil) {
				return
			}
		}
		if err := c.finish(); err != nil {
			yield(Record{}, err)
		}
	}
}

// plain returns the decompressed payload and what gives its buffer back.
func (b Batch) plain(maxDecompressed int) (payload []byte, release func(), err error) {
	if b.Codec() == None {
		return b.Payload(), func() {}, nil
	}
	if maxDecompressed <= 0 {
		maxDecompressed = DecompressedLimit(len(b))
	}
	buf := buffers.Get().(*[]byte)
	*buf, err = Decompress(b.Codec(), (*buf)[:0], b.Payload(), maxDecompressed)
	if err != nil {
		putBuffer(buf)
		return nil, nil, err
	}
	return *buf, func() { putBuffer(buf) }, nil
}

// FirstAt finds the first record whose timestamp is at least ts, in milliseconds since the Unix epoch; found is false when there is
// none. It allocates nothing and reads compressed records through a window. Errors: those of Records.
func (b Batch) FirstAt(ts int64, maxDecompressed int) (offsetDelta int32, timestamp int64, found bool, err error) {
	if maxDecompressed <= 0 {
		maxDecompressed = DecompressedLimit(len(b))
	}
	var c cursor
	defer c.close()
	if err := c.open(b.Codec(), b.Payload(), maxDecompressed); err != nil {
		return 0, 0, false, err
	}
	for range b.Count() {
		s, err := c.record(nil)
		if err != nil {
			return 0, 0, false, err
		}
		if t := b.timestamp(s.timestampDelta); t >= ts {
			return s.offsetDelta, t, true, nil
		}
	}
	return 0, 0, false, nil
}
