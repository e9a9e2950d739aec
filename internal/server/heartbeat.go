package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

// handleHeartbeat keeps a member's session alive.
func (s *Server) handleHeartbeat(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.HeartbeatRequest)
	ev := group.Heartbeat{
		Group: req.Group, MemberID: req.MemberID, InstanceID: opt(req.InstanceID), Generation: group.Generation(req.Generation),
	}
	w := s.cfg.Groups.Submit(req.Group, func(token uint64) group.Event { ev.Token = token; return ev })
	return awaitGroups(func() kmsg.Response {
		resp := reply[*kmsg.HeartbeatResponse](req)
		r, code := answerOf[group.HeartbeatReply](s, w)
		switch {
		case code == kafka.CoordinatorLoadInProgress:
			// Sessions begin anew when the load ends, so the member is as alive as it can be. Clients take the code for fatal.
		case code != kafka.None:
			resp.ErrorCode = int16(code)
		default:
			resp.ErrorCode = int16(r.Code)
		}
		return resp
	}, w)
}
