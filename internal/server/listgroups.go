package server

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

// handleListGroups lists the groups that this node coordinates. If one of its shards cannot answer, none does: a list with a gap would
// be taken for the whole.
func (s *Server) handleListGroups(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.ListGroupsRequest)
	waits := s.cfg.Groups.SubmitAll(func(token uint64) group.Event {
		return group.ListGroups{Token: token, States: req.StatesFilter, Types: req.TypesFilter}
	})
	all := s.sees(call, auth.OnCluster(kmsg.ACLOperationDescribe))
	return awaitGroups(func() kmsg.Response {
		resp := reply[*kmsg.ListGroupsResponse](req)
		for _, w := range waits {
			r, code := answerOf[group.ListReply](s, w)
			if code != kafka.None {
				resp.ErrorCode, resp.Groups = int16(code), nil
				return resp
			}
			for _, g := range r.Groups {
				if !all && !s.sees(call, auth.Action{Operation: kmsg.ACLOperationDescribe, Resource: kmsg.ACLResourceTypeGroup, Name: g.Group}) {
					continue
				}
				out := kmsg.NewListGroupsResponseGroup()
				out.Group, out.ProtocolType, out.GroupState, out.GroupType = g.Group, g.ProtocolType, g.State, g.Type
				resp.Groups = append(resp.Groups, out)
			}
		}
		slices.SortFunc(resp.Groups, func(a, b kmsg.ListGroupsResponseGroup) int { return cmp.Compare(a.Group, b.Group) })
		return resp
	}, waits...)
}
