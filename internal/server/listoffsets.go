package server

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/replica"
)

const (
	// isolationReadCommitted is the isolation level that stops at the last stable offset.
	isolationReadCommitted = 1
	// listOffsetNotAvailable is the first ListOffsets version whose clients know OFFSET_NOT_AVAILABLE.
	listOffsetNotAvailable = 5
)

// timestampSince is the first ListOffsets version that knows each special timestamp.
var timestampSince = map[int64]int16{
	replica.LatestTimestamp:          1,
	replica.EarliestTimestamp:        1,
	replica.MaxTimestamp:             7,
	replica.EarliestLocalTimestamp:   8,
	replica.LatestTieredTimestamp:    9,
	replica.EarliestPendingTimestamp: 11,
}

// listedPartition is a partition as ListOffsets and OffsetForLeaderEpoch name it.
type listedPartition struct {
	topic     string
	partition int32
}

// handleListOffsets looks up offsets by time, or by one of the special timestamps.
func (s *Server) handleListOffsets(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.ListOffsetsRequest)
	resp := reply[*kmsg.ListOffsetsResponse](req)
	img := s.cfg.Image()
	named := map[listedPartition]int{}
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			named[listedPartition{req.Topics[i].Topic, req.Topics[i].Partitions[j].Partition}]++
		}
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = t.Topic
		topic, code := s.findTopicFor(call, kmsg.ACLOperationDescribe, img, byName(t.Topic))
		for j := range t.Partitions {
			p := &t.Partitions[j]
			o := kmsg.NewListOffsetsResponseTopicPartition()
			o.Partition, o.Timestamp, o.Offset, o.LeaderEpoch = p.Partition, -1, int64(kafka.NoOffset), int32(kafka.NoEpoch)
			switch {
			case len(named) > partitionsMax:
				o.ErrorCode = int16(kafka.PolicyViolation)
			case named[listedPartition{t.Topic, p.Partition}] > 1:
				o.ErrorCode = int16(kafka.InvalidRequest)
			case topic == nil:
				o.ErrorCode = int16(code)
			case p.Partition < 0 || int(p.Partition) >= len(topic.Partitions):
				o.ErrorCode = int16(kafka.UnknownTopicOrPartition)
			default:
				s.listOffset(kafka.TopicPartition{Topic: topic.ID, Partition: p.Partition}, p, req, &o)
			}
			out.Partitions = append(out.Partitions, o)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return ready(resp)
}

// listOffset answers one partition. On an error every number stays -1: a made-up 0 would send a consumer to the start (C062).
func (s *Server) listOffset(tp kafka.TopicPartition, p *kmsg.ListOffsetsRequestTopicPartition, req *kmsg.ListOffsetsRequest, o *kmsg.ListOffsetsResponseTopicPartition) {
	if since, special := timestampSince[p.Timestamp]; p.Timestamp < 0 && (!special || req.Version < since) {
		o.ErrorCode = int16(kafka.UnsupportedVersion)
		return
	}
	readCommitted := req.IsolationLevel == isolationReadCommitted
	if p.Timestamp != replica.LatestTimestamp && p.Timestamp != replica.EarliestTimestamp { // looks into a batch
		defer s.inflate.begin()()
	}
	found, err := s.cfg.Replicas.ListOffset(tp, p.Timestamp, kafka.LeaderEpoch(p.CurrentLeaderEpoch), readCommitted)
	if err != nil {
		code := s.partitionCode(err, tp, false, "list offsets")
		if errors.Is(err, replica.ErrOffsetNotAvailable) && req.Version < listOffsetNotAvailable {
			code = kafka.LeaderNotAvailable
		}
		o.ErrorCode = int16(code)
		return
	}
	o.Timestamp, o.Offset, o.LeaderEpoch = found.TimestampMs, int64(found.Offset), int32(found.Epoch)
}
