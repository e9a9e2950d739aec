package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/metadata"
)

func newACLCreateCommand(a *app) *cobra.Command {
	var f aclFlags
	cmd := &cobra.Command{
		Use:   "create --user USER --op OPERATION --resource RESOURCE",
		Short: "Create rules of access",
		Long: `Create rules of access: one for each combination of user, operation, resource and host. A rule that is there already stays. A rule that
can match nothing, as one on topic:ord* (a star at the end is no wildcard, --prefix is), is created and warned about.

` + aclLong,
		Example: `  strandline acl create --user shop --op write --resource topic:orders
  strandline acl create --user billing --op read --resource topic:orders,group:billing
  strandline acl create --user team-a --op all --resource topic:team-a. --prefix
  strandline acl create --user mallory --op all --resource topic:'*' --deny`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.aclCreate(cmd, &f) },
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.deny, "deny", false, "deny instead of allow")
	return cmd
}

func (a *app) aclCreate(cmd *cobra.Command, f *aclFlags) error {
	rules, err := f.rules()
	if err != nil {
		return err
	}
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()
	req := kmsg.NewPtrCreateACLsRequest()
	for _, r := range rules {
		c := kmsg.NewCreateACLsRequestCreation()
		c.ResourceType, c.ResourcePatternType, c.ResourceName = r.Resource, r.Pattern, r.Name
		c.Principal, c.Host, c.Operation, c.PermissionType = r.Principal, r.Host, r.Operation, r.Permission
		req.Creations = append(req.Creations, c)
	}
	resp, err := req.RequestWith(ctx, s.client)
	if err == nil && len(resp.Results) != len(rules) {
		err = errWrongAnswer
	}
	if err != nil {
		return s.explain(err, "cannot create the rules")
	}
	shown := make([]shownACL, len(rules))
	var faults []error
	for i, r := range resp.Results {
		shown[i] = showACL(rules[i])
		if err := answeredCode(r.ErrorCode, r.ErrorMessage); err != nil {
			shown[i].Error = reason(err)
			faults = append(faults, err)
		}
	}
	if err := a.printACLs(s, shown); err != nil {
		return err
	}
	return notDone("rules not created", faults, len(rules))
}

func newACLListCommand(a *app) *cobra.Command {
	var f aclFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List rules of access",
		Long: `List rules of access. With --resource, those that are about it: also by a prefix or a star. A rule that can match nothing is warned
about.`,
		Example: `  strandline acl list
  strandline acl list --user billing
  strandline acl list --resource topic:orders -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			ctx, cancel := s.bounded(cmd.Context())
			defer cancel()
			pattern := kmsg.ACLResourcePatternTypeMatch
			if f.prefix {
				pattern = kmsg.ACLResourcePatternTypePrefixed
			}
			rules, err := s.selectedACLs(ctx, &f, pattern)
			if err != nil {
				return err
			}
			shown := make([]shownACL, len(rules))
			for i := range rules {
				shown[i] = showACL(rules[i])
			}
			return a.printACLs(s, shown)
		},
	}
	f.add(cmd)
	return cmd
}

// selectedACLs are the rules of the cluster that the flags are about.
func (s *session) selectedACLs(ctx context.Context, f *aclFlags, pattern kmsg.ACLResourcePatternType) ([]metadata.ACL, error) {
	selects, err := f.selects(pattern)
	if err != nil {
		return nil, err
	}
	all, err := s.acls(ctx)
	if err != nil {
		return nil, s.explain(err, "cannot list the rules")
	}
	var out []metadata.ACL
	for _, r := range all {
		if selects(r) {
			out = append(out, r)
		}
	}
	return out, nil
}

func newACLDeleteCommand(a *app) *cobra.Command {
	var f aclFlags
	var all, dryRun bool
	cmd := &cobra.Command{
		Use:   "delete",
		Short: "Delete rules of access",
		Long: `Delete the rules that the flags select, and print them. --resource selects rules on exactly that name (with --prefix: on that prefix).
On a terminal you are asked first; -y answers yes.`,
		Example: `  strandline acl delete --user billing --op read --resource topic:orders
  strandline acl delete --user billing --dry-run
  strandline acl delete --all -y`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if none := len(f.users)+len(f.hosts)+len(f.operations)+len(f.resources) == 0; none != all {
				return usagef("give --user, --op, --resource or --host to select rules, or --all alone")
			}
			return a.aclDelete(cmd, &f, dryRun)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all rules there are")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be deleted, delete nothing")
	return cmd
}

func (a *app) aclDelete(cmd *cobra.Command, f *aclFlags, dryRun bool) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(cmd.Context())
	rules, err := s.selectedACLs(ctx, f, f.pattern())
	cancel()
	if err != nil {
		return err
	}
	if len(rules) == 0 {
		return &failure{what: "no rule deleted", why: errNoRule, todo: "see `strandline acl list`"}
	}
	if !dryRun {
		if err := a.confirm(s.settings, fmt.Sprintf("Delete %d rules?", len(rules))); err != nil {
			return err
		}
	}
	shown, faults := make([]shownACL, len(rules)), []error(nil)
	for i := range rules {
		shown[i] = showACL(rules[i])
		shown[i].Warning = ""
	}
	for from := 0; from < len(rules) && !dryRun; from += aclsMax { // by the piece: a broker takes so many at once
		to := min(from+aclsMax, len(rules))
		ctx, cancel := s.bounded(cmd.Context()) // anew: the person may have thought about it
		err := s.deleteACLs(ctx, rules[from:to], shown[from:to], &faults)
		cancel()
		if err != nil {
			return s.explain(err, "%d of %d rules deleted, then it failed", from, len(rules))
		}
	}
	if err := a.printACLs(s, shown); err != nil {
		return err
	}
	return notDone("rules not deleted", faults, len(rules))
}

// deleteACLs deletes exactly these rules. One that has gone meanwhile is no fault.
func (s *session) deleteACLs(ctx context.Context, rules []metadata.ACL, shown []shownACL, faults *[]error) error {
	req := kmsg.NewPtrDeleteACLsRequest()
	for _, r := range rules {
		c := kmsg.NewDeleteACLsRequestFilter()
		c.ResourceType, c.ResourcePatternType, c.ResourceName = r.Resource, r.Pattern, kmsg.StringPtr(r.Name)
		c.Principal, c.Host, c.Operation, c.PermissionType = kmsg.StringPtr(r.Principal), kmsg.StringPtr(r.Host), r.Operation, r.Permission
		req.Filters = append(req.Filters, c)
	}
	resp, err := req.RequestWith(ctx, s.client)
	if err == nil && len(resp.Results) != len(rules) {
		err = errWrongAnswer
	}
	if err != nil {
		return err
	}
	for i, r := range resp.Results {
		if err := answeredCode(r.ErrorCode, r.ErrorMessage); err != nil {
			shown[i].Error = reason(err)
			*faults = append(*faults, err)
		}
	}
	return nil
}

// answeredCode is answered for a code as it came.
func answeredCode(code int16, message *string) error {
	text := ""
	if message != nil {
		text = *message
	}
	return answered(kerr.ErrorForCode(code), text)
}
