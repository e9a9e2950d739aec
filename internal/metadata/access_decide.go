package metadata

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// aclOperations has what can be done with each type of resource; ALL is always among it.
var aclOperations = map[kmsg.ACLResourceType][]kmsg.ACLOperation{
	kmsg.ACLResourceTypeTopic: {
		kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationCreate, kmsg.ACLOperationDelete, kmsg.ACLOperationAlter,
		kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs,
	},
	kmsg.ACLResourceTypeGroup: {
		kmsg.ACLOperationRead, kmsg.ACLOperationDelete, kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs,
	},
	kmsg.ACLResourceTypeCluster: {
		kmsg.ACLOperationCreate, kmsg.ACLOperationAlter, kmsg.ACLOperationDescribe, kmsg.ACLOperationClusterAction,
		kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs, kmsg.ACLOperationIdempotentWrite,
	},
	kmsg.ACLResourceTypeTransactionalId: {kmsg.ACLOperationDescribe, kmsg.ACLOperationWrite},
}

// Fault says why an ACL cannot be one, or "".
func (a ACL) Fault() string {
	kind, name, hasName := strings.Cut(a.Principal, ":")
	operations := aclOperations[a.Resource]
	switch {
	case a.Pattern != kmsg.ACLResourcePatternTypeLiteral && a.Pattern != kmsg.ACLResourcePatternTypePrefixed:
		return fmt.Sprintf("the pattern type of an ACL is literal or prefixed, not %v", a.Pattern)
	case operations == nil:
		return fmt.Sprintf("an ACL is for a topic, a group, the cluster or a transactional id, not for %v", a.Resource)
	case a.Name == "" || len(a.Name) > aclTextMax:
		return fmt.Sprintf("the resource name has %d bytes; it needs 1 to %d", len(a.Name), aclTextMax)
	case a.Resource == kmsg.ACLResourceTypeCluster && a.Name != ClusterName:
		return fmt.Sprintf("the only resource of type cluster is %q", ClusterName)
	case !hasName || kind != "User" || name == "" || len(a.Principal) > aclTextMax:
		return fmt.Sprintf("the principal %.100q is not User:NAME", a.Principal)
	case a.Host == "" || len(a.Host) > aclTextMax:
		return "the host is an address, or * for all"
	case a.Operation != kmsg.ACLOperationAll && !slices.Contains(operations, a.Operation):
		return fmt.Sprintf("there is no operation %v on a resource of type %v", a.Operation, a.Resource)
	case a.Permission != kmsg.ACLPermissionTypeAllow && a.Permission != kmsg.ACLPermissionTypeDeny:
		return fmt.Sprintf("the permission of an ACL is allow or deny, not %v", a.Permission)
	}
	return ""
}

// ACLFilter selects ACLs; nil and ANY select all.
type ACLFilter struct {
	Resource   kmsg.ACLResourceType
	Name       *string
	Pattern    kmsg.ACLResourcePatternType // MATCH: every pattern that the name meets
	Principal  *string
	Host       *string
	Operation  kmsg.ACLOperation
	Permission kmsg.ACLPermissionType
}

// Fault says why a filter is none, or "".
func (f ACLFilter) Fault() string {
	unknown := f.Resource < kmsg.ACLResourceTypeAny || f.Resource > kmsg.ACLResourceTypeUser ||
		f.Pattern < kmsg.ACLResourcePatternTypeAny || f.Pattern > kmsg.ACLResourcePatternTypePrefixed ||
		f.Operation < kmsg.ACLOperationAny || f.Operation > kmsg.ACLOperationIdempotentWrite+3 || // two for tokens, one for two-phase commit
		f.Permission < kmsg.ACLPermissionTypeAny || f.Permission > kmsg.ACLPermissionTypeAllow
	if unknown {
		return "the filter has a resource type, pattern type, operation or permission that does not exist"
	}
	return ""
}

// Selects says whether the filter selects an ACL.
func (f ACLFilter) Selects(a ACL) bool {
	same := func(want *string, have string) bool { return want == nil || *want == have }
	return (f.Resource == kmsg.ACLResourceTypeAny || f.Resource == a.Resource) && f.selectsName(a) &&
		same(f.Principal, a.Principal) && same(f.Host, a.Host) &&
		(f.Operation == kmsg.ACLOperationAny || f.Operation == a.Operation) &&
		(f.Permission == kmsg.ACLPermissionTypeAny || f.Permission == a.Permission)
}

