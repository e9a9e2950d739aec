package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// handleCreatePartitions adds partitions to topics.
func (s *Server) handleCreatePartitions(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.CreatePartitionsRequest)
	return background(ctx, adminTimeout(req.TimeoutMillis), func(ctx context.Context) kmsg.Response {
		return s.createPartitions(ctx, call, req)
	})
}

func (s *Server) createPartitions(ctx context.Context, call *Call, req *kmsg.CreatePartitionsRequest) kmsg.Response {
	resp := reply[*kmsg.CreatePartitionsResponse](req)
	ev := metadata.CreatePartitions{Principal: call.Principal, ValidateOnly: req.ValidateOnly}
	count := map[string]int{}
	for i := range req.Topics {
		count[req.Topics[i].Topic]++
	}
	at, tell := map[string]int{}, map[string]bool{}
	for i := range req.Topics {
		t := &req.Topics[i]
		if _, answered := at[t.Topic]; answered {
			continue
		}
		at[t.Topic] = len(resp.Topics)
		out := kmsg.NewCreatePartitionsResponseTopic()
		out.Topic = t.Topic
		expected, versioned, err := wire.Expected(&t.UnknownTags)
		switch {
		case err != nil:
			out.ErrorCode, out.ErrorMessage = int16(wrongExpected.code), text(wrongExpected.message)
		case count[t.Topic] > 1:
			out.ErrorCode, out.ErrorMessage = int16(kafka.InvalidRequest), text("the topic is named more than once in the request")
		case i >= adminItemsMax:
			out.ErrorCode, out.ErrorMessage = int16(tooManyItems.code), text(tooManyItems.message)
		case !s.mayTopic(call, kmsg.ACLOperationAlter, t.Topic):
			out.ErrorCode = int16(kafka.TopicAuthorizationFailed)
		default:
			n := newPartitions(t)
			n.ExpectedVersion, tell[t.Topic] = expected, versioned
			ev.Topics = append(ev.Topics, n)
		}
		resp.Topics = append(resp.Topics, out)
	}
	if len(ev.Topics) == 0 {
		return resp
	}
	results, err := decide[[]metadata.PartitionsResult](ctx, s, call, ev)
	if err != nil {
		for i := range ev.Topics {
			out := &resp.Topics[at[ev.Topics[i].Name]]
			out.ErrorCode, out.ErrorMessage = int16(s.code(err, "create partitions")), text(err.Error())
		}
		return resp
	}
	for _, r := range results {
		out := &resp.Topics[at[r.Name]]
		out.ErrorCode, out.ErrorMessage = int16(r.Code), text(r.Message)
		if tell[r.Name] && r.OK() {
			out.UnknownTags.Set(wire.TagExpected, wire.NumberTag(r.Version))
		}
	}
	return resp
}

func newPartitions(t *kmsg.CreatePartitionsRequestTopic) metadata.NewPartitions {
	out := metadata.NewPartitions{Name: t.Topic, Count: t.Count}
	for _, a := range t.Assignment {
		out.Assignments = append(out.Assignments, kafkaNodes(a.Replicas))
	}
	return out
}
