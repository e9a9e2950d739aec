package rest

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/server"
)

// wanted is what a fetch asks for.
type wanted struct {
	topic     string
	partition int32
	from      int64 // -1: the log's start
	records   int
	wait      time.Duration
}

func readWanted(r *http.Request) (wanted, error) {
	q := wanted{topic: r.PathValue("topic"), from: -1, records: fetchRecordsDefault}
	n, err := strconv.ParseInt(r.PathValue("partition"), 10, 32)
	if err != nil || n < 0 {
		return q, invalid("path.partition", "is not a number from 0 to 2147483647")
	}
	q.partition = int32(n)
	params, err := query(r, "fromOffset", "maxRecords", "waitMs")
	if err != nil {
		return q, err
	}
	for name, take := range map[string]func(int64){
		"fromOffset": func(n int64) { q.from = n },
		"maxRecords": func(n int64) { q.records = int(min(n, fetchRecordsMax)) },
		"waitMs":     func(n int64) { q.wait = time.Duration(min(n, int64(waitMax/time.Millisecond))) * time.Millisecond },
	} {
		text, ok := params[name]
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n == 0 && name == "maxRecords" {
			return q, invalid("query."+name, "is not a whole number in range")
		}
		take(n)
	}
	return q, nil
}

// fetch is GET /v1/topics/{topic}/partitions/{partition}/records. It moves no position: that is what commits are for (R40).
func (d *door) fetch(w http.ResponseWriter, r *http.Request) {
	q, err := readWanted(r)
	if err == nil && q.from < 0 {
		var rg validRange
		if rg, err = d.rangeOf(r.Context(), d.cfg.Node, q.topic, q.partition); err == nil {
			q.from = rg.LogStart
		}
	}
	var s *server.Server
	if err == nil {
		s, err = d.broker()
	}
	if err != nil {
		d.writeError(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), q.wait+adminWait)
	defer cancel()
	resp, release, err := d.fetchFrom(ctx, d.cfg.Node, q.request(s.Topic(q.topic).ID))
	if err != nil {
		d.writeError(w, err)
		return
	}
	defer release()
	if resp.ErrorCode != 0 {
		no := failed(kafka.ErrorCode(resp.ErrorCode), nil)
		if no.Status == http.StatusTooManyRequests {
			no = throttled("over the quota of reading on this node", time.Duration(resp.ThrottleMillis)*time.Millisecond)
		}
		d.writeError(w, no)
		return
	}
	p := &resp.Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		d.writeError(w, d.unread(r.Context(), q, p, resp.Brokers))
		return
	}
	d.fetched(w, q, p, s.Topic(q.topic).RecordIDHeader)
}

// fetchFrom has a node answer a fetch of one partition. What it read is good until release.
func (d *door) fetchFrom(ctx context.Context, node kafka.NodeID, req *kmsg.FetchRequest) (resp *kmsg.FetchResponse, release func(), err error) {
	release = func() {}
	s, err := d.broker()
	if err != nil {
		return nil, release, err
	}
	got, release, err := s.Read(ctx, node, callOf(ctx, req))
	if err != nil {
		return nil, release, unanswered(err)
	}
	resp, _ = got.(*kmsg.FetchResponse)
	if resp == nil || resp.ErrorCode == 0 && (len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1) {
		release()
		return nil, func() {}, failed(kafka.UnknownServerError, nil)
	}
	return resp, release, nil
}

// request asks by id; without one by name, and the server says what is wrong.
func (q *wanted) request(id kafka.TopicID) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = -1, int32(q.wait/time.Millisecond), 1, fetchBytesMax
	req.SessionEpoch = -1 // no session
	if id.IsZero() {
		req.SetVersion(fetchedByName)
	}
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = q.topic, id
	one := kmsg.NewFetchRequestTopicPartition()
	one.Partition, one.FetchOffset, one.PartitionMaxBytes = q.partition, q.from, fetchBytesMax
	t.Partitions = append(t.Partitions, one)
	req.Topics = append(req.Topics, t)
	return req
}

// fetchedByName is the newest Fetch version that names topics by name.
const fetchedByName = 12

