package record

import (
	"bytes"
	"fmt"
	"testing"
)

// newBenchBatch is a batch as producers send them: n records of 1 KiB of text-like bytes.
func newBenchBatch(b *testing.B, codec Codec, n int) Batch {
	b.Helper()
	bu := NewBuilder(codec)
	for i := range n {
		value := fmt.Appendf(nil, `{"id":%d,"name":"record %d",`, i, i*7919)
		value = append(value, bytes.Repeat([]byte("tide line "), 102)...)[:1024]
		bu.Add(testNow, fmt.Appendf(nil, "key-%d", i), value, nil)
	}
	return bu.Build()
}

func BenchmarkValidate(b *testing.B) {
	for _, codec := range allCodecs {
		for _, n := range []int{1, 16, 1000} {
			b.Run(fmt.Sprintf("%v/%d", codec, n), func(b *testing.B) {
				batch := newBenchBatch(b, codec, n)
				r := testRules()
				r.MaxBatchBytes = 0
				b.SetBytes(int64(n) * 1024)
				b.ReportAllocs()
				for b.Loop() {
					if err := validate(batch, r); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	bu := NewBuilder(None)
	value := make([]byte, 1024)
	b.ReportAllocs()
	for b.Loop() {
		bu.Reset()
		bu.Add(testNow, nil, value, nil)
		bu.Build()
	}
}

func BenchmarkRecords(b *testing.B) {
	for _, codec := range []Codec{None, Zstd} {
		b.Run(codec.String(), func(b *testing.B) {
			batch := newBenchBatch(b, codec, 1000)
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range batch.Records(0) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
