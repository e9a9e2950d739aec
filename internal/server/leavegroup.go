package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

// leaveBatch is the first LeaveGroup version that names several members.
const leaveBatch = 3

// handleLeaveGroup takes members out of a group: the client itself, or those that an administrator names.
func (s *Server) handleLeaveGroup(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.LeaveGroupRequest)
	ev := group.Leave{Group: req.Group}
	if req.Version < leaveBatch {
		ev.Members = []group.LeavingMember{{MemberID: req.MemberID}}
	}
	if len(req.Members) > groupsMax {
		resp := reply[*kmsg.LeaveGroupResponse](req)
		resp.ErrorCode = int16(kafka.PolicyViolation)
		return ready(resp)
	}
	for i := range req.Members {
		m := &req.Members[i]
		ev.Members = append(ev.Members, group.LeavingMember{MemberID: m.MemberID, InstanceID: opt(m.InstanceID), Reason: opt(m.Reason)})
	}
	w := s.cfg.Groups.Submit(req.Group, func(token uint64) group.Event { ev.Token = token; return ev })
	return awaitGroups(func() kmsg.Response { return s.left(req, w) }, w)
}

func (s *Server) left(req *kmsg.LeaveGroupRequest, w *coordinator.Wait) kmsg.Response {
	resp := reply[*kmsg.LeaveGroupResponse](req)
	r, code := answerOf[group.LeaveReply](s, w)
	if code != kafka.None {
		resp.ErrorCode = int16(code)
		return resp
	}
	resp.ErrorCode = int16(r.Code)
	if req.Version < leaveBatch {
		if r.Code == kafka.None && len(r.Members) == 1 {
			resp.ErrorCode = int16(r.Members[0].Code)
		}
		return resp
	}
	for i := range r.Members {
		m := kmsg.NewLeaveGroupResponseMember()
		m.MemberID, m.InstanceID, m.ErrorCode = r.Members[i].MemberID, text(r.Members[i].InstanceID), int16(r.Members[i].Code)
		resp.Members = append(resp.Members, m)
	}
	return resp
}
