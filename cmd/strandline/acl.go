package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/metadata"
)

const aclLong = `Who may do what. A rule allows or denies a user an operation on a resource. Without a rule that allows it an operation is denied, and a
rule that denies wins over all that allow. Super users (auth.super.users of the nodes) need no rule.

Resources: topic:NAME, group:NAME, transactional-id:NAME, cluster; topic:'*' stands for all topics.
Operations: read, write, create, delete, alter, describe, describe-configs, alter-configs, cluster-action, idempotent-write, all. To publish needs
write on the topic; to consume in a group, read on the topic and read on the group. read, write, delete and alter imply describe.`

func newACLCommand(a *app) *cobra.Command {
	return newGroupCommand("acl", "Create, list, delete and explain rules of access", aclLong,
		newACLCreateCommand(a), newACLListCommand(a), newACLDeleteCommand(a), newACLExplainCommand(a))
}

// aclFlags are what the acl commands are told about rules. Each combination of the lists is one rule, or one filter.
type aclFlags struct {
	users, hosts, operations, resources []string
	prefix, deny                        bool
}

func (f *aclFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.users, "user", nil, "`USER`, or '*' for everybody (repeatable)")
	cmd.Flags().StringSliceVar(&f.operations, "op", nil, "`OPERATION` (repeatable)")
	cmd.Flags().StringSliceVar(&f.resources, "resource", nil, "`RESOURCE`: topic:NAME, group:NAME, transactional-id:NAME or cluster (repeatable)")
	cmd.Flags().StringSliceVar(&f.hosts, "host", nil, "address the user comes from, `HOST` (repeatable)")
	cmd.Flags().BoolVar(&f.prefix, "prefix", false, "the names of the resources are prefixes")
}

// principalText is a user as rules name it.
func principalText(user string) string {
	if strings.HasPrefix(user, "User:") {
		return user
	}
	return "User:" + user
}

// parseResource reads "topic:orders" or "cluster".
func parseResource(text string) (kmsg.ACLResourceType, string, error) {
	kind, name, named := strings.Cut(text, ":")
	t, err := kmsg.ParseACLResourceType(kind)
	cluster := t == kmsg.ACLResourceTypeCluster
	switch {
	case cluster && !named:
		return t, metadata.ClusterName, nil
	case err != nil || t < kmsg.ACLResourceTypeTopic || t > kmsg.ACLResourceTypeTransactionalId || !cluster && name == "":
		return 0, "", usagef("resource %q: want topic:NAME, group:NAME, transactional-id:NAME or cluster", text)
	}
	return t, name, nil
}

func parseOperation(text string) (kmsg.ACLOperation, error) {
	op, err := kmsg.ParseACLOperation(text)
	if err != nil || op <= kmsg.ACLOperationAny {
		return 0, usagef("operation %q: want read, write, create, delete, alter, describe, describe-configs, alter-configs, cluster-action, idempotent-write or all", text)
	}
	return op, nil
}

// rules are the rules that the flags describe.
func (f *aclFlags) rules() ([]metadata.ACL, error) {
	for _, one := range []struct {
		flag string
		list []string
	}{{"user", f.users}, {"op", f.operations}, {"resource", f.resources}} {
		if len(one.list) == 0 {
			return nil, usagef("missing --%s", one.flag)
		}
	}
	a := metadata.ACL{Pattern: f.pattern(), Permission: kmsg.ACLPermissionTypeAllow}
	if f.deny {
		a.Permission = kmsg.ACLPermissionTypeDeny
	}
	hosts := f.hosts
	if len(hosts) == 0 {
		hosts = []string{metadata.AnyHost}
	}
	var out []metadata.ACL
	var err error
	for _, r := range f.resources {
		if a.Resource, a.Name, err = parseResource(r); err != nil {
			return nil, err
		}
		for _, o := range f.operations {
			if a.Operation, err = parseOperation(o); err != nil {
				return nil, err
			}
			for _, u := range f.users {
				for _, a.Host = range hosts {
					a.Principal = principalText(u)
					if fault := a.Fault(); fault != "" {
						return nil, usagef("%s: %s", auth.RuleText(a), fault)
					}
					out = append(out, a)
				}
			}
		}
	}
	if len(out) > aclsMax {
		return nil, usagef("%d rules at once; at most %d: prefixes need fewer", len(out), aclsMax)
	}
	return out, nil
}

func (f *aclFlags) pattern() kmsg.ACLResourcePatternType {
	if f.prefix {
		return kmsg.ACLResourcePatternTypePrefixed
	}
	return kmsg.ACLResourcePatternTypeLiteral
}

