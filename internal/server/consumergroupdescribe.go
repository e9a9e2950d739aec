package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// The types of members, by the protocol that they speak, as ConsumerGroupDescribe v1 shows them.
const (
	classicMember  = 0
	consumerMember = 1
)

// handleConsumerGroupDescribe shows the state and members of consumer groups.
func (s *Server) handleConsumerGroupDescribe(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.ConsumerGroupDescribeRequest)
	waits := s.submitEach(call, kmsg.ACLOperationDescribe, req.Groups, func(token uint64, id string) group.Event {
		return group.DescribeConsumerGroups{Token: token, Groups: []string{id}}
	})
	return awaitGroups(func() kmsg.Response {
		resp := reply[*kmsg.ConsumerGroupDescribeResponse](req)
		img := s.cfg.Image()
		for i, id := range req.Groups {
			d := group.ConsumerDescription{Group: id, Code: kafka.PolicyViolation}
			switch {
			case i >= len(waits):
			case waits[i] == nil:
				d.Code = kafka.GroupAuthorizationFailed
			default:
				d = s.consumerDescription(id, waits[i])
			}
			out := describedConsumers(img, &d)
			if !s.seesAll(call, out.Members) { // as Kafka's: a group that reads what may not be seen is not shown
				out = describedConsumers(img, &group.ConsumerDescription{Group: id, Code: kafka.TopicAuthorizationFailed})
			}
			if req.IncludeAuthorizedOperations && out.ErrorCode == 0 {
				out.AuthorizedOperations = s.operations(call, kmsg.ACLResourceTypeGroup, id, groupOperations)
			}
			resp.Groups = append(resp.Groups, out)
		}
		return resp
	}, waits...)
}

func (s *Server) consumerDescription(id string, w *coordinator.Wait) group.ConsumerDescription {
	r, code := answerOf[group.DescribeConsumerReply](s, w)
	if code != kafka.None {
		return group.ConsumerDescription{Group: id, Code: code}
	}
	return r.Groups[0]
}

// seesAll says whether the caller may see every topic that members read or are to read.
func (s *Server) seesAll(call *Call, members []kmsg.ConsumerGroupDescribeResponseGroupMember) bool {
	for i := range members {
		names := slices.Clone(members[i].SubscribedTopics)
		for _, a := range []kmsg.Assignment{members[i].Assignment, members[i].TargetAssignment} {
			for j := range a.TopicPartitions {
				names = append(names, a.TopicPartitions[j].Topic)
			}
		}
		for _, name := range names {
			if !s.mayTopic(call, kmsg.ACLOperationDescribe, name) {
				return false
			}
		}
	}
	return true
}

func describedConsumers(img *metadata.Image, d *group.ConsumerDescription) kmsg.ConsumerGroupDescribeResponseGroup {
	out := kmsg.NewConsumerGroupDescribeResponseGroup()
	out.ErrorCode, out.Group, out.State = int16(d.Code), d.Group, d.State
	out.Epoch, out.AssignmentEpoch, out.AssignorName = int32(d.Epoch), int32(d.TargetEpoch), d.Assignor
	if d.Code == kafka.GroupIDNotFound {
		out.ErrorMessage = text(fmt.Sprintf("group %s is not a consumer group, or does not exist", clip(d.Group)))
	}
	for i := range d.Members {
		m := &d.Members[i]
		om := kmsg.NewConsumerGroupDescribeResponseGroupMember()
		om.MemberID, om.InstanceID, om.RackID, om.MemberEpoch = m.MemberID, text(m.InstanceID), text(m.RackID), int32(m.Epoch)
		om.ClientID, om.ClientHost, om.SubscribedTopics, om.SubscribedTopicRegex = m.ClientID, m.ClientHost, m.Topics, text(m.Pattern)
		om.Assignment, om.TargetAssignment, om.MemberType = namedPartitions(img, m.Assigned), namedPartitions(img, m.Target), consumerMember
		if m.IsClassic {
			om.MemberType = classicMember
		}
		out.Members = append(out.Members, om)
	}
	return out
}

// namedPartitions shows partitions by topic. Those of topics that are gone have no name and are left out.
func namedPartitions(img *metadata.Image, list []kafka.TopicPartition) kmsg.Assignment {
	a := kmsg.NewAssignment()
	for _, tp := range list {
		topic := img.TopicByID(tp.Topic)
		if topic == nil {
			continue
		}
		if n := len(a.TopicPartitions); n == 0 || a.TopicPartitions[n-1].TopicID != tp.Topic {
			t := kmsg.NewAssignmentTopicPartition()
			t.TopicID, t.Topic = tp.Topic, topic.Name
			a.TopicPartitions = append(a.TopicPartitions, t)
		}
		t := &a.TopicPartitions[len(a.TopicPartitions)-1]
		t.Partitions = append(t.Partitions, tp.Partition)
	}
	return a
}
