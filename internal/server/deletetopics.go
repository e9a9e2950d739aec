package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// handleDeleteTopics moves topics to the trash, by name or (v6+) by id.
func (s *Server) handleDeleteTopics(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.DeleteTopicsRequest)
	return background(ctx, adminTimeout(req.TimeoutMillis), func(ctx context.Context) kmsg.Response {
		return s.deleteTopics(ctx, call.Principal, req)
	})
}

func (s *Server) deleteTopics(ctx context.Context, who kafka.Principal, req *kmsg.DeleteTopicsRequest) kmsg.Response {
	resp := reply[*kmsg.DeleteTopicsResponse](req)
	ev := metadata.DeleteTopics{Principal: who, Dev: s.cfg.Dev}
	var at []int // of the answer, for each topic of ev
	for i, d := range s.toDelete(req, &resp.Topics) {
		out := &resp.Topics[i]
		switch {
		case out.ErrorCode != 0:
		case i >= adminItemsMax:
			out.ErrorCode, out.ErrorMessage = int16(tooManyItems.code), text(tooManyItems.message)
		case !s.broker().DeleteTopicEnable:
			out.ErrorCode, out.ErrorMessage = int16(kafka.TopicDeletionDisabled), text("delete.topic.enable is false")
		default:
			ev.Topics, at = append(ev.Topics, d), append(at, i)
		}
	}
	if len(ev.Topics) == 0 {
		return resp
	}
	results, err := decide[[]metadata.DeleteResult](ctx, s, ev)
	if err == nil && len(results) != len(at) {
		err = errReplyType
	}
	for k, i := range at {
		out := &resp.Topics[i]
		if err != nil {
			out.ErrorCode, out.ErrorMessage = int16(s.code(err, "delete topics")), text(err.Error())
			continue
		}
		r := &results[k]
		out.ErrorCode, out.ErrorMessage = int16(r.Code), text(r.Message)
		if r.OK() {
			out.Topic, out.TopicID = &r.Name, r.ID
		}
	}
	return resp
}

// toDelete reads the request of any version into one form, with an answer for each entry; an entry that is wrong in itself has its
// error in the answer already.
func (s *Server) toDelete(req *kmsg.DeleteTopicsRequest, answers *[]kmsg.DeleteTopicsResponseTopic) []metadata.DeleteTopic {
	var out []metadata.DeleteTopic
	first := map[metadata.DeleteTopic]int{}
	add := func(name *string, id kafka.TopicID) {
		d := metadata.DeleteTopic{ID: id}
		if name != nil {
			d.Name = *name
		}
		wrong := refusal{}
		if (name == nil) == id.IsZero() {
			wrong = refusal{kafka.InvalidRequest, "name a topic by its name or by its id, not by both"}
		}
		if j, twice := first[d]; twice {
			a := &(*answers)[j]
			a.ErrorCode, a.ErrorMessage = int16(kafka.InvalidRequest), text("the topic is named more than once in the request")
			return
		}
		first[d] = len(out)
		a := kmsg.NewDeleteTopicsResponseTopic()
		a.Topic, a.TopicID, a.ErrorCode, a.ErrorMessage = name, id, int16(wrong.code), text(wrong.message)
		*answers = append(*answers, a)
		out = append(out, d)
	}
	for i := range req.TopicNames {
		add(&req.TopicNames[i], kafka.TopicID{})
	}
	for i := range req.Topics {
		add(req.Topics[i].Topic, req.Topics[i].TopicID)
	}
	return out
}
