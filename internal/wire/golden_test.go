package wire

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func testID() (id [16]byte) {
	for i := range id {
		id[i] = byte(i + 1)
	}
	return id
}

func goldenProduceRequest(v int16) kmsg.Request {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = v, -1, 30_000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic, rt.TopicID = "orders", testID()
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = 3, []byte("RECORDS")
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

func goldenProduceResponse(v int16) kmsg.Response {
	resp := kmsg.NewPtrProduceResponse()
	resp.Version, resp.ThrottleMillis = v, 12
	rt := kmsg.NewProduceResponseTopic()
	rt.Topic, rt.TopicID = "orders", testID()
	good := kmsg.NewProduceResponseTopicPartition()
	good.Partition, good.BaseOffset, good.LogStartOffset = 3, 1000, 10
	moved := kmsg.NewProduceResponseTopicPartition()
	moved.Partition, moved.ErrorCode, moved.BaseOffset = 4, 6, -1
	moved.CurrentLeader.LeaderID, moved.CurrentLeader.LeaderEpoch = 2, 7
	bad := kmsg.NewProduceResponseTopicPartition()
	bad.Partition, bad.ErrorCode, bad.BaseOffset, bad.ErrorMessage = 5, 87, -1, kmsg.StringPtr("no key")
	bad.ErrorRecords = append(bad.ErrorRecords, kmsg.ProduceResponseTopicPartitionErrorRecord{RelativeOffset: 1})
	rt.Partitions = append(rt.Partitions, good, moved, bad)
	resp.Topics = append(resp.Topics, rt)
	b := kmsg.NewProduceResponseBroker()
	b.NodeID, b.Host, b.Port = 2, "b2", 9092
	resp.Brokers = append(resp.Brokers, b)
	return resp
}

func goldenFetchRequest(v int16) kmsg.Request {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.IsolationLevel = v, 500, 1, 1<<20, 1
	req.SessionID, req.SessionEpoch, req.Rack = 77, 2, "r1"
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID = "orders", testID()
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.CurrentLeaderEpoch, rp.FetchOffset, rp.LastFetchedEpoch, rp.PartitionMaxBytes = 3, 7, 1000, 6, 1<<16
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	ft := kmsg.NewFetchRequestForgottenTopic()
	ft.Topic, ft.TopicID, ft.Partitions = "orders", testID(), []int32{4, 5}
	req.ForgottenTopics = append(req.ForgottenTopics, ft)
	return req
}

func goldenFetchResponse(v int16) *kmsg.FetchResponse {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version, resp.ThrottleMillis, resp.SessionID = v, 12, 77
	rt := kmsg.NewFetchResponseTopic()
	rt.Topic, rt.TopicID = "orders", testID()
	records := kmsg.NewFetchResponseTopicPartition()
	records.Partition, records.HighWatermark, records.LastStableOffset, records.LogStartOffset = 3, 1002, 1002, 10
	records.RecordBatches = []byte("RECORDS")
	records.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: 5, FirstOffset: 1001}}
	diverged := kmsg.NewFetchResponseTopicPartition()
	diverged.Partition, diverged.HighWatermark, diverged.LastStableOffset, diverged.LogStartOffset = 4, 90, 90, 10
	diverged.RecordBatches = []byte{}
	diverged.DivergingEpoch.Epoch, diverged.DivergingEpoch.EndOffset = 6, 88
	diverged.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
	moved := kmsg.NewFetchResponseTopicPartition()
	moved.Partition, moved.ErrorCode, moved.HighWatermark = 5, 6, -1
	moved.RecordBatches = []byte{}
	moved.CurrentLeader.LeaderID, moved.CurrentLeader.LeaderEpoch = 2, 7
	rt.Partitions = append(rt.Partitions, records, diverged, moved)
	resp.Topics = append(resp.Topics, rt)
	if v >= 16 {
		b := kmsg.NewFetchResponseBroker()
		b.NodeID, b.Host, b.Port, b.Rack = 2, "b2", 9092, kmsg.StringPtr("r1")
		resp.Brokers = append(resp.Brokers, b)
	}
	return resp
}

// dump writes one golden entry.
func dump(w *strings.Builder, what string, version int16, b []byte) {
	fmt.Fprintf(w, "%s version %d, %d bytes\n%s\n", what, version, len(b), hex.Dump(b))
}

func TestGoldenProduce(t *testing.T) {
	var w strings.Builder
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("golden"))
	for v := int16(3); v <= 13; v++ {
		raw := f.AppendRequest(nil, goldenProduceRequest(v), 1)
		dump(&w, "Produce request", v, raw)
		h, body, err := ParseRequestHeader(raw[frameSizeBytes:])
		if err != nil || *h.ClientID != "golden" {
			t.Fatal(err)
		}
		got, err := NewRequest(h.Key, h.Version)
		if err != nil {
			t.Fatal(err)
		}
		if err := DecodeRequest(got, body); err != nil {
			t.Fatal(err)
		}
		if p := got.(*kmsg.ProduceRequest); string(p.Topics[0].Partitions[0].Records) != "RECORDS" || p.Acks != -1 {
			t.Errorf("version %d: %+v", v, p)
		}
		dump(&w, "Produce response", v, AppendResponse(nil, goldenProduceResponse(v), 1))
	}
	golden(t, "produce.txt", w.String())
}

func TestGoldenFetch(t *testing.T) {
	var w strings.Builder
	var e FetchEncoder
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("golden"))
	for v := int16(4); v <= 18; v++ {
		raw := f.AppendRequest(nil, goldenFetchRequest(v), 1)
		dump(&w, "Fetch request", v, raw)
		h, body, err := ParseRequestHeader(raw[frameSizeBytes:])
		if err != nil {
			t.Fatal(err)
		}
		got, err := NewRequest(h.Key, h.Version)
		if err != nil {
			t.Fatal(err)
		}
		if err := DecodeRequest(got, body); err != nil {
			t.Fatal(err)
		}
		segments, _ := e.Encode(goldenFetchResponse(v), 1)
		resp := bytes.Join(segments, nil)
		dump(&w, "Fetch response", v, resp)
		if !bytes.Equal(resp, AppendResponse(nil, goldenFetchResponse(v), 1)) {
			t.Errorf("version %d differs from kmsg", v)
		}
	}
	golden(t, "fetch.txt", w.String())
}
