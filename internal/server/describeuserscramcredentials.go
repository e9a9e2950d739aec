package server

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// handleDescribeUserScramCredentials tells which mechanisms users have, and how often their passwords are hashed; nothing that could be used to
// guess one.
func (s *Server) handleDescribeUserScramCredentials(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.DescribeUserSCRAMCredentialsRequest)
	resp := reply[*kmsg.DescribeUserSCRAMCredentialsResponse](req)
	switch {
	case !s.mayCluster(call, kmsg.ACLOperationDescribe):
		resp.ErrorCode = int16(kafka.ClusterAuthorizationFailed)
	case len(req.Users) > adminItemsMax:
		resp.ErrorCode, resp.ErrorMessage = int16(kafka.PolicyViolation), text("too many users in one request")
	case len(req.Users) == 0:
		for c := range s.cfg.Image().Scrams() {
			n := len(resp.Results) - 1
			if n < 0 || resp.Results[n].User != c.User {
				r := kmsg.NewDescribeUserSCRAMCredentialsResponseResult()
				r.User = c.User
				resp.Results = append(resp.Results, r)
				n++
			}
			resp.Results[n].CredentialInfos = append(resp.Results[n].CredentialInfos, scramShown(c))
		}
	default:
		var once seen[string]
		for _, u := range req.Users {
			resp.Results = append(resp.Results, s.scramOf(u.Name, once.add(u.Name)))
		}
	}
	return ready(resp)
}

func (s *Server) scramOf(user string, again bool) kmsg.DescribeUserSCRAMCredentialsResponseResult {
	r := kmsg.NewDescribeUserSCRAMCredentialsResponseResult()
	r.User = user
	img := s.cfg.Image()
	for _, m := range []metadata.ScramMechanism{metadata.ScramSHA256, metadata.ScramSHA512} {
		if c := img.Scram(user, m); c != nil {
			r.CredentialInfos = append(r.CredentialInfos, scramShown(c))
		}
	}
	switch {
	case again:
		r.CredentialInfos = nil
		r.ErrorCode, r.ErrorMessage = int16(kafka.DuplicateResource), text(fmt.Sprintf("user %s is in the request more than once", clip(user)))
	case len(r.CredentialInfos) == 0:
		r.ErrorCode, r.ErrorMessage = int16(kafka.ResourceNotFound), text(fmt.Sprintf("user %s has no SCRAM credential", clip(user)))
	}
	return r
}

func scramShown(c *metadata.ScramCredential) kmsg.DescribeUserSCRAMCredentialsResponseResultCredentialInfo {
	shown := kmsg.NewDescribeUserSCRAMCredentialsResponseResultCredentialInfo()
	shown.Mechanism, shown.Iterations = int8(c.Mechanism), c.Iterations
	return shown
}
