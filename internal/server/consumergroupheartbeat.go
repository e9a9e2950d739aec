package server

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

// consumerHasID is the first ConsumerGroupHeartbeat version whose clients make their member ids themselves (KIP-1082).
const consumerHasID = 1

// handleConsumerGroupHeartbeat is all that a member of a consumer group says to its coordinator: it joins, stays, tells what it owns,
// learns what it is to own, and leaves (KIP-848).
func (s *Server) handleConsumerGroupHeartbeat(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.ConsumerGroupHeartbeatRequest)
	for _, name := range req.SubscribedTopicNames {
		if !s.mayTopic(call, kmsg.ACLOperationDescribe, name) {
			resp := reply[*kmsg.ConsumerGroupHeartbeatResponse](req)
			resp.ErrorCode = int16(kafka.TopicAuthorizationFailed)
			return ready(resp)
		}
	}
	ev := group.ConsumerHeartbeat{
		Group: req.Group, MemberID: req.MemberID, Epoch: group.MemberEpoch(req.MemberEpoch), InstanceID: req.InstanceID, RackID: req.RackID,
		ClientID: call.ClientID, ClientHost: clientHost(call), RebalanceTimeout: -1,
		Topics: req.SubscribedTopicNames, Pattern: req.SubscribedTopicRegex, Assignor: req.ServerAssignor, Owned: ownedBy(req),
		MustHaveID: req.Version >= consumerHasID,
	}
	if req.SubscribedTopicRegex != nil && s.cfg.Access != nil {
		ev.Reader = s.cfg.Access.Reader(call.Principal, call.host)
	}
	if req.RebalanceTimeoutMillis >= 0 {
		ev.RebalanceTimeout = milliseconds(req.RebalanceTimeoutMillis)
	}
	rand.Read(ev.Random[:])
	w := s.cfg.Groups.Submit(req.Group, func(token uint64) group.Event { ev.Token = token; return ev })
	return awaitGroups(func() kmsg.Response { return s.consumerHeard(req, w) }, w)
}

// ownedBy lists the partitions that a member says it owns; nil when it says nothing about them.
func ownedBy(req *kmsg.ConsumerGroupHeartbeatRequest) []kafka.TopicPartition {
	if req.Topics == nil {
		return nil
	}
	owned := []kafka.TopicPartition{}
	for i := range req.Topics {
		for _, p := range req.Topics[i].Partitions {
			owned = append(owned, kafka.TopicPartition{Topic: req.Topics[i].TopicID, Partition: p})
		}
	}
	return owned
}

func (s *Server) consumerHeard(req *kmsg.ConsumerGroupHeartbeatRequest, w *coordinator.Wait) kmsg.Response {
	resp := reply[*kmsg.ConsumerGroupHeartbeatResponse](req)
	r, code := answerOf[group.ConsumerHeartbeatReply](s, w)
	if code != kafka.None {
		r = &group.ConsumerHeartbeatReply{Code: code}
	}
	resp.ErrorCode, resp.ErrorMessage = int16(r.Code), text(r.Message)
	if r.Code != kafka.None {
		return resp
	}
	resp.MemberID, resp.MemberEpoch, resp.HeartbeatIntervalMillis = &r.MemberID, int32(r.Epoch), int32(r.Interval/time.Millisecond)
	if r.Assigned == nil {
		return resp
	}
	a := kmsg.NewConsumerGroupHeartbeatResponseAssignment()
	for _, tp := range r.Assigned {
		if n := len(a.Topics); n == 0 || a.Topics[n-1].TopicID != tp.Topic {
			t := kmsg.NewConsumerGroupHeartbeatResponseAssignmentTopic()
			t.TopicID = tp.Topic
			a.Topics = append(a.Topics, t)
		}
		t := &a.Topics[len(a.Topics)-1]
		t.Partitions = append(t.Partitions, tp.Partition)
	}
	resp.Assignment = &a
	return resp
}
