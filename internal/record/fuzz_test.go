package record

import (
	"testing"
)

const fuzzLimit = 1 << 20

func FuzzSplit(f *testing.F) {
	f.Add([]byte(newTestBatch(f, None, 2)))
	f.Add([]byte(newTestBatch(f, Zstd, 2)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		first, rest, err := Split(b)
		if err != nil {
			if first != nil || len(rest) != len(b) {
				t.Error("error with a batch")
			}
			return
		}
		if len(first)+len(rest) != len(b) || first.Size() != len(first) {
			t.Error("split lost bytes")
		}
		_, _ = first.LastSequence(), first.NextOffset()
		if s, err := Single(b); (err == nil) != (len(rest) == 0) || err == nil && len(s) != len(b) {
			t.Errorf("Single disagrees: %v", err)
		}
	})
}

// FuzzValidate: what Validate accepts, Records reads, completely and in order.
func FuzzValidate(f *testing.F) {
	for _, codec := range allCodecs {
		f.Add([]byte(newTestBatch(f, codec, 3)))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, _, err := Split(raw)
		if err != nil {
			return
		}
		b = clone(b)
		b.seal() // else the checksum stops everything
		r := testRules()
		r.MaxDecompressedBytes = fuzzLimit
		r.TimestampAfter = 0
		if validate(b, r) != nil {
			for range b.Records(fuzzLimit) {
			}
			_, _, _, _ = b.FirstAt(testNow, fuzzLimit)
			return
		}
		n := int32(0)
		for rec, err := range b.Records(fuzzLimit) {
			if err != nil {
				t.Fatal(err)
			}
			if rec.OffsetDelta != n || b.Timestamp(&rec) > b.MaxTimestamp() {
				t.Fatalf("record %d: %+v", n, rec)
			}
			n++
		}
		if n != b.Count() || b.VerifyCRC() != nil {
			t.Fatalf("%d records of %d", n, b.Count())
		}
	})
}

// FuzzRecords reads payloads that no header check has seen.
func FuzzRecords(f *testing.F) {
	f.Add(byte(0), int32(3), []byte(newTestBatch(f, None, 3).Payload()))
	f.Add(byte(4), int32(3), []byte(newTestBatch(f, Zstd, 3).Payload()))
	f.Fuzz(func(t *testing.T, codec byte, count int32, payload []byte) {
		b := newTestPayload(t, Codec(codec&codecMask), count, payload)
		n := int32(0)
		for _, err := range b.Records(fuzzLimit) {
			if err != nil {
				return
			}
			n++
		}
		if n != max(count, 0) {
			t.Errorf("%d records of %d without an error", n, count)
		}
	})
}

func fuzzDecompress(f *testing.F, codec Codec) {
	for _, src := range []string{"", "a", "some text some text some text"} {
		f.Add(mustCompress(f, codec, []byte(src)))
	}
	for _, fr := range frames(f, []byte("some text some text some text")) {
		if fr.codec == codec {
			f.Add(fr.bytes)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		out, err := Decompress(codec, nil, src, fuzzLimit)
		if err != nil {
			if len(out) != 0 {
				t.Error("error with output")
			}
			return
		}
		if len(out) > fuzzLimit {
			t.Fatalf("%d bytes, limit %d", len(out), fuzzLimit)
		}
		if _, err := Decompress(codec, nil, append(src[:len(src):len(src)], 'x'), fuzzLimit); err == nil {
			t.Error("a byte behind the frame was accepted")
		}
	})
}

func FuzzDecompressGzip(f *testing.F)   { fuzzDecompress(f, Gzip) }
func FuzzDecompressSnappy(f *testing.F) { fuzzDecompress(f, Snappy) }
func FuzzDecompressLZ4(f *testing.F)    { fuzzDecompress(f, LZ4) }
func FuzzDecompressZstd(f *testing.F)   { fuzzDecompress(f, Zstd) }
