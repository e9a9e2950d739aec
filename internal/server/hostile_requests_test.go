package server

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// hostileRequests are sound requests that no client should make, and connections that are used as none should be.
var hostileRequests = []hostileCase{
	{name: "K36_partition_named_twice", attack: k36},
	{name: "K37_huge_requests", attack: k37},
	{name: "K38_fetch_limits", attack: k38},
	{name: "K39_fetch_offsets", attack: func(a *attack) {
		for _, off := range []int64{-5, -1, 1, math.MaxInt64, math.MinInt64} {
			p := ask[*kmsg.FetchResponse](a.dial(), newFetch("target", 0, off)).Topics[0].Partitions[0]
			a.code(fmt.Sprint("offset ", off), p.ErrorCode, kafka.OffsetOutOfRange)
			if p.HighWatermark != -1 || p.LogStartOffset != -1 {
				a.Errorf("offset %d: watermark %d, start %d", off, p.HighWatermark, p.LogStartOffset)
			}
		}
	}},
	{name: "K40_fetch_as_a_replica", attack: func(a *attack) {
		for _, replica := range []int32{0, 1, 2, math.MaxInt32} {
			f := newFetch("target", 0, 0)
			f.ReplicaID = replica
			a.code(fmt.Sprint("replica ", replica), ask[*kmsg.FetchResponse](a.dial(), f).ErrorCode, kafka.ClusterAuthorizationFailed)
			f = newFetch("target", 0, 0)
			f.Version, f.Topics[0].TopicID, f.ReplicaState.ID = 15, a.topic, replica
			a.code(fmt.Sprint("replica tag ", replica), ask[*kmsg.FetchResponse](a.dial(), f).ErrorCode, kafka.ClusterAuthorizationFailed)
		}
	}},
	{name: "K41_fetch_sessions", attack: k41},
	{name: "K43_list_offsets_timestamp", attack: func(a *attack) {
		// As in Kafka: a special timestamp that nobody knows is one of a later version.
		for _, ts := range []int64{-100, -7, math.MinInt64} {
			for _, version := range []int16{1, 11} {
				p := a.dial().listOffset("target", ts, version)
				a.code(fmt.Sprint("timestamp ", ts), p.ErrorCode, kafka.UnsupportedVersion)
				if p.Offset != -1 || p.Timestamp != -1 {
					a.Errorf("timestamp %d: offset %d, timestamp %d, want -1", ts, p.Offset, p.Timestamp)
				}
			}
		}
	}},
	{name: "K59_pipeline_and_close", attack: func(a *attack) {
		for range 5 {
			c := a.dial()
			for i := range 100 {
				if i%2 == 0 {
					c.send(newProduce("target", 1, a.b.newBatch(strings.Repeat("x", 1000))))
				} else {
					f := newFetch("target", 2, 0)
					f.MaxWaitMillis = maxInt32
					c.send(f)
				}
			}
			c.conn.Close()
		}
	}},
	{name: "K60_answers_never_read", attack: k60},
	{name: "K61_one_correlation_id", attack: k61},
}

func k36(a *attack) {
	c := a.dial()
	req := newProduce("target", 0, a.b.newBatch("a"))
	for _, p := range []int32{3, 0} {
		rp := kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = p, a.b.newBatch("b")
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, rp)
	}
	req.Topics = append(req.Topics, newProduce("target", 0, a.b.newBatch("c")).Topics...) // and once more under the topic's second entry
	answered := map[int32]kafka.ErrorCode{}
	for _, t := range ask[*kmsg.ProduceResponse](c, req).Topics {
		for _, p := range t.Partitions {
			if _, again := answered[p.Partition]; again {
				a.Errorf("partition %d is answered twice", p.Partition)
			}
			answered[p.Partition] = kafka.ErrorCode(p.ErrorCode)
		}
	}
	if answered[0] != kafka.InvalidRequest || answered[3] != kafka.None || len(answered) != 2 {
		a.Errorf("answered %v, want INVALID_REQUEST for partition 0 alone", answered)
	}
	a.nothingStored()
	f := newFetch("target", 1, 0)
	f.Topics[0].Partitions = append(f.Topics[0].Partitions, newFetchPartition(1, 0))
	a.code("fetch", ask[*kmsg.FetchResponse](c, f).ErrorCode, kafka.InvalidRequest)
	l := request(wire.KeyListOffsets, "target", a.topic, nil).(*kmsg.ListOffsetsRequest)
	l.Version = 5
	l.Topics = append(l.Topics, l.Topics...)
	a.code("list offsets", ask[*kmsg.ListOffsetsResponse](c, l).Topics[0].Partitions[0].ErrorCode, kafka.InvalidRequest)
}

