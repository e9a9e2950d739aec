package server

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/replica"
)

// handleDeleteRecords deletes the records of partitions below an offset, or (-1) all that are committed. What is answered as deleted is
// gone for good: Logs.DeleteRecords returns when the new start is on disk.
func (s *Server) handleDeleteRecords(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.DeleteRecordsRequest)
	return background(ctx, adminTimeout(req.TimeoutMillis), func(ctx context.Context) kmsg.Response {
		return s.deleteRecords(ctx, call, req)
	})
}

func (s *Server) deleteRecords(ctx context.Context, call *Call, req *kmsg.DeleteRecordsRequest) kmsg.Response {
	resp := reply[*kmsg.DeleteRecordsResponse](req)
	var items []replica.DeleteItem
	var at [][2]int // of the answer, for each item
	img := s.cfg.Image()
	named := map[listedPartition]int{}
	for i := range req.Topics {
		for _, p := range req.Topics[i].Partitions {
			named[listedPartition{req.Topics[i].Topic, p.Partition}]++
		}
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewDeleteRecordsResponseTopic()
		out.Topic = t.Topic
		topic, code := s.findTopicFor(call, kmsg.ACLOperationDelete, img, byName(t.Topic))
		if topic != nil {
			code = s.keepsRecords(topic)
		}
		for j, p := range t.Partitions {
			o := kmsg.NewDeleteRecordsResponseTopicPartition()
			o.Partition, o.LowWatermark = p.Partition, int64(kafka.NoOffset)
			switch {
			case len(named) > partitionsMax:
				o.ErrorCode = int16(kafka.PolicyViolation)
			case named[listedPartition{t.Topic, p.Partition}] > 1:
				o.ErrorCode = int16(kafka.InvalidRequest)
			case code != kafka.None:
				o.ErrorCode = int16(code)
			case p.Partition < 0 || int(p.Partition) >= len(topic.Partitions):
				o.ErrorCode = int16(kafka.UnknownTopicOrPartition)
			default:
				tp := kafka.TopicPartition{Topic: topic.ID, Partition: p.Partition}
				items, at = append(items, replica.DeleteItem{TP: tp, To: kafka.Offset(p.Offset)}), append(at, [2]int{i, j})
			}
			out.Partitions = append(out.Partitions, o)
		}
		resp.Topics = append(resp.Topics, out)
	}
	if len(items) > 0 {
		s.cfg.Log.Info("records are to be deleted", "principal", call.Principal.String(), "client", clip(call.ClientID), "partitions", len(items))
	}
	if len(items) == 0 {
		return resp
	}
	done, err := s.begin(ctx, call, deletion(req, items, at))
	if err != nil {
		for _, a := range at {
			resp.Topics[a[0]].Partitions[a[1]].ErrorCode = int16(s.code(err, "delete records"))
		}
		return resp
	}
	for k, r := range s.cfg.Logs.DeleteRecords(ctx, items) {
		o := &resp.Topics[at[k][0]].Partitions[at[k][1]]
		o.LowWatermark, o.ErrorCode = int64(r.Start), int16(s.deletionCode(r.Err, items[k].TP))
	}
	done(refusals(resp))
	return resp
}

// deletion describes which records are to go.
func deletion(req *kmsg.DeleteRecordsRequest, items []replica.DeleteItem, at [][2]int) auth.Event {
	var what, after list
	for k, a := range at {
		name := req.Topics[a[0]].Topic
		if k == 0 || a[0] != at[k-1][0] {
			what.add("Topic:%s", name)
		}
		after.add("%s-%d: nothing below offset %d", name, items[k].TP.Partition, items[k].To)
	}
	return auth.Event{API: "DeleteRecords", Resource: what.String(), After: after.String()}
}

// keepsRecords is the code by which a topic refuses to have records deleted. I8: the brokers' own topics, which would forget where the
// groups are; and topics that are only compacted, whose newest record of each key is to stay.
func (s *Server) keepsRecords(t *metadata.Topic) kafka.ErrorCode {
	policy := s.topicConfig(t).CleanupPolicy
	switch {
	case t.Internal:
		return kafka.InvalidTopicException
	case slices.Contains(policy, "compact") && !slices.Contains(policy, "delete"):
		return kafka.PolicyViolation
	}
	return kafka.None
}

// deletionCode is the code of an error. Clients ask again only for what they know from finding a leader.
func (s *Server) deletionCode(err error, tp kafka.TopicPartition) kafka.ErrorCode {
	if errors.Is(err, replica.ErrOffsetNotAvailable) {
		return kafka.LeaderNotAvailable
	}
	return s.partitionCode(err, tp, false, "delete records")
}
