package rest

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// rule is a rule of access.
type rule struct {
	User       string `json:"user" minLength:"1" maxLength:"249" doc:"the name, or * for everybody; another principal than a user with its type"`
	Permission string `json:"permission,omitempty" enum:"allow,deny" default:"allow"`
	Operation  string `json:"operation" enum:"all,read,write,create,delete,alter,describe,cluster-action,describe-configs,alter-configs,idempotent-write"`
	Resource   string `json:"resource" minLength:"1" maxLength:"280" doc:"topic:NAME, group:NAME, transactional-id:NAME or cluster; the name * stands for all"`
	Pattern    string `json:"pattern,omitempty" enum:"literal,prefixed" default:"literal" doc:"prefixed: NAME is a prefix"`
	Host       string `json:"host,omitempty" maxLength:"249" default:"*" doc:"address the user comes from; * for every one"`
	Warning    string `json:"warning,omitempty" readOnly:"true" doc:"why the rule can match nothing"`
}

// ruleFilter selects rules by what they say.
type ruleFilter struct {
	User       string `query:"user" maxLength:"249"`
	Operation  string `query:"operation" maxLength:"40"`
	Resource   string `query:"resource" maxLength:"280" doc:"the rules on exactly that name"`
	Pattern    string `query:"pattern" enum:"literal,prefixed"`
	Permission string `query:"permission" enum:"allow,deny"`
	Host       string `query:"host" maxLength:"249"`
}

type ruleQuestion struct {
	User      string `query:"user" required:"true" minLength:"1" maxLength:"249"`
	Operation string `query:"operation" required:"true" minLength:"1" maxLength:"40"`
	Resource  string `query:"resource" required:"true" minLength:"1" maxLength:"280"`
	Host      string `query:"host" maxLength:"249" doc:"without it, for a host that no rule names"`
}

type createRule struct{ Body rule }

type createdRule struct{ Body rule }

type listedRules struct {
	Body struct {
		ACLs []rule `json:"acls"`
	}
}

type deletedRules struct {
	Body struct {
		Deleted []rule `json:"deleted"`
	}
}

type explainedRule struct {
	Body struct {
		Allowed bool   `json:"allowed"`
		Why     string `json:"why" doc:"what decides, or what is missing"`
		Rule    *rule  `json:"rule,omitempty" doc:"the rule that decides; absent: none does"`
	}
}

// describeACLs registers the routes of rules of access.
func (d *door) describeACLs(api huma.API) {
	tags := []string{"access"}
	huma.Register(api, huma.Operation{
		OperationID: "createACL", Method: http.MethodPost, Path: "/v1/acls", Tags: tags, DefaultStatus: http.StatusCreated,
		Summary: "Create a rule of access; one that is there already stays",
	}, d.createACL)
	huma.Register(api, huma.Operation{
		OperationID: "listACLs", Method: http.MethodGet, Path: "/v1/acls", Tags: tags, Summary: "List rules of access, all or those that the parameters select",
	}, d.listACLs)
	huma.Register(api, huma.Operation{
		OperationID: "deleteACLs", Method: http.MethodDelete, Path: "/v1/acls", Tags: tags,
		Summary: "Delete the rules that the parameters select; without any parameter nothing is deleted",
	}, d.deleteACLs)
	huma.Register(api, huma.Operation{
		OperationID: "explainACL", Method: http.MethodGet, Path: "/v1/acls/explain", Tags: tags,
		Summary: "Say whether somebody may do something, and which rule decides, by the rules that this node knows",
	}, d.explainACL)
}

// principalText is a user as rules name it.
func principalText(user string) string {
	if strings.HasPrefix(user, "User:") {
		return user
	}
	return "User:" + user
}

// resourceOf reads topic:NAME or cluster.
func resourceOf(at, text string) (kmsg.ACLResourceType, string, error) {
	kind, name, named := strings.Cut(text, ":")
	t, err := kmsg.ParseACLResourceType(kind)
	cluster := t == kmsg.ACLResourceTypeCluster
	switch {
	case err == nil && cluster && !named:
		return t, metadata.ClusterName, nil
	case err != nil || cluster || t < kmsg.ACLResourceTypeTopic || t > kmsg.ACLResourceTypeTransactionalId || name == "":
		return 0, "", invalid(at, "want topic:NAME, group:NAME, transactional-id:NAME or cluster")
	}
	return t, name, nil
}