// k37: bounded by the number of things named, and by what the structs of a request may take; nothing is created on the way.
func k37(a *attack) {
	c, topics := a.dial(), a.b.quorum.Image().TopicCount()
	m := newMetadata(12, names(lookupsMax+10)...)
	m.AllowAutoTopicCreation = true
	resp := ask[*kmsg.MetadataResponse](c, m)
	a.code("the last of too many topics", resp.Topics[lookupsMax+9].ErrorCode, kafka.PolicyViolation)
	resp = nil
	m = newMetadata(12, names(1_000_000)...)
	m.AllowAutoTopicCreation = true
	a.closes("a million topics", reasonBudget, c.frame(m, 0))
	m = nil

	req := newProduce("target", 0, nil)
	req.Topics[0].Partitions = make([]kmsg.ProduceRequestTopicPartition, 100_000)
	for i := range req.Topics[0].Partitions {
		req.Topics[0].Partitions[i].Partition = int32(i)
	}
	produced := ask[*kmsg.ProduceResponse](c, req).Topics[0].Partitions
	a.code("the first of 100,000 partitions to publish to", produced[0].ErrorCode, kafka.PolicyViolation)
	a.code("the last", produced[len(produced)-1].ErrorCode, kafka.PolicyViolation)

	f := newFetch("target", 0, 0)
	f.Topics[0].Partitions = nil
	for i := range int32(100_000) {
		f.Topics[0].Partitions = append(f.Topics[0].Partitions, newFetchPartition(i, 0))
	}
	a.code("100,000 partitions to fetch", ask[*kmsg.FetchResponse](c, f).ErrorCode, kafka.PolicyViolation)
	create := newCreate("many", 1)
	for i := range 100_000 {
		create.Topics = append(create.Topics, newCreate(fmt.Sprint("many-", i), 1).Topics...)
	}
	create.ValidateOnly = true // the first ones would be made
	created := ask[*kmsg.CreateTopicsResponse](c, create).Topics
	a.code("the first of 100,001 topics to create", created[0].ErrorCode, kafka.None)
	a.code("the last", created[len(created)-1].ErrorCode, kafka.PolicyViolation)
	if n := a.b.quorum.Image().TopicCount(); n != topics {
		a.Errorf("%d topics were created", n-topics)
	}
}

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint("t", i)
	}
	return out
}

// k38: numbers out of bounds are brought within them.
func k38(a *attack) {
	c := a.dial()
	c.publish(newProduce("target", 1, a.b.newBatch("a")))
	for _, n := range []int32{math.MinInt32, -1, 0, maxInt32} {
		f := newFetch("target", 1, 0)
		f.MaxBytes, f.MinBytes, f.MaxWaitMillis = n, 1, 100
		f.Topics[0].Partitions[0].PartitionMaxBytes = n
		if got := values(a, ask[*kmsg.FetchResponse](c, f).Topics[0].Partitions[0].RecordBatches); len(got) != 1 {
			a.Errorf("max bytes %d: %v, want the one record", n, got)
		}
	}
	f := newFetch("target", 1, 0)
	f.MaxBytes, f.MinBytes, f.MaxWaitMillis = 10, maxInt32, maxInt32
	if got := ask[*kmsg.FetchResponse](c, f).Topics[0].Partitions[0]; len(got.RecordBatches) == 0 {
		a.Error("more to be waited for than may be answered: no record")
	}
	f = newFetch("target", 3, 0)
	f.MaxWaitMillis = math.MinInt32
	ask[*kmsg.FetchResponse](c, f) // does not wait
	f = newFetch("target", 2, 0)
	f.MaxWaitMillis = maxInt32
	parked := a.b.server.Do(context.Background(), &Call{Request: f}).Pending
	if wait := time.Until(parked.Deadline()); wait > fetchWaitMax {
		a.Errorf("the longest wait is %v, want it within %v", wait, fetchWaitMax)
	}
	parked.Cancel()
}

