package rest

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

type createUser struct {
	Body struct {
		User      string `json:"user" minLength:"1" maxLength:"249"`
		Password  string `json:"password,omitempty" maxLength:"1023" doc:"without it one is made up and told, once"`
		Mechanism string `json:"mechanism,omitempty" enum:"SCRAM-SHA-512,SCRAM-SHA-256" default:"SCRAM-SHA-512" doc:"what the password is for; PLAIN and Basic take either"`
		Replace   bool   `json:"replace,omitempty" doc:"give a user who is there a new password; sessions with the former one end within seconds"`
	}
}

type createdUser struct {
	Body struct {
		User      string `json:"user"`
		Mechanism string `json:"mechanism"`
		Password  string `json:"password,omitempty" doc:"the one that was made up; it is kept nowhere"`
	}
}

type userSummary struct {
	User       string   `json:"user"`
	Mechanisms []string `json:"mechanisms"`
}

type listedUsers struct {
	Body struct {
		Users []userSummary `json:"users"`
	}
}

type userPath struct {
	User string `path:"user" maxLength:"249"`
}

// describeUsers registers the routes of users who log in with a password.
func (d *door) describeUsers(api huma.API) {
	tags := []string{"access"}
	huma.Register(api, huma.Operation{
		OperationID: "createUser", Method: http.MethodPost, Path: "/v1/users", Tags: tags, DefaultStatus: http.StatusCreated,
		Summary: "Create a user who logs in with a password, or with replace give one a new password",
	}, d.createUser)
	huma.Register(api, huma.Operation{
		OperationID: "listUsers", Method: http.MethodGet, Path: "/v1/users", Tags: tags,
		Summary: "List users with the mechanisms of their passwords; those of a node's file of users are not among them",
	}, d.listUsers)
	huma.Register(api, huma.Operation{
		OperationID: "deleteUser", Method: http.MethodDelete, Path: "/v1/users/{user}", Tags: tags, DefaultStatus: http.StatusNoContent,
		Summary: "Delete a user: nobody logs in with the password any more; rules of access that name the user stay",
	}, d.deleteUser)
}

// secret refuses what must not be read on its way: passwords go over TLS, or stay on this machine.
func secret(ctx context.Context) error {
	if c := callerOf(ctx); !c.private {
		return refuse(http.StatusForbidden, "TLS_REQUIRED", "passwords are taken and told over TLS only")
	}
	return nil
}

func (d *door) createUser(ctx context.Context, in *createUser) (*createdUser, error) {
	if err := secret(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	b := &in.Body
	if !b.Replace {
		had, err := d.users(ctx)
		if err != nil {
			return nil, err
		}
		for _, u := range had {
			if u.User == b.User {
				p := failed(kafka.DuplicateResource, nil)
				p.Detail = "there is such a user; replace gives a new password"
				return nil, p
			}
		}
	}
	out := &createdUser{}
	out.Body.User, out.Body.Mechanism = b.User, b.Mechanism
	password := b.Password
	if password == "" {
		password = strings.ToLower(rand.Text())
		out.Body.Password = password
	}
	mechanism := metadata.ScramSHA512
	if b.Mechanism == auth.Scram256 {
		mechanism = metadata.ScramSHA256
	}
	salt, salted, err := auth.Salted(password, mechanism)
	if err != nil {
		return nil, err
	}
	req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	u := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
	u.Name, u.Mechanism, u.Iterations, u.Salt, u.SaltedPassword = b.User, int8(mechanism), auth.DefaultIterations, salt, salted
	req.Upsertions = append(req.Upsertions, u)
	return out, d.alterUser(ctx, req)
}

func (d *door) alterUser(ctx context.Context, req *kmsg.AlterUserSCRAMCredentialsRequest) error {
	resp, err := askHere[*kmsg.AlterUserSCRAMCredentialsResponse](ctx, d, req)
	if err != nil {
		return err
	}
	if len(resp.Results) != 1 {
		return failed(kafka.UnknownServerError, nil)
	}
	if r := &resp.Results[0]; r.ErrorCode != 0 {
		return failed(kafka.ErrorCode(r.ErrorCode), r.ErrorMessage)
	}
	return nil
}

// users are all users of the cluster, by name.
func (d *door) users(ctx context.Context) ([]userSummary, error) {
	resp, err := askHere[*kmsg.DescribeUserSCRAMCredentialsResponse](ctx, d, kmsg.NewPtrDescribeUserSCRAMCredentialsRequest())
	if err != nil {
		return nil, err
	}
	if resp.ErrorCode != 0 {
		return nil, failed(kafka.ErrorCode(resp.ErrorCode), resp.ErrorMessage)
	}
	out := []userSummary{}
	for i := range resp.Results {
		u := userSummary{User: resp.Results[i].User, Mechanisms: []string{}}
		for _, c := range resp.Results[i].CredentialInfos {
			name := auth.Scram512
			if metadata.ScramMechanism(c.Mechanism) == metadata.ScramSHA256 {
				name = auth.Scram256
			}
			u.Mechanisms = append(u.Mechanisms, name)
		}
		out = append(out, u)
	}
	return out, nil
}

func (d *door) listUsers(ctx context.Context, _ *struct{}) (*listedUsers, error) {
	all, err := d.users(ctx)
	if err != nil {
		return nil, err
	}
	out := &listedUsers{}
	out.Body.Users = all
	return out, nil
}

// deleteUser removes every password of a user. A user may be named once in a request, so there is one for each mechanism.
func (d *door) deleteUser(ctx context.Context, in *userPath) (*struct{}, error) {
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	all, err := d.users(ctx)
	if err != nil {
		return nil, err
	}
	there := false
	for _, u := range all {
		if u.User != in.User {
			continue
		}
		there = true
		for _, m := range u.Mechanisms {
			req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
			one := kmsg.NewAlterUserSCRAMCredentialsRequestDeletion()
			one.Name, one.Mechanism = in.User, int8(metadata.ScramSHA512)
			if m == auth.Scram256 {
				one.Mechanism = int8(metadata.ScramSHA256)
			}
			req.Deletions = append(req.Deletions, one)
			if err := d.alterUser(ctx, req); err != nil {
				return nil, err
			}
		}
	}
	if !there {
		p := failed(kafka.ResourceNotFound, nil)
		p.Detail = "there is no such user"
		return nil, p
	}
	return nil, nil
}
