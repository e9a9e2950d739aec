package server

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/replica"
)

// noRecords is the answer "nothing": an empty set of records, never null.
var noRecords = []byte{}

// refused answers a request that fails as a whole: with a top-level error where the version has one, else on every partition.
func (w *fetchWork) refused(code kafka.ErrorCode) Reply {
	resp := reply[*kmsg.FetchResponse](w.req)
	if w.req.Version >= fetchSessions {
		resp.ErrorCode = int16(code)
		return ready(resp)
	}
	for i := range w.req.Topics {
		t := &w.req.Topics[i]
		out := kmsg.NewFetchResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		for j := range t.Partitions {
			out.Partitions = append(out.Partitions, failedFetch(t.Partitions[j].Partition, code))
		}
		resp.Topics = append(resp.Topics, out)
	}
	return ready(resp)
}

// throttled answers a client that owes for what it got before: nothing, and the session, if it is one that goes on, stays.
func (w *fetchWork) throttled() Reply {
	resp := reply[*kmsg.FetchResponse](w.req)
	resp.Topics = []kmsg.FetchResponseTopic{}
	switch {
	case w.session == nil:
	case w.full:
		w.server.sessions.drop(w.session) // the client has not been told of it
	default:
		resp.SessionID = w.session.id
	}
	return ready(resp)
}

func failedFetch(partition int32, code kafka.ErrorCode) kmsg.FetchResponseTopicPartition {
	o := kmsg.NewFetchResponseTopicPartition()
	o.Partition, o.ErrorCode, o.RecordBatches = partition, int16(code), noRecords
	o.HighWatermark, o.LastStableOffset, o.LogStartOffset = int64(kafka.NoOffset), int64(kafka.NoOffset), int64(kafka.NoOffset)
	return o
}

// answer builds the response. It is made of views of the work, records included, so the work goes back to the pool when it has been
// written.
func (w *fetchWork) answer(results []replica.FetchResult) Reply {
	resp := &w.resp
	resp.Default()
	resp.Version = w.req.Version
	w.partitions(results)
	if w.session != nil {
		resp.SessionID = w.session.id
		w.session.tell(w.news, w.full)
		w.leaveOut()
	}
	var leaders hints
	for i := range w.outs {
		if o := &w.outs[i]; o.CurrentLeader.LeaderID >= 0 {
			leaders.add(w.server, w.call, kafka.NodeID(o.CurrentLeader.LeaderID))
		}
	}
	resp.Topics, resp.Brokers = w.grouped(), leaders.fetch()
	w.server.cfg.Metrics.Fetches.Served(w.unable)
	return Reply{Response: resp, Release: w.release}
}

// leaveOut drops the partitions that the session's client need not be told about.
func (w *fetchWork) leaveOut() {
	kept := 0
	for i := range w.outs {
		if w.news[i].include {
			w.outs[kept], w.news[kept] = w.outs[i], w.news[i]
			kept++
		}
	}
	clear(w.outs[kept:])
	w.outs, w.news = w.outs[:kept], w.news[:kept]
}

// grouped makes the topics of the response: partitions of one topic that follow each other share its entry.
func (w *fetchWork) grouped() []kmsg.FetchResponseTopic {
	w.topics = w.topics[:0]
	from := 0
	for i := range w.outs {
		k := &w.news[i].key
		if i+1 < len(w.outs) && w.news[i+1].key.topic == k.topic && w.news[i+1].key.id == k.id {
			continue
		}
		t := kmsg.NewFetchResponseTopic()
		t.Topic, t.TopicID, t.Partitions = k.topic, k.id, w.outs[from:i+1:i+1]
		w.topics = append(w.topics, t)
		from = i + 1
	}
	return w.topics
}

// partitions makes the answer of every part, in the order of parts, and the news for the session.
func (w *fetchWork) partitions(results []replica.FetchResult) {
	w.outs, w.news = w.outs[:0], w.news[:0]
	bytes := 0
	for i := range w.parts {
		w.outs = append(w.outs, failedFetch(w.parts[i].key.partition, w.codes[i]))
	}
	for k := range results {
		i := w.index[k]
		w.fill(&w.outs[i], &w.parts[i], &results[k])
		bytes += len(w.outs[i].RecordBatches)
	}
	w.server.cfg.Metrics.FetchBytes.Add(float64(bytes))
	for i := range w.outs {
		o := &w.outs[i]
		w.unable = w.unable || ours(kafka.ErrorCode(o.ErrorCode))
		w.news = append(w.news, fetchNews{
			key: w.parts[i].key, bytes: len(o.RecordBatches),
			hw: kafka.Offset(o.HighWatermark), logStart: kafka.Offset(o.LogStartOffset),
			failed: o.ErrorCode != 0, loud: o.ErrorCode != 0 || o.DivergingEpoch.Epoch >= 0,
		})
	}
}

// fill answers one partition that was read.
func (w *fetchWork) fill(o *kmsg.FetchResponseTopicPartition, p *fetchPart, r *replica.FetchResult) {
	if r.Err != nil {
		w.fail(o, p, r)
		return
	}
	if w.req.Version < fetchZstd && w.server.promisesZstd(p.tp.Topic) {
		o.ErrorCode = int16(kafka.UnsupportedCompressionType)
		return
	}
	o.HighWatermark, o.LastStableOffset, o.LogStartOffset = int64(r.HighWatermark), int64(r.LastStable), int64(r.LogStart)
	if w.options.ReadCommitted {
		o.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{} // an array, if empty; null is for read_uncommitted
	}
	if len(r.Records) > 0 {
		o.RecordBatches = r.Records
	}
	if r.Diverging != nil {
		o.DivergingEpoch.Epoch, o.DivergingEpoch.EndOffset = int32(r.Diverging.Epoch), int64(r.Diverging.End)
	}
}

func (w *fetchWork) fail(o *kmsg.FetchResponseTopicPartition, p *fetchPart, r *replica.FetchResult) {
	s := w.server
	code := s.partitionCode(r.Err, p.tp, w.req.Version >= fetchByID, "read")
	if errors.Is(r.Err, replica.ErrOffsetNotAvailable) && w.req.Version < fetchOffsetNotAvailable {
		code = kafka.LeaderNotAvailable
	}
	o.ErrorCode = int16(code)
	s.sentAway(code)
	if code != kafka.NotLeaderOrFollower && code != kafka.FencedLeaderEpoch {
		return
	}
	node, epoch := s.newestLeader(p.tp, r.Leader, r.LeaderEpoch)
	w.unable = w.unable || node == kafka.NoNode
	if node != kafka.NoNode && w.req.Version >= fetchLeaderHints {
		o.CurrentLeader.LeaderID, o.CurrentLeader.LeaderEpoch = int32(node), int32(epoch)
	}
}

// fetchOffsetNotAvailable is the first Fetch version whose clients know OFFSET_NOT_AVAILABLE (KIP-392).
const fetchOffsetNotAvailable = 11
