package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// noACLs is the refusal of everything about ACLs while they decide nothing: who made one would believe in a protection that is not there (C108).
var noACLs = refusal{kafka.SecurityDisabled, "no listener of this node authenticates its clients, so ACLs decide nothing; set sasl or mtls on a listener"}

// handleDescribeACLs lists the rules of access that a filter selects, those of one resource together.
func (s *Server) handleDescribeACLs(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.DescribeACLsRequest)
	resp := reply[*kmsg.DescribeACLsResponse](req)
	filter := metadata.ACLFilter{
		Resource: req.ResourceType, Name: req.ResourceName, Pattern: req.ResourcePatternType, Principal: req.Principal, Host: req.Host,
		Operation: req.Operation, Permission: req.PermissionType,
	}
	no := refusal{}
	switch {
	case !s.mayCluster(call, kmsg.ACLOperationDescribe):
		no.code = kafka.ClusterAuthorizationFailed
	case !s.cfg.Access.Enforced():
		no = noACLs
	default:
		if no.message = filter.Fault(); no.message != "" {
			no.code = kafka.InvalidRequest
		}
	}
	if no.code != kafka.None {
		resp.ErrorCode, resp.ErrorMessage = int16(no.code), text(no.message)
		return ready(resp)
	}
	for a := range s.cfg.Image().ACLs() {
		if !filter.Selects(a) || req.Version == 0 && a.Pattern != kmsg.ACLResourcePatternTypeLiteral {
			continue
		}
		n := len(resp.Resources) - 1
		if n < 0 || resp.Resources[n].ResourceType != a.Resource || resp.Resources[n].ResourceName != a.Name || resp.Resources[n].ResourcePatternType != a.Pattern {
			r := kmsg.NewDescribeACLsResponseResource()
			r.ResourceType, r.ResourceName, r.ResourcePatternType = a.Resource, a.Name, a.Pattern
			resp.Resources = append(resp.Resources, r)
			n++
		}
		one := kmsg.NewDescribeACLsResponseResourceACL()
		one.Principal, one.Host, one.Operation, one.PermissionType = a.Principal, a.Host, a.Operation, a.Permission
		resp.Resources[n].ACLs = append(resp.Resources[n].ACLs, one)
	}
	return ready(resp)
}