func k41(a *attack) {
	c := a.dial()
	open := newFetch("target", 0, 0)
	open.SessionEpoch = 0
	id := ask[*kmsg.FetchResponse](c, open).SessionID
	if id == 0 {
		a.Fatal("no session")
	}
	next := kmsg.NewPtrFetchRequest()
	next.Version, next.MaxBytes, next.SessionEpoch = 12, 1000, 1
	for _, random := range []int32{12345, -1, math.MinInt32, maxInt32} {
		next.SessionID = random
		a.code(fmt.Sprint("session ", random), ask[*kmsg.FetchResponse](c, next).ErrorCode, kafka.FetchSessionIDNotFound)
	}
	next.SessionID = id
	thief := a.dial()
	thief.id = "thief"
	a.code("another client's session", ask[*kmsg.FetchResponse](thief, next).ErrorCode, kafka.FetchSessionIDNotFound)
	for _, epoch := range []int32{9, 2, -2, math.MinInt32, maxInt32} {
		next.SessionEpoch = epoch
		a.code(fmt.Sprint("epoch ", epoch), ask[*kmsg.FetchResponse](c, next).ErrorCode, kafka.InvalidFetchSessionEpoch)
	}
	next.SessionEpoch = 1
	a.code("the right epoch still", ask[*kmsg.FetchResponse](c, next).ErrorCode, kafka.None)

	// A session remembers its partitions. Names that no topic can have must not be remembered: they may be of any size.
	long := newFetch(strings.Repeat("n", 3<<20), 0, 0)
	long.SessionEpoch = 0
	if got := ask[*kmsg.FetchResponse](a.dial(), long); got.SessionID != 0 {
		a.Error("a session for a name that no topic can have")
	}
	long.SessionID, long.SessionEpoch = id, 2
	a.code("such a name in a session", ask[*kmsg.FetchResponse](c, long).ErrorCode, kafka.FetchSessionIDNotFound)
}

// k60: everything that an answer holds is given back when the peer takes nothing for the write deadline.
func k60(a *attack) {
	c := a.dial()
	for range 10 {
		a.code("publish", c.publish(newProduce("target", 1, a.b.newBatch(strings.Repeat("y", 800_000)))).ErrorCode, kafka.None)
	}
	hang := a.dial()
	f := newFetch("target", 1, 0)
	f.MaxBytes, f.Topics[0].Partitions[0].PartitionMaxBytes = 16<<20, 16<<20
	hang.write(bytes.Repeat(hang.frame(f, 0), 50))
	a.line("a peer that does not read", hang, reasonSlowReader)
}

// k61: answers come in request order, whatever the ids say.
func k61(a *attack) {
	c := a.dial()
	const same = 77
	var all []byte
	var reqs []kmsg.Request
	for i := range 60 {
		switch i % 3 {
		case 0:
			reqs = append(reqs, newProduce("target", 3, a.b.newBatch(fmt.Sprint(i))))
		case 1:
			reqs = append(reqs, newMetadata(12, "target"))
		default:
			l := request(wire.KeyListOffsets, "target", a.topic, nil).(*kmsg.ListOffsetsRequest)
			l.Version, l.Topics[0].Partitions[0].Partition = 5, 3
			reqs = append(reqs, l)
		}
		all = append(all, c.frame(reqs[i], same)...)
	}
	c.write(all)
	first := int64(-1)
	for i, r := range reqs {
		resp := c.read(r, same)
		switch r := resp.(type) {
		case *kmsg.ProduceResponse:
			if first < 0 {
				first = r.Topics[0].Partitions[0].BaseOffset
			}
			if got := r.Topics[0].Partitions[0].BaseOffset; got != first+int64(i/3) {
				a.Errorf("publish %d: offset %d, want %d", i, got, first+int64(i/3))
			}
		case *kmsg.ListOffsetsResponse:
			if got := r.Topics[0].Partitions[0].Offset; got != first+int64(i/3)+1 {
				a.Errorf("end %d: %d, want the one behind the record published just before", i, got)
			}
		}
	}
}
