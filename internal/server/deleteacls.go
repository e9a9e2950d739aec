package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// handleDeleteACLs removes the rules of access that filters select.
func (s *Server) handleDeleteACLs(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.DeleteACLsRequest)
	return background(ctx, adminWaitDefault, func(ctx context.Context) kmsg.Response {
		resp := reply[*kmsg.DeleteACLsResponse](req)
		resp.Results = make([]kmsg.DeleteACLsResponseResult, len(req.Filters))
		ev := metadata.DeleteACLs{Principal: call.Principal}
		for i := range req.Filters {
			f := &req.Filters[i]
			ev.Filters = append(ev.Filters, metadata.ACLFilter{
				Resource: f.ResourceType, Name: f.ResourceName, Pattern: f.ResourcePatternType, Principal: f.Principal, Host: f.Host,
				Operation: f.Operation, Permission: f.PermissionType,
			})
		}
		no := s.mayChangeACLs(call, len(ev.Filters))
		var results []metadata.ACLsDeleted
		if no.code == kafka.None {
			var err error
			if results, err = decide[[]metadata.ACLsDeleted](ctx, s, call, ev); err != nil {
				no = refusal{s.code(err, "delete ACLs"), err.Error()}
			}
		}
		for i := range resp.Results {
			r := &resp.Results[i]
			r.Default()
			if r.ErrorCode, r.ErrorMessage = int16(no.code), text(no.message); no.code == kafka.None {
				*r = aclsDeleted(results[i])
			}
		}
		return resp
	})
}

func aclsDeleted(d metadata.ACLsDeleted) kmsg.DeleteACLsResponseResult {
	r := kmsg.NewDeleteACLsResponseResult()
	r.ErrorCode, r.ErrorMessage = int16(d.Code), text(d.Message)
	for _, a := range d.ACLs {
		m := kmsg.NewDeleteACLsResponseResultMatchingACL()
		m.ResourceType, m.ResourceName, m.ResourcePatternType = a.Resource, a.Name, a.Pattern
		m.Principal, m.Host, m.Operation, m.PermissionType = a.Principal, a.Host, a.Operation, a.Permission
		r.MatchingACLs = append(r.MatchingACLs, m)
	}
	return r
}