func operationOf(at, text string) (kmsg.ACLOperation, error) {
	op, err := kmsg.ParseACLOperation(text)
	if err != nil || op <= kmsg.ACLOperationAny {
		return 0, invalid(at, "want all, read, write, create, delete, alter, describe, describe-configs, alter-configs, cluster-action or idempotent-write")
	}
	return op, nil
}

// acl is the rule as the cluster keeps it.
func (r *rule) acl(at string) (a metadata.ACL, err error) {
	if a.Resource, a.Name, err = resourceOf(at+"resource", r.Resource); err != nil {
		return a, err
	}
	if a.Operation, err = operationOf(at+"operation", r.Operation); err != nil {
		return a, err
	}
	a.Pattern, a.Permission, a.Host, a.Principal = kmsg.ACLResourcePatternTypeLiteral, kmsg.ACLPermissionTypeAllow, r.Host, principalText(r.User)
	if r.Pattern == "prefixed" {
		a.Pattern = kmsg.ACLResourcePatternTypePrefixed
	}
	if r.Permission == "deny" {
		a.Permission = kmsg.ACLPermissionTypeDeny
	}
	if a.Host == "" {
		a.Host = metadata.AnyHost
	}
	return a, nil
}

// ruleOf shows a rule.
func ruleOf(a metadata.ACL) rule {
	lower := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "-") }
	r := rule{
		User: strings.TrimPrefix(a.Principal, "User:"), Permission: lower(a.Permission.String()), Operation: lower(a.Operation.String()),
		Resource: lower(a.Resource.String()), Pattern: lower(a.Pattern.String()), Host: a.Host, Warning: auth.Idle(a),
	}
	if a.Resource != kmsg.ACLResourceTypeCluster {
		r.Resource += ":" + a.Name
	}
	return r
}

func (d *door) createACL(ctx context.Context, in *createRule) (*createdRule, error) {
	a, err := in.Body.acl("body.")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	req := kmsg.NewPtrCreateACLsRequest()
	c := kmsg.NewCreateACLsRequestCreation()
	c.ResourceType, c.ResourcePatternType, c.ResourceName = a.Resource, a.Pattern, a.Name
	c.Principal, c.Host, c.Operation, c.PermissionType = a.Principal, a.Host, a.Operation, a.Permission
	req.Creations = append(req.Creations, c)
	resp, err := askHere[*kmsg.CreateACLsResponse](ctx, d, req)
	if err != nil {
		return nil, err
	}
	if len(resp.Results) != 1 {
		return nil, failed(kafka.UnknownServerError, nil)
	}
	if r := &resp.Results[0]; r.ErrorCode != 0 {
		return nil, failed(kafka.ErrorCode(r.ErrorCode), r.ErrorMessage)
	}
	return &createdRule{ruleOf(a)}, nil
}

// aclFilter is the filter as the protocol has it.
func (f *ruleFilter) aclFilter() (out kmsg.DeleteACLsRequestFilter, err error) {
	out = kmsg.NewDeleteACLsRequestFilter()
	out.ResourceType, out.ResourcePatternType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny
	out.Operation, out.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	if f.User != "" {
		out.Principal = kmsg.StringPtr(principalText(f.User))
	}
	if f.Host != "" {
		out.Host = kmsg.StringPtr(f.Host)
	}
	if f.Resource != "" {
		var name string
		if out.ResourceType, name, err = resourceOf("query.resource", f.Resource); err != nil {
			return out, err
		}
		out.ResourceName = &name
	}
	if f.Operation != "" {
		if out.Operation, err = operationOf("query.operation", f.Operation); err != nil {
			return out, err
		}
	}
	switch f.Pattern {
	case "literal":
		out.ResourcePatternType = kmsg.ACLResourcePatternTypeLiteral
	case "prefixed":
		out.ResourcePatternType = kmsg.ACLResourcePatternTypePrefixed
	}
	switch f.Permission {
	case "allow":
		out.PermissionType = kmsg.ACLPermissionTypeAllow
	case "deny":
		out.PermissionType = kmsg.ACLPermissionTypeDeny
	}
	return out, nil
}

