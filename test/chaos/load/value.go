package load

import (
	"bytes"
	"encoding/binary"
)

// valueBytes is small: the number of records finds faults, their size does not.
const valueBytes = 128

// Value is the bytes that carry v: the number, then bytes that follow from it, so that a reader can tell a wrong byte.
func Value(v uint64) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, valueBytes), v)
	for x := v; len(b) < valueBytes; {
		x = x*6364136223846793005 + 1442695040888963407
		b = binary.BigEndian.AppendUint64(b, x)
	}
	return b
}

// ParseValue is the number that bytes carry; false says that they are not what a writer sent.
func ParseValue(b []byte) (uint64, bool) {
	if len(b) != valueBytes {
		return 0, false
	}
	v := binary.BigEndian.Uint64(b)
	return v, bytes.Equal(b, Value(v))
}
