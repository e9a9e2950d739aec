package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

const (
	// commitByID is the first OffsetCommit version that names topics by id.
	commitByID = 10
	// commitKnowsNotFound is the first OffsetCommit version whose clients know GROUP_ID_NOT_FOUND.
	commitKnowsNotFound = 9
)

// handleOffsetCommit stores the next offsets to read. It is answered when they are durable (I8).
func (s *Server) handleOffsetCommit(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.OffsetCommitRequest)
	if mode := seekMode(req); mode != 0 {
		return s.seek(ctx, call, req, mode == seekUndo)
	}
	ev := group.CommitOffsets{
		Group: req.Group, MemberID: req.MemberID, InstanceID: opt(req.InstanceID), Generation: group.Generation(req.Generation),
		KnowsGroupIDNotFound: req.Version >= commitKnowsNotFound,
		Topics:               s.commitTopics(call, req),
	}
	w := s.cfg.Groups.Submit(req.Group, func(token uint64) group.Event { ev.Token = token; return ev })
	return awaitGroups(func() kmsg.Response { return s.committed(req, ev.Topics, w) }, w)
}

// commitTopics resolves the topics and judges what the group cannot: whether a partition exists.
func (s *Server) commitTopics(call *Call, req *kmsg.OffsetCommitRequest) []group.CommitTopic {
	img := s.cfg.Image()
	out := make([]group.CommitTopic, len(req.Topics))
	total := 0
	for i := range req.Topics {
		t := &req.Topics[i]
		topic, code := s.findTopicFor(call, kmsg.ACLOperationRead, img, topicRef{t.Topic, t.TopicID, req.Version >= commitByID})
		out[i] = group.CommitTopic{Name: t.Topic, ID: t.TopicID, Partitions: make([]group.CommitPartition, len(t.Partitions))}
		if topic != nil {
			out[i].Name, out[i].ID, out[i].Width = topic.Name, topic.ID, int32(len(topic.Partitions))
		}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			c := group.CommitPartition{
				Partition: p.Partition, Offset: kafka.Offset(p.Offset), LeaderEpoch: kafka.LeaderEpoch(p.LeaderEpoch), Metadata: opt(p.Metadata),
			}
			total++
			switch {
			case total > partitionsMax:
				c.Refused = kafka.PolicyViolation
			case topic == nil:
				c.Refused = code
			case p.Partition < 0 || int(p.Partition) >= len(topic.Partitions):
				c.Refused = kafka.UnknownTopicOrPartition
			}
			out[i].Partitions[j] = c
		}
	}
	return out
}

func (s *Server) committed(req *kmsg.OffsetCommitRequest, topics []group.CommitTopic, w *coordinator.Wait) kmsg.Response {
	resp := reply[*kmsg.OffsetCommitResponse](req)
	r, code := answerOf[group.CommitReply](s, w)
	for i := range topics {
		out := kmsg.NewOffsetCommitResponseTopic()
		out.Topic, out.TopicID = req.Topics[i].Topic, req.Topics[i].TopicID
		for j := range topics[i].Partitions {
			p := kmsg.NewOffsetCommitResponseTopicPartition()
			p.Partition, p.ErrorCode = topics[i].Partitions[j].Partition, int16(code)
			if code == kafka.None {
				p.ErrorCode = int16(r.Topics[i].Partitions[j].Code)
			}
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}
