package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

const (
	// findCoordinatorBatch is the first FindCoordinator version that asks for several keys, findCoordinatorShare the first with share
	// groups.
	findCoordinatorBatch = 4
	findCoordinatorShare = 6
	// The types of keys.
	coordinatorOfGroup       = 0
	coordinatorOfTransaction = 1
	coordinatorOfShareGroup  = 2
)

// handleFindCoordinator says which node coordinates groups. The first request of all creates the coordinators' topic and waits for it a
// little; who asks in vain is told to ask again.
func (s *Server) handleFindCoordinator(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.FindCoordinatorRequest)
	if req.CoordinatorType != coordinatorOfGroup || s.cfg.Groups.Exists() {
		return ready(s.foundCoordinators(req, call))
	}
	return background(ctx, createCoordinatorWait, func(ctx context.Context) kmsg.Response {
		_ = s.cfg.Groups.Create(ctx) // the answer is made of what there is then
		return s.foundCoordinators(req, call)
	})
}

func (s *Server) foundCoordinators(req *kmsg.FindCoordinatorRequest, call *Call) kmsg.Response {
	resp := reply[*kmsg.FindCoordinatorResponse](req)
	if req.Version < findCoordinatorBatch {
		c := s.foundCoordinator(req, call, req.CoordinatorKey)
		resp.ErrorCode, resp.ErrorMessage, resp.NodeID, resp.Host, resp.Port = c.ErrorCode, c.ErrorMessage, c.NodeID, c.Host, c.Port
		return resp
	}
	for i, key := range req.CoordinatorKeys {
		if i >= groupsMax {
			c := refusedCoordinator(key, refusal{kafka.PolicyViolation, tooManyItems.message})
			resp.Coordinators = append(resp.Coordinators, c)
			continue
		}
		resp.Coordinators = append(resp.Coordinators, s.foundCoordinator(req, call, key))
	}
	return resp
}

func (s *Server) foundCoordinator(req *kmsg.FindCoordinatorRequest, call *Call, key string) kmsg.FindCoordinatorResponseCoordinator {
	switch t := req.CoordinatorType; {
	case t == coordinatorOfGroup && !s.mayGroup(call, kmsg.ACLOperationDescribe, key):
		return refusedCoordinator(key, refusal{code: kafka.GroupAuthorizationFailed})
	case t == coordinatorOfGroup:
	case t == coordinatorOfTransaction:
		return refusedCoordinator(key, refusal{kafka.UnsupportedVersion, "this release has no transactions; they arrive in a later one"})
	case t == coordinatorOfShareGroup && req.Version >= findCoordinatorShare:
		return refusedCoordinator(key, refusal{kafka.UnsupportedVersion, "this release has no share groups; they arrive in a later one"})
	default:
		return refusedCoordinator(key, refusal{kafka.InvalidRequest, "unknown type of coordinator"})
	}
	node, err := s.cfg.Groups.Locate(key)
	if err != nil {
		return refusedCoordinator(key, refusal{s.code(err, "find a coordinator"), err.Error()})
	}
	at, ok := s.Endpoint(s.cfg.Image(), node, call)
	if !ok {
		return refusedCoordinator(key, refusal{kafka.CoordinatorNotAvailable, "the coordinator's node has no address on this listener"})
	}
	c := kmsg.NewFindCoordinatorResponseCoordinator()
	c.Key, c.NodeID, c.Host, c.Port = key, int32(node), at.Host, at.Port
	return c
}

// refusedCoordinator names no node: never an invented one.
func refusedCoordinator(key string, no refusal) kmsg.FindCoordinatorResponseCoordinator {
	c := kmsg.NewFindCoordinatorResponseCoordinator()
	c.Key, c.ErrorCode, c.ErrorMessage = key, int16(no.code), text(no.message)
	c.NodeID, c.Port = int32(kafka.NoNode), -1
	return c
}
