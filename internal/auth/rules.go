package auth

import (
	"fmt"
	"iter"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// Action is what somebody wants to do: an operation on a resource.
type Action struct {
	Operation kmsg.ACLOperation
	Resource  kmsg.ACLResourceType
	Name      string
}

// String returns "Write on Topic orders".
func (a Action) String() string {
	return fmt.Sprintf("%s on %s %s", word(a.Operation.String()), word(a.Resource.String()), a.Name)
}

// OnCluster is an action on the cluster.
func OnCluster(op kmsg.ACLOperation) Action {
	return Action{op, kmsg.ACLResourceTypeCluster, metadata.ClusterName}
}

// Verdict says whether an action is allowed, and why.
type Verdict struct {
	Allowed bool
	// Rule is the rule that decided; nil when none did.
	Rule *metadata.ACL
	// Why says in words what decided.
	Why string
}

// Rules are the ACLs of one Image, made ready for decisions. They are immutable.
type Rules struct {
	image   *metadata.Image // with these ACLs and nothing else; nil for those of CompileACLs
	options *Options
	exact   map[target][]metadata.ACL
	prefix  map[target][]metadata.ACL
	lengths map[kmsg.ACLResourceType][]int // of the prefixes, ascending
}

type target struct {
	resource kmsg.ACLResourceType
	name     string
}

// Options are what the configuration says about authorisation.
type Options struct {
	// Enforced says that ACLs decide; without it everybody may do everything.
	Enforced bool
	// Supers may do everything.
	Supers []kafka.Principal
	// AllowIfNone allows everybody what no ACL is about.
	AllowIfNone bool
}

// Compile makes the rules of an Image ready.
func Compile(img *metadata.Image, o *Options) *Rules {
	r := CompileACLs(img.ACLs(), o)
	r.image = img.OnlyACLs()
	return r
}

// CompileACLs makes rules ready that were read from a cluster.
func CompileACLs(acls iter.Seq[metadata.ACL], o *Options) *Rules {
	r := &Rules{options: o, exact: map[target][]metadata.ACL{}, prefix: map[target][]metadata.ACL{}, lengths: map[kmsg.ACLResourceType][]int{}}
	for a := range acls {
		at := target{a.Resource, a.Name}
		if a.Pattern != kmsg.ACLResourcePatternTypePrefixed {
			r.exact[at] = append(r.exact[at], a)
			continue
		}
		r.prefix[at] = append(r.prefix[at], a)
		if n, there := slices.BinarySearch(r.lengths[a.Resource], len(a.Name)); !there {
			r.lengths[a.Resource] = slices.Insert(r.lengths[a.Resource], n, len(a.Name))
		}
	}
	return r
}

// covering calls yield with the ACLs about a resource, group by group, until it returns false.
func (r *Rules) covering(resource kmsg.ACLResourceType, name string, yield func([]metadata.ACL) bool) {
	if !yield(r.exact[target{resource, name}]) || !yield(r.exact[target{resource, metadata.AnyName}]) {
		return
	}
	for _, n := range r.lengths[resource] {
		if n > len(name) || !yield(r.prefix[target{resource, name[:n]}]) {
			return
		}
	}
}

// Decide judges an action by Kafka's rules: a super user may do everything; else a deny that fits wins over every allow; without any ACL about
// the resource AllowIfNone decides; else what no rule allows is denied.
func (r *Rules) Decide(who kafka.Principal, host string, act Action) Verdict {
	switch {
	case !r.options.Enforced:
		return Verdict{Allowed: true, Why: "no listener authenticates its clients, so everybody may do everything"}
	case slices.Contains(r.options.Supers, who):
		return Verdict{Allowed: true, Why: who.String() + " is a super user"}
	}
	name, any := who.String(), false
	var deny, allow *metadata.ACL
	r.covering(act.Resource, act.Name, func(acls []metadata.ACL) bool {
		for i := range acls {
			a := &acls[i]
			any = true
			switch {
			case !concerns(a, name, host):
			case a.Permission == kmsg.ACLPermissionTypeDeny && (a.Operation == act.Operation || a.Operation == kmsg.ACLOperationAll):
				deny = a
				return false
			case a.Permission == kmsg.ACLPermissionTypeAllow && allow == nil && implies(a.Operation, act.Operation):
				allow = a
			}
		}
		return true
	})
	switch {
	case deny != nil:
		return Verdict{Rule: deny, Why: "denied by " + RuleText(*deny)}
	case allow != nil:
		return Verdict{Allowed: true, Rule: allow, Why: "allowed by " + RuleText(*allow)}
	case !any && r.options.AllowIfNone:
		return Verdict{Allowed: true, Why: "no ACL is about it, and auth.allow.if.no.acl is set"}
	}
	return Verdict{Why: fmt.Sprintf("no ACL allows %s from host %s %v", name, host, act)}
}

// DecideAny says whether an operation is allowed on at least one resource of a type: what Kafka asks before it hands out producer ids.
func (r *Rules) DecideAny(who kafka.Principal, host string, op kmsg.ACLOperation, resource kmsg.ACLResourceType) bool {
	if !r.options.Enforced || slices.Contains(r.options.Supers, who) {
		return true
	}
	if denies(r.Decide(who, host, Action{op, resource, metadata.AnyName})) {
		return false
	}
	for _, group := range []map[target][]metadata.ACL{r.exact, r.prefix} {
		for at, acls := range group {
			if at.resource != resource {
				continue
			}
			for i := range acls {
				a := &acls[i]
				allows := a.Permission == kmsg.ACLPermissionTypeAllow && concerns(a, who.String(), host) && implies(a.Operation, op)
				if allows && !denies(r.Decide(who, host, Action{op, resource, a.Name})) {
					return true
				}
			}
		}
	}
	return r.options.AllowIfNone
}

func denies(v Verdict) bool { return !v.Allowed && v.Rule != nil }

// concerns says whether a rule is about a principal and a host.
func concerns(a *metadata.ACL, who, host string) bool {
	return (a.Principal == who || a.Principal == metadata.AnyPrincipal) && (a.Host == host || a.Host == metadata.AnyHost)
}

// implies says whether the right to do have is one to do want.
func implies(have, want kmsg.ACLOperation) bool {
	switch {
	case have == want || have == kmsg.ACLOperationAll:
		return true
	case want == kmsg.ACLOperationDescribe:
		return have == kmsg.ACLOperationRead || have == kmsg.ACLOperationWrite || have == kmsg.ACLOperationDelete || have == kmsg.ACLOperationAlter
	case want == kmsg.ACLOperationDescribeConfigs:
		return have == kmsg.ACLOperationAlterConfigs
	}
	return false
}
