package server

import (
	"bytes"
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

// syncNamesProtocol is the first SyncGroup version that says what the member believes was chosen.
const syncNamesProtocol = 5

// handleSyncGroup gives the member its assignment, once the leader has brought it and it is durable.
func (s *Server) handleSyncGroup(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.SyncGroupRequest)
	ev := group.Sync{
		Group: req.Group, MemberID: req.MemberID, InstanceID: opt(req.InstanceID), Generation: group.Generation(req.Generation),
	}
	if req.Version >= syncNamesProtocol {
		if req.ProtocolType == nil || req.Protocol == nil {
			resp := reply[*kmsg.SyncGroupResponse](req)
			resp.ErrorCode = int16(kafka.InconsistentGroupProtocol)
			return ready(resp)
		}
		ev.Protocol = &group.ProtocolChoice{Type: *req.ProtocolType, Name: *req.Protocol}
	}
	for i := range req.GroupAssignment {
		a := &req.GroupAssignment[i]
		ev.Assignments = append(ev.Assignments, group.MemberAssignment{MemberID: a.MemberID, Assignment: bytes.Clone(a.MemberAssignment)})
	}
	w := s.cfg.Groups.Submit(req.Group, func(token uint64) group.Event { ev.Token = token; return ev })
	return awaitGroups(func() kmsg.Response { return s.synced(req, w) }, w)
}

func (s *Server) synced(req *kmsg.SyncGroupRequest, w *coordinator.Wait) kmsg.Response {
	resp := reply[*kmsg.SyncGroupResponse](req)
	r, code := answerOf[group.SyncReply](s, w)
	switch {
	case code == kafka.CoordinatorLoadInProgress:
		// A round that was under way went with the former coordinator: the member has to join again. Clients know no other code here.
		resp.ErrorCode = int16(kafka.RebalanceInProgress)
	case code != kafka.None:
		resp.ErrorCode = int16(code)
	default:
		resp.ErrorCode, resp.MemberAssignment = int16(r.Code), r.Assignment
		if r.Code == kafka.None {
			resp.ProtocolType, resp.Protocol = &r.ProtocolType, &r.Protocol
		}
	}
	return resp
}
