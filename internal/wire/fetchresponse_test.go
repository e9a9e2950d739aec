package wire

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// randomFetchResponse fills a response; null and empty arrays, tags at their defaults and set ones all occur.
func randomFetchResponse(rng *rand.Rand, version int16) *kmsg.FetchResponse {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = version
	fill(rng, reflect.ValueOf(resp).Elem())
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			p := &resp.Topics[i].Partitions[j]
			switch rng.IntN(3) {
			case 0:
				p.AbortedTransactions = nil
			case 1:
				p.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
			}
			if rng.IntN(2) == 0 {
				p.DivergingEpoch.Default()
			}
			if rng.IntN(2) == 0 {
				p.CurrentLeader.Default()
			}
			p.RecordBatches = make([]byte, rng.IntN(200))
			for k := range p.RecordBatches {
				p.RecordBatches[k] = byte(rng.Uint32())
			}
		}
	}
	if rng.IntN(2) == 0 {
		resp.Brokers = nil
	}
	return resp
}

func TestFetchEncoderAgreesWithKmsg(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	var e FetchEncoder
	for version := int16(4); version <= 18; version++ {
		for range 300 {
			resp := randomFetchResponse(rng, version)
			corr := int32(rng.Uint32())
			segments, size := e.Encode(resp, corr)
			got := bytes.Join(segments, nil)
			if want := AppendResponse(nil, resp, corr); !bytes.Equal(got, want) {
				t.Fatalf("version %d:\n%x\nwant\n%x\n%+v", version, got, want, resp)
			}
			if size != len(got) {
				t.Fatalf("size %d of %d", size, len(got))
			}
		}
	}
}

func TestFetchEncoderDoesNotCopyRecords(t *testing.T) {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = 12
	records := [][]byte{bytes.Repeat([]byte("a"), 100), nil, bytes.Repeat([]byte("b"), 100)}
	rt := kmsg.NewFetchResponseTopic()
	for _, r := range records {
		p := kmsg.NewFetchResponseTopicPartition()
		p.RecordBatches = r
		rt.Partitions = append(rt.Partitions, p)
	}
	resp.Topics = append(resp.Topics, rt)
	var e FetchEncoder
	segments, _ := e.Encode(resp, 1)
	if len(segments) != 5 || &segments[1][0] != &records[0][0] || &segments[3][0] != &records[2][0] {
		t.Fatalf("%d segments", len(segments))
	}
	var back kmsg.FetchResponse
	back.Version = 12
	if err := back.ReadFrom(bytes.Join(segments, nil)[9:]); err != nil {
		t.Fatal(err)
	}
	if p := back.Topics[0].Partitions[1]; p.RecordBatches == nil || len(p.RecordBatches) != 0 {
		t.Error("null records must be written as empty ones")
	}
	e.Forget()
	for _, s := range segments {
		if s != nil {
			t.Error("the encoder keeps segments alive")
		}
	}
	if n := testing.AllocsPerRun(100, func() { e.Encode(resp, 1) }); n != 0 {
		t.Errorf("%.0f allocations", n)
	}
}
