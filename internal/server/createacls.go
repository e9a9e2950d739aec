package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// handleCreateACLs adds rules of access. One that can match nothing is added all the same, and warned about in the log: tools create them on purpose
// before what they are for.
func (s *Server) handleCreateACLs(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.CreateACLsRequest)
	return background(ctx, adminWaitDefault, func(ctx context.Context) kmsg.Response {
		resp := reply[*kmsg.CreateACLsResponse](req)
		resp.Results = make([]kmsg.CreateACLsResponseResult, len(req.Creations))
		ev := metadata.CreateACLs{Principal: call.Principal}
		for i := range req.Creations {
			c := &req.Creations[i]
			ev.ACLs = append(ev.ACLs, metadata.ACL{
				Resource: c.ResourceType, Pattern: c.ResourcePatternType, Name: c.ResourceName, Principal: c.Principal, Host: c.Host,
				Operation: c.Operation, Permission: c.PermissionType,
			})
		}
		results, no := s.createACLs(ctx, call, ev)
		for i := range resp.Results {
			r := &resp.Results[i]
			r.Default()
			r.ErrorCode, r.ErrorMessage = int16(no.code), text(no.message)
			if no.code == kafka.None {
				r.ErrorCode, r.ErrorMessage = int16(results[i].Code), text(results[i].Message)
			}
		}
		return resp
	})
}

func (s *Server) createACLs(ctx context.Context, call *Call, ev metadata.CreateACLs) ([]metadata.ACLCreated, refusal) {
	if no := s.mayChangeACLs(call, len(ev.ACLs)); no.code != kafka.None {
		return nil, no
	}
	results, err := decide[[]metadata.ACLCreated](ctx, s, call, ev)
	if err != nil {
		return nil, refusal{s.code(err, "create ACLs"), err.Error()}
	}
	for i, r := range results {
		if why := auth.Idle(ev.ACLs[i]); why != "" && r.OK() {
			s.cfg.Log.Warn("an ACL that can match nothing", "acl", clip(auth.RuleText(ev.ACLs[i])), "why", clip(why), "principal", call.Principal.String())
		}
	}
	return results, refusal{}
}

// mayChangeACLs judges a request that changes items rules of access.
func (s *Server) mayChangeACLs(call *Call, items int) refusal {
	switch {
	case !s.mayCluster(call, kmsg.ACLOperationAlter):
		return refusal{code: kafka.ClusterAuthorizationFailed}
	case !s.cfg.Access.Enforced():
		return noACLs
	case items > adminItemsMax:
		return refusal{kafka.PolicyViolation, "too many ACLs in one request"}
	}
	return refusal{}
}
