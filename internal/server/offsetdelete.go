package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

// handleOffsetDelete removes stored offsets of topics that the group does not read at present.
func (s *Server) handleOffsetDelete(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.OffsetDeleteRequest)
	img := s.cfg.Image()
	ev := group.DeleteOffsets{Group: req.Group}
	verdicts := make([][]kafka.ErrorCode, len(req.Topics)) // None where the group decides
	total := 0
	for i := range req.Topics {
		t := &req.Topics[i]
		topic, code := s.findTopicFor(call, kmsg.ACLOperationRead, img, byName(t.Topic))
		tp := group.TopicPartitions{Name: t.Topic}
		for _, p := range t.Partitions {
			verdict := kafka.None
			total++
			switch {
			case total > partitionsMax:
				verdict = kafka.PolicyViolation
			case topic == nil:
				verdict = code
			case p.Partition < 0 || int(p.Partition) >= len(topic.Partitions):
				verdict = kafka.UnknownTopicOrPartition
			default:
				tp.Partitions = append(tp.Partitions, p.Partition)
			}
			verdicts[i] = append(verdicts[i], verdict)
		}
		ev.Topics = append(ev.Topics, tp)
	}
	var after list
	for _, t := range ev.Topics {
		after.add("no offsets for %s %v", t.Name, t.Partitions)
	}
	change := auth.Event{API: "OffsetDelete", Resource: "Group:" + req.Group, After: after.String()}
	refuse := func(code kafka.ErrorCode) kmsg.Response { return refuseWhole(req, code) }
	return s.audited(ctx, call, change, refuse, func() Reply {
		w := s.cfg.Groups.Submit(req.Group, func(token uint64) group.Event { ev.Token = token; return ev })
		return awaitGroups(func() kmsg.Response { return s.deletedOffsets(req, verdicts, w) }, w)
	})
}

func (s *Server) deletedOffsets(req *kmsg.OffsetDeleteRequest, verdicts [][]kafka.ErrorCode, w *coordinator.Wait) kmsg.Response {
	resp := reply[*kmsg.OffsetDeleteResponse](req)
	r, code := answerOf[group.DeleteOffsetsReply](s, w)
	if code == kafka.None {
		code = r.Code
	}
	if resp.ErrorCode = int16(code); code != kafka.None {
		return resp
	}
	for i := range req.Topics {
		out := kmsg.NewOffsetDeleteResponseTopic()
		out.Topic = req.Topics[i].Topic
		decided := r.Topics[i].Partitions // those that were left to the group, in order
		for j := range req.Topics[i].Partitions {
			p := kmsg.NewOffsetDeleteResponseTopicPartition()
			p.Partition, p.ErrorCode = req.Topics[i].Partitions[j].Partition, int16(verdicts[i][j])
			if verdicts[i][j] == kafka.None {
				p.ErrorCode = int16(decided[0].Code)
				decided = decided[1:]
			}
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}
