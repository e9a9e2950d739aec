package wire

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func BenchmarkParseRequestHeader(b *testing.B) {
	raw := kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, goldenProduceRequest(9), 1)[frameSizeBytes:]
	var p HeaderParser
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := p.Parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeProduce(b *testing.B) {
	for _, scan := range []bool{false, true} {
		b.Run(fmt.Sprintf("scanOnly=%v", scan), func(b *testing.B) {
			body := goldenProduceRequest(9).AppendTo(nil)
			b.ReportAllocs()
			for b.Loop() {
				if scan {
					if err := scanRequest(KeyProduce, 9, body, maxDecodedRequest); err != nil {
						b.Fatal(err)
					}
					continue
				}
				req := kmsg.NewPtrProduceRequest()
				req.Version = 9
				if err := DecodeRequest(req, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func newBenchFetch(partitions int) *kmsg.FetchResponse {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = 16
	rt := kmsg.NewFetchResponseTopic()
	rt.TopicID = testID()
	for i := range partitions {
		p := kmsg.NewFetchResponseTopicPartition()
		p.Partition, p.RecordBatches = int32(i), make([]byte, 64<<10)
		rt.Partitions = append(rt.Partitions, p)
	}
	resp.Topics = append(resp.Topics, rt)
	return resp
}

func BenchmarkFetchEncode(b *testing.B) {
	for _, n := range []int{1, 50} {
		resp := newBenchFetch(n)
		b.Run(fmt.Sprintf("segments/%d", n), func(b *testing.B) {
			var e FetchEncoder
			b.ReportAllocs()
			for b.Loop() {
				e.Encode(resp, 1)
			}
		})
		b.Run(fmt.Sprintf("kmsg/%d", n), func(b *testing.B) {
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				dst = AppendResponse(dst[:0], resp, 1)
			}
		})
	}
}
