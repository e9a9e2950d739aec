package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

// handleDeleteGroups removes groups without members, with their offsets.
func (s *Server) handleDeleteGroups(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.DeleteGroupsRequest)
	var what list
	for _, id := range req.Groups {
		what.add("Group:%s", id)
	}
	refuse := func(code kafka.ErrorCode) kmsg.Response {
		resp := reply[*kmsg.DeleteGroupsResponse](req)
		for _, id := range req.Groups {
			out := kmsg.NewDeleteGroupsResponseGroup()
			out.Group, out.ErrorCode = id, int16(code)
			resp.Groups = append(resp.Groups, out)
		}
		return resp
	}
	ev := auth.Event{API: "DeleteGroups", Resource: what.String(), After: "no such groups, and no offsets of them"}
	return s.audited(ctx, call, ev, refuse, func() Reply { return s.deleteGroups(call, req) })
}

func (s *Server) deleteGroups(call *Call, req *kmsg.DeleteGroupsRequest) Reply {
	waits := s.submitEach(call, kmsg.ACLOperationDelete, req.Groups, func(token uint64, id string) group.Event {
		return group.DeleteGroups{Token: token, Groups: []string{id}}
	})
	return awaitGroups(func() kmsg.Response {
		resp := reply[*kmsg.DeleteGroupsResponse](req)
		for i, id := range req.Groups {
			out := kmsg.NewDeleteGroupsResponseGroup()
			out.Group, out.ErrorCode = id, int16(kafka.PolicyViolation)
			switch {
			case i >= len(waits):
			case waits[i] == nil:
				out.ErrorCode = int16(kafka.GroupAuthorizationFailed)
			default:
				out.ErrorCode = int16(s.deletedGroup(waits[i]))
			}
			resp.Groups = append(resp.Groups, out)
		}
		return resp
	}, waits...)
}

func (s *Server) deletedGroup(w *coordinator.Wait) kafka.ErrorCode {
	r, code := answerOf[group.DeleteReply](s, w)
	if code != kafka.None {
		return code
	}
	return r.Groups[0].Code
}
