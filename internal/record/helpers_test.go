package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"
)

var allCodecs = []Codec{None, Gzip, Snappy, LZ4, Zstd}

const testNow = int64(1_700_000_000_000)

// newTestBatch builds a batch of n small records.
func newTestBatch(t testing.TB, codec Codec, n int) Batch {
	t.Helper()
	bu := NewBuilder(codec)
	for i := range n {
		bu.Add(testNow+int64(i), fmt.Appendf(nil, "key-%d", i), bytes.Repeat([]byte{'v'}, 100), []Header{{"h", []byte("x")}})
	}
	return bu.Build()
}

// newTestPayload wraps raw record bytes in a batch that says it holds count records.
func newTestPayload(t testing.TB, codec Codec, count int32, payload []byte) Batch {
	t.Helper()
	b := append(newTestBatch(t, None, 1)[:HeaderSize:HeaderSize], payload...)
	binary.BigEndian.PutUint16(b[posAttributes:], uint16(codec))
	binary.BigEndian.PutUint32(b[posCount:], uint32(count))
	binary.BigEndian.PutUint32(b[posLastOffsetDelta:], uint32(count-1))
	b.seal()
	return b
}

func testRules() Rules {
	return Rules{
		MaxBatchBytes: 1 << 20, MaxRecordBytes: 1 << 20, ZstdAllowed: true,
		TimestampAfter: time.Hour, NowMs: testNow,
	}
}

func mustCompress(t testing.TB, codec Codec, src []byte) []byte {
	t.Helper()
	out, err := Compress(codec, nil, src)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func clone(b Batch) Batch { return bytes.Clone(b) }
