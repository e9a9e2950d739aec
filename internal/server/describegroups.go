package server

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

const (
	// describeNotFound is the first DescribeGroups version that says that a group does not exist; older ones show it as Dead.
	describeNotFound = 6
)

// handleDescribeGroups shows the state and members of groups.
func (s *Server) handleDescribeGroups(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.DescribeGroupsRequest)
	waits := s.submitEach(call, kmsg.ACLOperationDescribe, req.Groups, func(token uint64, id string) group.Event {
		return group.DescribeGroups{Token: token, Groups: []string{id}}
	})
	return awaitGroups(func() kmsg.Response {
		resp := reply[*kmsg.DescribeGroupsResponse](req)
		for i, id := range req.Groups {
			d := group.Description{Group: id, Code: kafka.PolicyViolation}
			switch {
			case i >= len(waits):
			case waits[i] == nil:
				d.Code = kafka.GroupAuthorizationFailed
			default:
				d = s.description(id, waits[i])
			}
			out := describedGroup(req, &d)
			if req.IncludeAuthorizedOperations && out.ErrorCode == 0 {
				out.AuthorizedOperations = s.operations(call, kmsg.ACLResourceTypeGroup, id, groupOperations)
			}
			resp.Groups = append(resp.Groups, out)
		}
		return resp
	}, waits...)
}

// submitEach hands an event about each of the groups to its shard, as far as one request may ask. The wait is nil for a group with which the caller
// may not do op.
func (s *Server) submitEach(call *Call, op kmsg.ACLOperation, ids []string, event func(token uint64, id string) group.Event) []*coordinator.Wait {
	var waits []*coordinator.Wait
	for i, id := range ids {
		if i == groupsMax {
			break
		}
		if !s.mayGroup(call, op, id) {
			waits = append(waits, nil)
			continue
		}
		waits = append(waits, s.cfg.Groups.Submit(id, func(token uint64) group.Event { return event(token, id) }))
	}
	return waits
}

func (s *Server) description(id string, w *coordinator.Wait) group.Description {
	r, code := answerOf[group.DescribeReply](s, w)
	if code != kafka.None {
		return group.Description{Group: id, Code: code}
	}
	return r.Groups[0]
}

func describedGroup(req *kmsg.DescribeGroupsRequest, d *group.Description) kmsg.DescribeGroupsResponseGroup {
	out := kmsg.NewDescribeGroupsResponseGroup()
	out.ErrorCode, out.Group, out.State, out.ProtocolType, out.Protocol = int16(d.Code), d.Group, d.State, d.ProtocolType, d.Protocol
	if d.Code == kafka.GroupIDNotFound {
		out.ErrorMessage = text(fmt.Sprintf("group %s does not exist", clip(d.Group)))
		if req.Version < describeNotFound {
			out.ErrorCode = int16(kafka.None)
		}
	}
	for i := range d.Members {
		m := &d.Members[i]
		om := kmsg.NewDescribeGroupsResponseGroupMember()
		om.MemberID, om.InstanceID, om.ClientID, om.ClientHost = m.MemberID, text(m.InstanceID), m.ClientID, m.ClientHost
		om.ProtocolMetadata, om.MemberAssignment = m.Metadata, m.Assignment
		out.Members = append(out.Members, om)
	}
	return out
}
