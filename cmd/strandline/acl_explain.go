package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

func newACLExplainCommand(a *app) *cobra.Command {
	var user, op, resource, host string
	cmd := &cobra.Command{
		Use:   "explain --user USER --op OPERATION --resource RESOURCE",
		Short: "Say whether somebody may do something, and which rule decides",
		Long: `Say whether a user may do an operation on a resource, and name the rule that decides, or the command that creates the rule that is
missing. Judged by the rules of the cluster and the super users of its nodes, with the very code that the nodes use. Without --host, for a
host that no rule names; rules for single hosts that could decide otherwise are listed. Exit code 0 says that there is an answer, whichever it is.`,
		Example: `  strandline acl explain --user billing --op read --resource topic:orders
  strandline acl explain --user billing --op read --resource group:billing --host 10.0.0.7 -o json | jq .allowed`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, one := range [][2]string{{"user", user}, {"op", op}, {"resource", resource}} {
				if one[1] == "" {
					return usagef("missing --%s", one[0])
				}
			}
			// As a rule: what cannot be one is nothing to ask about.
			f := aclFlags{users: []string{user}, operations: []string{op}, resources: []string{resource}}
			asked, err := f.rules()
			if err != nil {
				return err
			}
			if host != "" {
				asked[0].Host = host
			}
			return a.aclExplain(cmd, asked[0], resource)
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "`USER` who asks")
	cmd.Flags().StringVar(&op, "op", "", "`OPERATION` asked for")
	cmd.Flags().StringVar(&resource, "resource", "", "`RESOURCE`: topic:NAME, group:NAME, transactional-id:NAME or cluster")
	cmd.Flags().StringVar(&host, "host", "", "address the user comes from, `HOST`")
	return cmd
}

// explanation is what `acl explain -o json` prints.
type explanation struct {
	Allowed bool      `json:"allowed"`
	Why     string    `json:"why"`
	Rule    *shownACL `json:"rule,omitempty"`
	// Missing is the command that creates the rule that would allow it.
	Missing string `json:"missing,omitempty"`
	// OtherHosts are rules for single hosts, where the answer may be another.
	OtherHosts []shownACL `json:"otherHosts,omitempty"`
}

func (a *app) aclExplain(cmd *cobra.Command, asked metadata.ACL, resource string) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()
	rules, err := s.acls(ctx)
	if err != nil {
		return s.explain(err, "cannot read the rules")
	}
	options, err := s.accessOptions(ctx)
	if err != nil {
		return s.explain(err, "cannot read who the super users are")
	}
	v := auth.CompileACLs(slices.Values(rules), options).Decide(
		kafka.Principal{Type: "User", Name: strings.TrimPrefix(asked.Principal, "User:")}, asked.Host,
		auth.Action{Operation: asked.Operation, Resource: asked.Resource, Name: asked.Name})
	e := explanation{Allowed: v.Allowed, Why: v.Why}
	super := v.Allowed && slices.Contains(options.Supers, kafka.Principal{Type: "User", Name: strings.TrimPrefix(asked.Principal, "User:")})
	if v.Rule != nil {
		r := showACL(*v.Rule)
		e.Rule = &r
	} else if !v.Allowed {
		e.Missing = missingRule(asked, resource)
	}
	for _, r := range rules {
		mine := r.Principal == asked.Principal || r.Principal == metadata.AnyPrincipal
		if asked.Host == metadata.AnyHost && r.Host != metadata.AnyHost && mine && r.Resource == asked.Resource && r.Covers(asked.Name) && !super {
			e.OtherHosts = append(e.OtherHosts, showACL(r))
		}
	}
	return a.printExplanation(s, e)
}

func (a *app) printExplanation(s *session, e explanation) error {
	p := a.printer(s.settings)
	if p.json {
		return p.object(e)
	}
	verdict := "denied"
	if e.Allowed {
		verdict = "allowed"
	}
	fmt.Fprintf(p.w, "%s: %s\n", verdict, strings.TrimPrefix(e.Why, verdict+" by "))
	if e.Missing != "" {
		fmt.Fprintf(p.w, "missing: %s\n", e.Missing)
	}
	if len(e.OtherHosts) == 0 {
		return nil
	}
	fmt.Fprintln(p.w, "rules for single hosts, where it may be otherwise (--host):")
	return a.printACLs(s, e.OtherHosts)
}

// missingRule is the command that creates the rule that would allow what was asked.
func missingRule(asked metadata.ACL, resource string) string {
	line := fmt.Sprintf("strandline acl create --user %s --op %s --resource %s", shellWord(strings.TrimPrefix(asked.Principal, "User:")), showACL(asked).Operation, shellWord(resource))
	if asked.Host != metadata.AnyHost {
		line += " --host " + shellWord(asked.Host)
	}
	return line
}

// shellWord is a text as one word of a shell command.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-:,/=@", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// accessOptions asks the brokers what their configurations say beside the rules. It is an error when they do not agree.
func (s *session) accessOptions(ctx context.Context) (*auth.Options, error) {
	brokers, err := s.admin.ListBrokers(ctx)
	if err != nil {
		return nil, err
	}
	resources, err := s.admin.DescribeBrokerConfigs(ctx, brokers.NodeIDs()...)
	if err != nil {
		return nil, err
	}
	var first *auth.Options
	for _, r := range resources {
		if err := answered(r.Err, r.ErrMessage); err != nil {
			return nil, err
		}
		var n config.Node
		supers, _ := findConfig(r.Configs, auth.KafkaSupers)
		open, _ := findConfig(r.Configs, auth.KafkaAllowIfNone)
		n.Auth.SuperUsers = supers.MaybeValue()
		o := &auth.Options{Enforced: true, AllowIfNone: open.MaybeValue() == "true"}
		o.Supers, _ = n.Supers()
		if first == nil {
			first = o
		}
		if o.AllowIfNone != first.AllowIfNone || !slices.Equal(o.Supers, first.Supers) {
			return nil, fmt.Errorf("the nodes do not agree: auth.super.users or auth.allow.if.no.acl of node %s differs from that of node %s", r.Name, resources[0].Name)
		}
	}
	if first == nil {
		return nil, kerr.BrokerNotAvailable
	}
	return first, nil
}
