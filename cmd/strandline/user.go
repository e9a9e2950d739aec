package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"strandline.dev/internal/auth"
)

func newUserCommand(a *app) *cobra.Command {
	return newGroupCommand("user", "Create, list and delete users who log in with a password",
		"Create, list and delete users who log in with a password (SCRAM, PLAIN). What they may do is said by `strandline acl`.",
		newUserCreateCommand(a), newUserListCommand(a), newUserDeleteCommand(a))
}

// newPassword makes a password that nobody guesses: 26 letters and digits, 130 bits.
func newPassword() string { return strings.ToLower(rand.Text()) }

func newUserCreateCommand(a *app) *cobra.Command {
	var fromStdin, replace bool
	var mechanism string
	cmd := &cobra.Command{
		Use:   "create USER",
		Short: "Create a user, or give one a new password",
		Long: `Create a user with a password that is made up and printed once, or with the one in the first line of standard input. A user who is there
already is refused without --replace, which gives a new password: sessions with the former one end within seconds. The password is kept
nowhere; the cluster knows what proves it. A user of a node's auth.users.file goes before one of the same name here.`,
		Example: `  strandline user create billing
  strandline user create billing --password-stdin <secret.txt
  strandline user create billing --replace -o json | jq -r .password`,
		Args: exactArgs("USER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := parseMechanism(mechanism)
			if err != nil {
				return err
			}
			password := newPassword()
			if fromStdin {
				if password, err = readPassword(a.stdin); err != nil {
					return err
				}
			}
			u := kadm.UpsertSCRAM{User: args[0], Mechanism: m, Iterations: auth.DefaultIterations, Password: password}
			return a.userCreate(cmd, u, replace, !fromStdin)
		},
	}
	cmd.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
	cmd.Flags().BoolVar(&replace, "replace", false, "give a user who is there a new password")
	cmd.Flags().StringVar(&mechanism, "mechanism", auth.Scram512, "`SCRAM-SHA-512|SCRAM-SHA-256` that the password is for; PLAIN takes either")
	return cmd
}

func parseMechanism(name string) (kadm.ScramMechanism, error) {
	switch name {
	case auth.Scram512:
		return kadm.ScramSha512, nil
	case auth.Scram256:
		return kadm.ScramSha256, nil
	}
	return 0, usagef("mechanism %q: want %s or %s", name, auth.Scram512, auth.Scram256)
}

// readPassword is the first line.
func readPassword(from io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(from, passwordBytesMax)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", failf(err, "cannot read the password")
	}
	line = strings.TrimRight(line, "\r\n")
	switch {
	case line == "":
		return "", usagef("there is no password on standard input")
	case len(line) >= passwordBytesMax:
		return "", usagef("the password has more than %d bytes", passwordBytesMax-1)
	}
	return line, nil
}

// createdUser is what `user create -o json` prints.
type createdUser struct {
	User      string `json:"user"`
	Mechanism string `json:"mechanism"`
	Password  string `json:"password,omitempty"`
}

func (a *app) userCreate(cmd *cobra.Command, u kadm.UpsertSCRAM, replace, show bool) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()
	if !replace {
		had, err := s.admin.DescribeUserSCRAMs(ctx, u.User)
		if err != nil {
			return s.explain(err, "user %s not created", u.User)
		}
		if len(had[u.User].CredInfos) > 0 {
			return &failure{what: fmt.Sprintf("user %s not created", u.User), why: errUserExists, todo: "give --replace for a new password"}
		}
	}
	r := createdUser{User: u.User, Mechanism: u.Mechanism.String()}
	if show {
		r.Password = u.Password
	}
	answers, err := s.admin.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{u})
	if err == nil {
		err = answered(answers[u.User].Err, answers[u.User].ErrMessage)
	}
	if err != nil {
		return s.explain(err, "user %s not created", u.User)
	}
	p := a.printer(s.settings)
	switch {
	case p.json:
		return p.object(r)
	case show:
		_, err = fmt.Fprintf(p.w, "%s created, password %s\n", r.User, r.Password)
	default:
		_, err = fmt.Fprintf(p.w, "%s created\n", r.User)
	}
	return err
}

func newUserListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List users with the mechanisms of their passwords",
		Long:    "List the users of the cluster with the mechanisms of their passwords. Users of a node's auth.users.file are not among them.",
		Example: "  strandline user list\n  strandline user list -o json | jq -r .user",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			ctx, cancel := s.bounded(cmd.Context())
			defer cancel()
			users, err := s.admin.DescribeUserSCRAMs(ctx)
			if err != nil {
				return s.explain(err, "cannot list users")
			}
			p := a.printer(s.settings)
			var rows [][]string
			for _, u := range users.Sorted() {
				row := listedUser{User: u.User}
				for _, c := range u.CredInfos {
					row.Mechanisms = append(row.Mechanisms, c.Mechanism.String())
				}
				if p.json {
					if err := p.object(row); err != nil {
						return err
					}
				}
				rows = append(rows, []string{row.User, strings.Join(row.Mechanisms, ",")})
			}
			if p.json {
				return nil
			}
			return p.table([]string{"USER", "MECHANISMS"}, rows)
		},
	}
}

// listedUser is one line of `user list -o json`.
type listedUser struct {
	User       string   `json:"user"`
	Mechanisms []string `json:"mechanisms"`
}

func newUserDeleteCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "delete USER",
		Short: "Delete a user",
		Long: `Delete a user: nobody logs in with the password any more, and open sessions end within seconds. Rules of access that name the user stay,
and would count for a new user of that name: the command says how many there are. On a terminal you are asked first; -y answers yes.`,
		Example: `  strandline user delete billing
  strandline user delete billing -y`,
		Args: exactArgs("USER"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.userDelete(cmd, args[0]) },
	}
}

func (a *app) userDelete(cmd *cobra.Command, user string) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	if err := a.confirm(s.settings, fmt.Sprintf("Delete user %s?", user)); err != nil {
		return err
	}
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()
	if err := s.deleteUser(ctx, user); err != nil {
		return s.explain(err, "user %s not deleted", user)
	}
	p := a.printer(s.settings)
	if p.json {
		err = p.object(struct {
			User string `json:"user"`
			Done bool   `json:"done"`
		}{user, true})
	} else {
		_, err = fmt.Fprintf(p.w, "%s deleted\n", user)
	}
	if err != nil {
		return err
	}
	rules, err := s.acls(ctx) // told as far as it can be read; the user is gone either way
	n := 0
	for _, r := range rules {
		if r.Principal == principalText(user) {
			n++
		}
	}
	if err == nil && n > 0 {
		fmt.Fprintf(a.stderr, "note: %d rules still name %s; `strandline acl delete --user %s` deletes them\n", n, user, shellWord(user))
	}
	return nil
}

// deleteUser removes every password of a user.
func (s *session) deleteUser(ctx context.Context, user string) error {
	had, err := s.admin.DescribeUserSCRAMs(ctx, user)
	if err != nil {
		return err
	}
	u := had[user]
	if errors.Is(u.Err, kerr.ResourceNotFound) {
		return answered(u.Err, "there is no such user; see `strandline user list`")
	}
	if u.Err != nil {
		return answered(u.Err, u.ErrMessage)
	}
	// A user may be named once in a request, so one request for each mechanism.
	for _, c := range u.CredInfos {
		answers, err := s.admin.AlterUserSCRAMs(ctx, []kadm.DeleteSCRAM{{User: user, Mechanism: c.Mechanism}}, nil)
		if err != nil {
			return err
		}
		if r := answers[user]; r.Err != nil && !errors.Is(r.Err, kerr.ResourceNotFound) {
			return answered(r.Err, r.ErrMessage)
		}
	}
	return nil
}