// unread is the problem of a partition that could not be read.
func (d *door) unread(ctx context.Context, q wanted, p *kmsg.FetchResponseTopicPartition, nodes []kmsg.FetchResponseBroker) error {
	no := failed(kafka.ErrorCode(p.ErrorCode), nil)
	switch no.Status {
	case http.StatusMisdirectedRequest:
		no.Detail = "this node does not lead partition " + strconv.Itoa(int(q.partition)) + " of " + q.topic + "; ask the leader"
		no.Leader = &leader{NodeID: p.CurrentLeader.LeaderID, LeaderEpoch: p.CurrentLeader.LeaderEpoch}
		for _, b := range nodes {
			if b.NodeID == no.Leader.NodeID {
				no.Leader.Host, no.Leader.Port = b.Host, b.Port
			}
		}
	case http.StatusRequestedRangeNotSatisfiable:
		rg, err := d.rangeOf(ctx, d.cfg.Node, q.topic, q.partition)
		if err != nil {
			return err
		}
		no.Range = &rg
		no.Detail = "offset " + strconv.FormatInt(q.from, 10) + " is not retained; records from " + strconv.FormatInt(rg.LogStart, 10) +
			" to before " + strconv.FormatInt(rg.HighWatermark, 10) + " can be read"
	case http.StatusNotFound:
		no.Detail = "there is no partition " + strconv.Itoa(int(q.partition)) + " of topic " + strconv.Quote(q.topic)
	}
	return no
}

// rangeOf asks a node, which must lead the partition, for what of it can be read.
func (d *door) rangeOf(ctx context.Context, node kafka.NodeID, topic string, partition int32) (validRange, error) {
	var rg validRange
	for _, look := range []struct {
		timestamp int64
		into      *int64
	}{{earliest, &rg.LogStart}, {latest, &rg.HighWatermark}} {
		found, err := d.listOffsets(ctx, node, topic, []int32{partition}, look.timestamp)
		if err != nil {
			return rg, err
		}
		if found[0].err != nil {
			return rg, found[0].err
		}
		*look.into = found[0].offset
	}
	return rg, nil
}

// The special timestamps of ListOffsets.
const (
	latest   = -1
	earliest = -2
)

// listed is an offset that was looked up by time.
type listed struct {
	offset, timestamp int64
	leaderEpoch       int32
	err               error
}

// listOffsets looks up offsets of partitions that one node leads, by time; in the order of the partitions.
func (d *door) listOffsets(ctx context.Context, node kafka.NodeID, topic string, partitions []int32, timestamp int64) ([]listed, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	for _, n := range partitions {
		one := kmsg.NewListOffsetsRequestTopicPartition()
		one.Partition, one.Timestamp = n, timestamp
		t.Partitions = append(t.Partitions, one)
	}
	req.Topics = append(req.Topics, t)
	resp, err := ask[*kmsg.ListOffsetsResponse](ctx, d, node, req)
	if err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != len(partitions) {
		return nil, failed(kafka.UnknownServerError, nil)
	}
	out := make([]listed, len(partitions))
	for i := range out {
		one := &resp.Topics[0].Partitions[i]
		out[i] = listed{offset: one.Offset, timestamp: one.Timestamp, leaderEpoch: one.LeaderEpoch}
		if code := kafka.ErrorCode(one.ErrorCode); code != kafka.None {
			out[i].err = failed(code, nil)
		}
	}
	return out, nil
}

// fetched writes the answer. Batches may begin below the offset asked for, and have holes.
func (d *door) fetched(w http.ResponseWriter, q wanted, p *kmsg.FetchResponseTopicPartition, idHeader string) {
	out := make([]byte, 0, len(p.RecordBatches)+len(p.RecordBatches)/2+256)
	out = append(out, `{"records":[`...)
	out, next, err := appendBatches(out, q, p.RecordBatches, idHeader)
	if err != nil {
		d.writeError(w, err)
		return
	}
	out = append(out, `],"nextOffset":`...)
	out = strconv.AppendInt(out, next, 10)
	out = append(out, `,"logStart":`...)
	out = strconv.AppendInt(out, p.LogStartOffset, 10)
	out = append(out, `,"highWatermark":`...)
	out = strconv.AppendInt(out, p.HighWatermark, 10)
	out = append(out, '}', '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(out)))
	_, _ = w.Write(out)
}

// appendBatches appends records as JSON and says at which offset to go on.
func appendBatches(out []byte, q wanted, batches []byte, idHeader string) (_ []byte, next int64, err error) {
	next = q.from
	count := 0
	for len(batches) > 0 {
		b, rest, err := record.Split(batches)
		if err != nil {
			break // the last batch of an answer may be cut
		}
		batches = rest
		if b.IsControl() {
			next = max(next, int64(b.NextOffset()))
			continue
		}
		for rec, err := range b.Records(record.DecompressedLimit(len(b))) {
			if err != nil {
				return nil, 0, failed(kafka.KafkaStorageError, nil)
			}
			at := int64(b.BaseOffset()) + int64(rec.OffsetDelta)
			if at < q.from {
				continue
			}
			if count == q.records {
				return out, next, nil
			}
			if count++; count > 1 {
				out = append(out, ',')
			}
			out = appendRecord(out, at, b.Timestamp(&rec), &rec, idHeader)
			next = at + 1
		}
		next = max(next, int64(b.NextOffset())) // also past holes
	}
	return out, next, nil
}
