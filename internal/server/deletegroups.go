package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

// handleDeleteGroups removes groups without members, with their offsets.
func (s *Server) handleDeleteGroups(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.DeleteGroupsRequest)
	waits := s.submitEach(req.Groups, func(token uint64, id string) group.Event {
		return group.DeleteGroups{Token: token, Groups: []string{id}}
	})
	return awaitGroups(func() kmsg.Response {
		resp := reply[*kmsg.DeleteGroupsResponse](req)
		for i, id := range req.Groups {
			out := kmsg.NewDeleteGroupsResponseGroup()
			out.Group, out.ErrorCode = id, int16(kafka.PolicyViolation)
			if i < len(waits) {
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
