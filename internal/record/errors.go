package record

import (
	"errors"
	"strconv"
)

var (
	// ErrTruncated means that the bytes end before the batch they begin does: more bytes may complete it.
	ErrTruncated = errors.New("record batch is cut short")
	// ErrMalformed means that a batch's length field cannot be right whatever follows.
	ErrMalformed = errors.New("record batch is malformed")
	// ErrMagic means that the batch has another format than magic 2.
	ErrMagic = errors.New("record batch magic is not 2")
	// ErrChecksum means that the bytes of the batch are not the ones that were written (I11).
	ErrChecksum = errors.New("record batch checksum does not match")
	// ErrCodec means that the compression bits name no known codec.
	ErrCodec = errors.New("unknown compression codec")
	// ErrCompressed means that compressed bytes are not exactly one valid frame of their codec.
	ErrCompressed = errors.New("compressed records are damaged")
	// ErrTooLarge means that decompression was stopped at its cap (C088).
	ErrTooLarge = errors.New("records decompress to more than allowed")
	// ErrRecord means that a record inside a batch cannot be read.
	ErrRecord = errors.New("record is malformed")
)

// Kind says which rule a batch broke.
type Kind uint8

// The kinds of InvalidError. The comment names the protocol's error code that fits.
const (
	// Corrupt: framing, checksum or compressed bytes are damaged (CORRUPT_MESSAGE).
	Corrupt Kind = iota + 1
	// InvalidRecord: the batch says something a client may not say (INVALID_RECORD).
	InvalidRecord
	// InvalidTimestamp: a timestamp is impossible or outside the topic's bounds (INVALID_TIMESTAMP).
	InvalidTimestamp
	// BatchTooLarge: the batch, or what it decompresses to, is over its limit (MESSAGE_TOO_LARGE).
	BatchTooLarge
	// RecordTooLarge: one record is over its limit (MESSAGE_TOO_LARGE).
	RecordTooLarge
	// UnsupportedCompression: a codec the request's version does not allow (UNSUPPORTED_COMPRESSION_TYPE).
	UnsupportedCompression
)

// String returns the kind in words.
func (k Kind) String() string {
	switch k {
	case Corrupt:
		return "corrupt batch"
	case InvalidRecord:
		return "invalid record"
	case InvalidTimestamp:
		return "invalid timestamp"
	case BatchTooLarge:
		return "batch too large"
	case RecordTooLarge:
		return "record too large"
	case UnsupportedCompression:
		return "unsupported compression"
	}
	return "kind " + strconv.Itoa(int(k))
}

// InvalidError says why a batch from a client was refused.
type InvalidError struct {
	Kind Kind
	// RecordIndex is the index of the offending record in its batch, or -1 when the batch as a whole is at fault.
	RecordIndex int
	// Why is one clause for the client, without the kind.
	Why string
	// Size and Limit are in bytes; both 0 unless Kind is BatchTooLarge or RecordTooLarge.
	Size, Limit int64
}

// Error names the kind, the record, the reason, and size and limit where they apply.
func (e *InvalidError) Error() string {
	s := e.Kind.String()
	if e.RecordIndex >= 0 {
		s += ": record " + strconv.Itoa(e.RecordIndex)
	}
	s += ": " + e.Why
	if e.Limit > 0 {
		s += " (" + strconv.FormatInt(e.Size, 10) + " bytes, limit " + strconv.FormatInt(e.Limit, 10) + ")"
	}
	return s
}

func invalid(k Kind, index int, why string) *InvalidError {
	return &InvalidError{Kind: k, RecordIndex: index, Why: why}
}