func (f ACLFilter) selectsName(a ACL) bool {
	switch {
	case f.Name == nil:
		return f.Pattern <= kmsg.ACLResourcePatternTypeMatch || f.Pattern == a.Pattern
	case f.Pattern == kmsg.ACLResourcePatternTypeMatch:
		return a.Covers(*f.Name)
	}
	return (f.Pattern == kmsg.ACLResourcePatternTypeAny || f.Pattern == a.Pattern) && *f.Name == a.Name
}

// Covers says whether the ACL is about the resource of its type that has the name.
func (a ACL) Covers(name string) bool {
	if a.Pattern == kmsg.ACLResourcePatternTypePrefixed {
		return strings.HasPrefix(name, a.Name)
	}
	return a.Name == name || a.Name == AnyName
}

// createACLs adds what is not there yet; the rest succeeds too.
func (d *decider) createACLs(ev CreateACLs) any {
	out := make([]ACLCreated, len(ev.ACLs))
	for i, a := range ev.ACLs {
		if fault := a.Fault(); fault != "" {
			out[i].Outcome = refused(kafka.InvalidRequest, "%s", fault)
			continue
		}
		if _, there := d.access.acls.get(a); there {
			continue
		}
		if d.ACLCount() >= ACLsMax {
			out[i].Outcome = refused(kafka.PolicyViolation, "there are %d ACLs, which is the limit; prefixed ACLs need fewer", ACLsMax)
			continue
		}
		d.write(ACLRecord{ACL: a})
	}
	return out
}

func (d *decider) deleteACLs(ev DeleteACLs) any {
	out := make([]ACLsDeleted, len(ev.Filters))
	for i, f := range ev.Filters {
		if fault := f.Fault(); fault != "" {
			out[i].Outcome = refused(kafka.InvalidRequest, "%s", fault)
			continue
		}
		for a := range d.ACLs() {
			if f.Selects(a) {
				out[i].ACLs = append(out[i].ACLs, a)
			}
		}
		for _, a := range out[i].ACLs {
			d.write(ACLRecord{ACL: a, Removed: true})
		}
	}
	return out
}

// alterScram sets and removes credentials, each on its own.
func (d *decider) alterScram(ev AlterScram) any {
	var out []ScramAltered
	for _, c := range ev.Remove {
		r := ScramAltered{User: c.User}
		if d.Scram(c.User, c.Mechanism) == nil {
			r.Outcome = refused(kafka.ResourceNotFound, "user %.100q has no credential for %v", c.User, c.Mechanism)
		} else {
			d.write(ScramRecord{Credential: ScramCredential{User: c.User, Mechanism: c.Mechanism}, Removed: true})
		}
		out = append(out, r)
	}
	for _, c := range ev.Set {
		r := ScramAltered{User: c.User, Outcome: d.scramFault(c)}
		if r.OK() && d.access.secret == nil && len(ev.Secret) < scramSecretMin {
			r.Outcome = refused(kafka.InvalidRequest, "the event carries no secret")
		}
		if r.OK() {
			if d.access.secret == nil {
				d.write(ScramSecretRecord{ev.Secret})
			}
			d.write(ScramRecord{Credential: c})
		}
		out = append(out, r)
	}
	return out
}

// scramFault judges a credential that is to be set.
func (d *decider) scramFault(c ScramCredential) Outcome {
	n := c.Mechanism.keyBytes()
	switch {
	case c.User == "" || len(c.User) > aclTextMax:
		return refused(kafka.UnacceptableCredential, "a user's name has 1 to %d bytes", aclTextMax)
	case n == 0:
		return refused(kafka.UnsupportedSASLMechanism, "SCRAM mechanism %d is unknown", c.Mechanism)
	case c.Iterations < ScramIterationsMin || c.Iterations > ScramIterationsMax:
		return refused(kafka.UnacceptableCredential, "%d iterations; %d to %d are accepted", c.Iterations, ScramIterationsMin, ScramIterationsMax)
	case len(c.Salt) == 0 || len(c.Salt) > aclTextMax || len(c.StoredKey) != n || len(c.ServerKey) != n:
		return refused(kafka.UnacceptableCredential, "salt or salted password have a wrong length")
	case d.Scram(c.User, c.Mechanism) == nil && d.access.scram.size >= ScramCredentialsMax:
		return refused(kafka.PolicyViolation, "there are %d credentials, which is the limit", ScramCredentialsMax)
	}
	return Outcome{}
}