// selects says whether the flags are about a rule. pattern MATCH: also by a prefix or a star that the resource meets.
func (f *aclFlags) selects(pattern kmsg.ACLResourcePatternType) (func(metadata.ACL) bool, error) {
	type named struct {
		kind kmsg.ACLResourceType
		name string
	}
	var resources []named
	var operations []kmsg.ACLOperation
	for _, r := range f.resources {
		kind, name, err := parseResource(r)
		if err != nil {
			return nil, err
		}
		resources = append(resources, named{kind, name})
	}
	for _, o := range f.operations {
		op, err := parseOperation(o)
		if err != nil {
			return nil, err
		}
		operations = append(operations, op)
	}
	return func(a metadata.ACL) bool {
		return (len(f.users) == 0 || slices.ContainsFunc(f.users, func(u string) bool { return principalText(u) == a.Principal })) &&
			(len(f.hosts) == 0 || slices.Contains(f.hosts, a.Host)) &&
			(len(operations) == 0 || slices.Contains(operations, a.Operation)) &&
			(len(resources) == 0 || slices.ContainsFunc(resources, func(r named) bool {
				filter := metadata.ACLFilter{
					Resource: r.kind, Name: &r.name, Pattern: pattern, Operation: kmsg.ACLOperationAny, Permission: kmsg.ACLPermissionTypeAny,
				}
				return filter.Selects(a)
			}))
	}, nil
}

// acls reads all rules of the cluster, in their order.
func (s *session) acls(ctx context.Context) ([]metadata.ACL, error) {
	req := kmsg.NewPtrDescribeACLsRequest()
	req.ResourceType, req.ResourcePatternType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny
	req.Operation, req.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	resp, err := req.RequestWith(ctx, s.client)
	if err == nil {
		err = answeredCode(resp.ErrorCode, resp.ErrorMessage)
	}
	if err != nil {
		return nil, err
	}
	var out []metadata.ACL
	for i := range resp.Resources {
		r := &resp.Resources[i]
		for _, one := range r.ACLs {
			out = append(out, metadata.ACL{
				Resource: r.ResourceType, Pattern: r.ResourcePatternType, Name: r.ResourceName,
				Principal: one.Principal, Host: one.Host, Operation: one.Operation, Permission: one.PermissionType,
			})
		}
	}
	slices.SortFunc(out, metadata.CompareACLs)
	return out, nil
}

// shownACL is one line of acl -o json.
type shownACL struct {
	User       string `json:"user"`
	Permission string `json:"permission"`
	Operation  string `json:"operation"`
	Resource   string `json:"resource"`
	Pattern    string `json:"pattern"`
	Host       string `json:"host"`
	Warning    string `json:"warning,omitempty"`
	Error      string `json:"error,omitempty"`
}

func showACL(a metadata.ACL) shownACL {
	lower := func(s fmt.Stringer) string { return strings.ReplaceAll(strings.ToLower(s.String()), "_", "-") }
	r := shownACL{
		User: strings.TrimPrefix(a.Principal, "User:"), Permission: lower(a.Permission), Operation: lower(a.Operation),
		Resource: lower(a.Resource), Pattern: lower(a.Pattern), Host: a.Host, Warning: auth.Idle(a),
	}
	if a.Resource != kmsg.ACLResourceTypeCluster {
		r.Resource += ":" + a.Name
	}
	return r
}

// printACLs prints rules, and warns about those that can match nothing.
func (a *app) printACLs(s *session, rules []shownACL) error {
	p := a.printer(s.settings)
	var rows [][]string
	for _, r := range rules {
		if p.json {
			if err := p.object(r); err != nil {
				return err
			}
			continue
		}
		if r.Warning != "" {
			fmt.Fprintf(a.stderr, "warning: the rule of %s on %s %s can match nothing: %s\n", r.User, r.Pattern, r.Resource, r.Warning)
		}
		if r.Error == "" {
			rows = append(rows, []string{r.User, r.Permission, r.Operation, r.Resource, r.Pattern, r.Host})
		}
	}
	if p.json {
		return nil
	}
	return p.table([]string{"USER", "PERMISSION", "OPERATION", "RESOURCE", "PATTERN", "HOST"}, rows)
}

// notDone is the failure of some of count rules.
func notDone(what string, faults []error, count int) error {
	switch {
	case len(faults) == 0:
		return nil
	case len(faults) == count:
		return failf(faults[0], "%s", what)
	}
	return failf(errors.Join(faults...), "%s: %d of %d", what, len(faults), count)
}
