package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// handleDeleteTopics moves topics to the trash, by name or (v6+) by id, and only in the version that a tag expects (R9).
func (s *Server) handleDeleteTopics(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.DeleteTopicsRequest)
	return background(ctx, adminTimeout(req.TimeoutMillis), func(ctx context.Context) kmsg.Response {
		return s.deleteTopics(ctx, call, req)
	})
}

func (s *Server) deleteTopics(ctx context.Context, call *Call, req *kmsg.DeleteTopicsRequest) kmsg.Response {
	resp := reply[*kmsg.DeleteTopicsResponse](req)
	ev := metadata.DeleteTopics{Principal: call.Principal, Dev: s.cfg.Dev}
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
			if no := s.mayRemove(call, d.ID, d.Name); no.code != 0 {
				out.ErrorCode, out.ErrorMessage = int16(no.code), text(no.message)
				continue
			}
			ev.Topics, at = append(ev.Topics, d), append(at, i)
		}
	}
	if len(ev.Topics) == 0 {
		return resp
	}
	results, err := decide[[]metadata.DeleteResult](ctx, s, call, ev)
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
			if _, asked := wire.Tagged(&out.UnknownTags, wire.TagDeletion); asked {
				out.UnknownTags.Set(wire.TagDeletion, purgeTag(r.PurgeAt))
			}
		}
	}
	return resp
}

// toDelete reads the request of any version into one form, with an answer for each entry; an entry that is wrong in itself has its
// error in the answer already.
func (s *Server) toDelete(req *kmsg.DeleteTopicsRequest, answers *[]kmsg.DeleteTopicsResponseTopic) []metadata.DeleteTopic {
	var out []metadata.DeleteTopic
	first := map[metadata.DeleteTopic]int{}
	add := func(name *string, id kafka.TopicID, tags *kmsg.Tags) {
		d := metadata.DeleteTopic{ID: id}
		if name != nil {
			d.Name = *name
		}
		wrong, a := refusal{}, kmsg.NewDeleteTopicsResponseTopic()
		if (name == nil) == id.IsZero() {
			wrong = refusal{kafka.InvalidRequest, "name a topic by its name or by its id, not by both"}
		}
		if j, twice := first[d]; twice {
			a := &(*answers)[j]
			a.ErrorCode, a.ErrorMessage = int16(kafka.InvalidRequest), text("the topic is named more than once in the request")
			return
		}
		first[d] = len(out)
		if version, conditional := wire.Tagged(tags, wire.TagDeletion); conditional {
			a.UnknownTags.Set(wire.TagDeletion, wire.NumberTag(0))
			// What cannot be read must not become a deletion without a condition.
			var err error
			if d.ExpectedVersion, err = wire.ReadNumberTag(version); err != nil {
				wrong = refusal{kafka.InvalidRequest, "the expected version cannot be read"}
			}
		}
		a.Topic, a.TopicID, a.ErrorCode, a.ErrorMessage = name, id, int16(wrong.code), text(wrong.message)
		*answers = append(*answers, a)
		out = append(out, d)
	}
	for i := range req.TopicNames {
		add(&req.TopicNames[i], kafka.TopicID{}, nil)
	}
	for i := range req.Topics {
		add(req.Topics[i].Topic, req.Topics[i].TopicID, &req.Topics[i].UnknownTags)
	}
	return out
}

// mayRemove judges the right to delete a topic, or to bring it back, by the name that it has. An id that this node does not know is refused
// here: the controller may know it, but the right to it would be unjudged (I15).
func (s *Server) mayRemove(call *Call, id kafka.TopicID, name string) refusal {
	if !id.IsZero() {
		t := s.cfg.Image().TopicByID(id)
		if t == nil {
			return refusal{kafka.UnknownTopicID, "no topic has the id " + id.String()}
		}
		name = t.Name
	}
	if !s.mayTopic(call, kmsg.ACLOperationDelete, name) {
		return refusal{code: kafka.TopicAuthorizationFailed}
	}
	return refusal{}
}
