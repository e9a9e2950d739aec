package record

import "encoding/binary"

// Split cuts the first batch off b. It checks framing only: the length field against the bytes present, and the magic. Errors:
// ErrTruncated when b ends inside the batch, ErrMalformed when the length is impossible, ErrMagic when the batch is of another
// format (then nothing behind it can be found either). On an error first is nil and rest is b.
func Split(b []byte) (first Batch, rest []byte, err error) {
	if len(b) < lengthOverhead {
		return nil, b, ErrTruncated
	}
	length := int64(int32(binary.BigEndian.Uint32(b[posLength:])))
	if length < 0 {
		return nil, b, ErrMalformed
	}
	// Older formats have shorter headers, so the magic is looked at before the length is judged.
	if len(b) > posMagic && length > posMagic-lengthOverhead && b[posMagic] != magic2 {
		return nil, b, ErrMagic
	}
	size := length + lengthOverhead
	if size < HeaderSize {
		return nil, b, ErrMalformed
	}
	if size > int64(len(b)) {
		return nil, b, ErrTruncated
	}
	return Batch(b[:size:size]), b[size:], nil
}

// Single reads the records field of one partition in a Produce request: exactly one batch and nothing behind it. Errors are
// *InvalidError.
func Single(b []byte) (Batch, error) {
	if len(b) == 0 {
		return nil, invalid(InvalidRecord, -1, "no record batch")
	}
	first, rest, err := Split(b)
	switch err {
	case nil:
	case ErrMagic:
		return nil, invalid(InvalidRecord, -1, "only record batches of magic 2 are accepted")
	default:
		return nil, invalid(Corrupt, -1, "the batch length does not match the bytes received")
	}
	if len(rest) == 0 {
		return first, nil
	}
	if _, _, err := Split(rest); err == nil || err == ErrMagic {
		return nil, invalid(InvalidRecord, -1, "more than one record batch for a partition")
	}
	return nil, invalid(Corrupt, -1, "bytes behind the record batch")
}
