package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// handleOffsetForLeaderEpoch tells where the records of a leader epoch end, which is how consumers find out that their log was
// truncated (KIP-320).
func (s *Server) handleOffsetForLeaderEpoch(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.OffsetForLeaderEpochRequest)
	resp := reply[*kmsg.OffsetForLeaderEpochResponse](req)
	img := s.cfg.Image()
	total := 0
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewOffsetForLeaderEpochResponseTopic()
		out.Topic = t.Topic
		topic, code := s.findTopicFor(call, kmsg.ACLOperationDescribe, img, byName(t.Topic))
		for j := range t.Partitions {
			p := &t.Partitions[j]
			o := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			o.Partition, o.LeaderEpoch, o.EndOffset = p.Partition, int32(kafka.NoEpoch), int64(kafka.NoOffset)
			total++
			switch {
			case total > partitionsMax:
				o.ErrorCode = int16(kafka.PolicyViolation)
			case topic == nil:
				o.ErrorCode = int16(code)
			case p.Partition < 0 || int(p.Partition) >= len(topic.Partitions):
				o.ErrorCode = int16(kafka.UnknownTopicOrPartition)
			default:
				tp := kafka.TopicPartition{Topic: topic.ID, Partition: p.Partition}
				end, err := s.cfg.Replicas.EpochEnd(tp, kafka.LeaderEpoch(p.LeaderEpoch), kafka.LeaderEpoch(p.CurrentLeaderEpoch))
				if err != nil {
					o.ErrorCode = int16(s.partitionCode(err, tp, false, "look up an epoch's end"))
				} else {
					o.LeaderEpoch, o.EndOffset = int32(end.Epoch), int64(end.End)
				}
			}
			out.Partitions = append(out.Partitions, o)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return ready(resp)
}
