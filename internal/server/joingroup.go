package server

import (
	"bytes"
	"context"
	"crypto/rand"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

const (
	// joinRequiresID is the first JoinGroup version whose clients are told their member id before they join (KIP-394).
	joinRequiresID = 4
	// joinNullable is the first JoinGroup version whose answer may have no protocol.
	joinNullable = 7
	// joinSkips is the first JoinGroup version with SkipAssignment (KIP-814).
	joinSkips = 9
)

// handleJoinGroup makes the client a member, or keeps it one. The answer comes when all members have joined.
func (s *Server) handleJoinGroup(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.JoinGroupRequest)
	ev := group.Join{
		Group: req.Group, MemberID: req.MemberID, InstanceID: opt(req.InstanceID),
		ClientID: call.ClientID, ClientHost: clientHost(call),
		ProtocolType: req.ProtocolType, SessionTimeout: milliseconds(req.SessionTimeoutMillis), RebalanceTimeout: milliseconds(req.RebalanceTimeoutMillis),
		RequireMemberID: req.Version >= joinRequiresID, CanSkip: req.Version >= joinSkips, Reason: opt(req.Reason),
	}
	rand.Read(ev.Random[:])
	for i := range req.Protocols {
		p := &req.Protocols[i]
		// The group keeps it for as long as the member lives; the request's bytes end with the answer.
		ev.Protocols = append(ev.Protocols, group.Protocol{Name: p.Name, Metadata: bytes.Clone(p.Metadata)})
	}
	w := s.cfg.Groups.Submit(req.Group, func(token uint64) group.Event { ev.Token = token; return ev })
	return awaitGroups(func() kmsg.Response { return s.joined(req, w) }, w)
}

func (s *Server) joined(req *kmsg.JoinGroupRequest, w *coordinator.Wait) kmsg.Response {
	resp := reply[*kmsg.JoinGroupResponse](req)
	r, code := answerOf[group.JoinReply](s, w)
	if code != kafka.None {
		r = &group.JoinReply{Code: code, Generation: group.NoGeneration, MemberID: req.MemberID}
	}
	resp.ErrorCode, resp.Generation, resp.LeaderID, resp.MemberID = int16(r.Code), int32(r.Generation), r.Leader, r.MemberID
	if r.Code == kafka.None || req.Version < joinNullable {
		resp.ProtocolType, resp.Protocol = &r.ProtocolType, &r.Protocol
	}
	resp.SkipAssignment = r.SkipAssign
	for i := range r.Members {
		m := kmsg.NewJoinGroupResponseMember()
		m.MemberID, m.InstanceID, m.ProtocolMetadata = r.Members[i].MemberID, text(r.Members[i].InstanceID), r.Members[i].Metadata
		resp.Members = append(resp.Members, m)
	}
	return resp
}
