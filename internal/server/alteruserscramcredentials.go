package server

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// handleAlterUserScramCredentials sets and removes passwords. What the client sends would let its reader log in, so what is kept is derived from it
// here, before anything is written or forwarded.
func (s *Server) handleAlterUserScramCredentials(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.AlterUserSCRAMCredentialsRequest)
	return background(ctx, adminWaitDefault, func(ctx context.Context) kmsg.Response {
		resp := reply[*kmsg.AlterUserSCRAMCredentialsResponse](req)
		ev := metadata.AlterScram{Principal: call.Principal, Secret: make([]byte, 32)}
		no, users := s.scramChanges(call, req, &ev)
		var results []metadata.ScramAltered
		if no.code == kafka.None {
			var err error
			if _, err = rand.Read(ev.Secret); err == nil {
				results, err = decide[[]metadata.ScramAltered](ctx, s, call, ev)
			}
			if err != nil {
				no = refusal{s.code(err, "change passwords"), err.Error()}
			}
		}
		failed := map[string]refusal{}
		for _, r := range results {
			if !r.OK() {
				failed[r.User] = refusal{r.Code, r.Message}
			}
		}
		for _, u := range users { // one answer a user
			r := kmsg.NewAlterUserSCRAMCredentialsResponseResult()
			f := no
			if f.code == kafka.None {
				f = failed[u]
			}
			r.User, r.ErrorCode, r.ErrorMessage = u, int16(f.code), text(f.message)
			resp.Results = append(resp.Results, r)
		}
		return resp
	})
}

// scramChanges judges the request, fills the event, and lists the users, each once.
func (s *Server) scramChanges(call *Call, req *kmsg.AlterUserSCRAMCredentialsRequest, ev *metadata.AlterScram) (no refusal, users []string) {
	var names seen[string]
	var changes seen[metadata.ScramName]
	add := func(n metadata.ScramName) {
		if !names.add(n.User) {
			users = append(users, n.User)
		}
		if changes.add(n) && no.code == kafka.None {
			no = refusal{kafka.DuplicateResource, fmt.Sprintf("user %s has two changes for %v in one request", clip(n.User), n.Mechanism)}
		}
	}
	switch {
	case !s.mayCluster(call, kmsg.ACLOperationAlter):
		no.code = kafka.ClusterAuthorizationFailed
	case len(req.Deletions)+len(req.Upsertions) > adminItemsMax:
		no = refusal{kafka.PolicyViolation, "too many users in one request"}
	}
	for i := range req.Deletions {
		d := &req.Deletions[i]
		n := metadata.ScramName{User: d.Name, Mechanism: metadata.ScramMechanism(d.Mechanism)}
		add(n)
		ev.Remove = append(ev.Remove, n)
	}
	for i := range req.Upsertions {
		u := &req.Upsertions[i]
		n := metadata.ScramName{User: u.Name, Mechanism: metadata.ScramMechanism(u.Mechanism)}
		add(n)
		if fault := auth.SaltedFault(n.Mechanism, u.SaltedPassword); fault != "" {
			if no.code == kafka.None {
				no = refusal{kafka.UnacceptableCredential, fault}
			}
			continue
		}
		ev.Set = append(ev.Set, auth.FromSalted(u.Name, n.Mechanism, u.Iterations, u.Salt, u.SaltedPassword))
	}
	return no, users
}