func (d *door) listACLs(ctx context.Context, in *ruleFilter) (*listedRules, error) {
	f, err := in.aclFilter()
	if err != nil {
		return nil, err
	}
	all, err := d.acls(ctx, f)
	if err != nil {
		return nil, err
	}
	out := &listedRules{}
	out.Body.ACLs = []rule{}
	for _, a := range all {
		out.Body.ACLs = append(out.Body.ACLs, ruleOf(a))
	}
	return out, nil
}

// acls reads the rules that a filter selects, in their order.
func (d *door) acls(ctx context.Context, f kmsg.DeleteACLsRequestFilter) ([]metadata.ACL, error) {
	req := kmsg.NewPtrDescribeACLsRequest()
	req.ResourceType, req.ResourceName, req.ResourcePatternType = f.ResourceType, f.ResourceName, f.ResourcePatternType
	req.Principal, req.Host, req.Operation, req.PermissionType = f.Principal, f.Host, f.Operation, f.PermissionType
	resp, err := askHere[*kmsg.DescribeACLsResponse](ctx, d, req)
	if err != nil {
		return nil, err
	}
	if resp.ErrorCode != 0 {
		return nil, failed(kafka.ErrorCode(resp.ErrorCode), resp.ErrorMessage)
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

func (d *door) deleteACLs(ctx context.Context, in *ruleFilter) (*deletedRules, error) {
	if *in == (ruleFilter{}) {
		return nil, invalid("query", "selects nothing: give user, operation, resource, pattern, permission or host")
	}
	f, err := in.aclFilter()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	req := kmsg.NewPtrDeleteACLsRequest()
	req.Filters = append(req.Filters, f)
	resp, err := askHere[*kmsg.DeleteACLsResponse](ctx, d, req)
	if err != nil {
		return nil, err
	}
	if len(resp.Results) != 1 {
		return nil, failed(kafka.UnknownServerError, nil)
	}
	r := &resp.Results[0]
	if r.ErrorCode != 0 {
		return nil, failed(kafka.ErrorCode(r.ErrorCode), r.ErrorMessage)
	}
	out := &deletedRules{}
	out.Body.Deleted = []rule{}
	for _, m := range r.MatchingACLs {
		out.Body.Deleted = append(out.Body.Deleted, ruleOf(metadata.ACL{
			Resource: m.ResourceType, Pattern: m.ResourcePatternType, Name: m.ResourceName,
			Principal: m.Principal, Host: m.Host, Operation: m.Operation, Permission: m.PermissionType,
		}))
	}
	return out, nil
}

// explainACL shows what rules decide to those who may read the rules.
func (d *door) explainACL(ctx context.Context, in *ruleQuestion) (*explainedRule, error) {
	asked, err := (&rule{User: in.User, Operation: in.Operation, Resource: in.Resource, Host: in.Host}).acl("query.")
	if err != nil {
		return nil, err
	}
	if _, err := d.acls(ctx, kmsg.DeleteACLsRequestFilter{
		ResourceType: kmsg.ACLResourceTypeAny, ResourcePatternType: kmsg.ACLResourcePatternTypeAny, Operation: kmsg.ACLOperationAny, PermissionType: kmsg.ACLPermissionTypeAny,
	}); err != nil {
		return nil, err
	}
	v := d.cfg.Access.Rules().Decide(kafka.Principal{Type: "User", Name: strings.TrimPrefix(asked.Principal, "User:")}, asked.Host,
		auth.Action{Operation: asked.Operation, Resource: asked.Resource, Name: asked.Name})
	out := &explainedRule{}
	out.Body.Allowed, out.Body.Why = v.Allowed, v.Why
	if v.Rule != nil {
		r := ruleOf(*v.Rule)
		out.Body.Rule = &r
	}
	return out, nil
}
