package metadata

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// decided applies the decision on an event and returns its reply.
func decided[R any](t *testing.T, i **Image, ev Event) R {
	t.Helper()
	d := (*i).Decide(ev)
	next, err := (*i).Apply((*i).Version()+1, d.Records)
	if err != nil {
		t.Fatal(err)
	}
	*i = next
	return d.Reply.(R)
}

// What is no ACL is refused, the others of the request are created (K55).
func TestK55_ACLsThatAreNone(t *testing.T) {
	i := Empty()
	for _, c := range []struct {
		name   string
		change func(*ACL)
		ok     bool
	}{
		{"as it is", func(*ACL) {}, true},
		{"literal", func(a *ACL) { a.Pattern = kmsg.ACLResourcePatternTypeLiteral }, true},
		{"pattern any", func(a *ACL) { a.Pattern = kmsg.ACLResourcePatternTypeAny }, false},
		{"pattern match", func(a *ACL) { a.Pattern = kmsg.ACLResourcePatternTypeMatch }, false},
		{"pattern 99", func(a *ACL) { a.Pattern = 99 }, false},
		{"resource any", func(a *ACL) { a.Resource = kmsg.ACLResourceTypeAny }, false},
		{"resource 99", func(a *ACL) { a.Resource = 99 }, false},
		{"operation unknown", func(a *ACL) { a.Operation = kmsg.ACLOperationUnknown }, false},
		{"operation any", func(a *ACL) { a.Operation = kmsg.ACLOperationAny }, false},
		{"operation all", func(a *ACL) { a.Operation = kmsg.ACLOperationAll }, true},
		{"an operation of the cluster", func(a *ACL) { a.Operation = kmsg.ACLOperationClusterAction }, false},
		{"permission any", func(a *ACL) { a.Permission = kmsg.ACLPermissionTypeAny }, false},
		{"no name", func(a *ACL) { a.Name = "" }, false},
		{"a long name", func(a *ACL) { a.Name = strings.Repeat("x", aclTextMax+1) }, false},
		{"no principal", func(a *ACL) { a.Principal = "" }, false},
		{"a principal without a type", func(a *ACL) { a.Principal = "alice" }, false},
		{"a node", func(a *ACL) { a.Principal = "Node:1" }, false},
		{"no host", func(a *ACL) { a.Host = "" }, false},
		{"another cluster", func(a *ACL) { a.Resource, a.Name, a.Operation = kmsg.ACLResourceTypeCluster, "x", kmsg.ACLOperationAll }, false},
		{"the cluster", func(a *ACL) {
			a.Resource, a.Name, a.Operation = kmsg.ACLResourceTypeCluster, ClusterName, kmsg.ACLOperationAlter
		}, true},
	} {
		a := testACL()
		c.change(&a)
		before := i.ACLCount()
		r := decided[[]ACLCreated](t, &i, CreateACLs{ACLs: []ACL{a}})[0]
		if r.OK() != c.ok || !c.ok && r.Code != kafka.InvalidRequest || !c.ok && i.ACLCount() != before {
			t.Errorf("%s: %v %s, %d ACLs", c.name, r.Code, r.Message, i.ACLCount())
		}
	}
	again := i.Decide(CreateACLs{ACLs: []ACL{testACL()}})
	if len(again.Records) != 0 || !again.Reply.([]ACLCreated)[0].OK() {
		t.Errorf("an ACL that is there already: %+v", again)
	}
}

// A filter selects by every field; MATCH finds each pattern that a name meets.
func TestACLFilter_Selects(t *testing.T) {
	i := Empty()
	acl := func(pattern kmsg.ACLResourcePatternType, name, who string) ACL {
		a := testACL()
		a.Pattern, a.Name, a.Principal = pattern, name, who
		return a
	}
	const literal, prefixed, match, anyPattern = kmsg.ACLResourcePatternTypeLiteral, kmsg.ACLResourcePatternTypePrefixed, kmsg.ACLResourcePatternTypeMatch, kmsg.ACLResourcePatternTypeAny
	all := []ACL{acl(literal, "orders", "User:a"), acl(literal, AnyName, "User:b"), acl(prefixed, "ord", "User:c"), acl(prefixed, "x", "User:d"), acl(literal, "ord", "User:e")}
	decided[[]ACLCreated](t, &i, CreateACLs{ACLs: all})
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		name    *string
		pattern kmsg.ACLResourcePatternType
		who     *string
		want    string
	}{
		{nil, anyPattern, nil, "a b c d e"},
		{nil, prefixed, nil, "c d"},
		{text("orders"), match, nil, "a b c"},
		{text("orders"), literal, nil, "a"},
		{text("ord"), anyPattern, nil, "c e"},
		{text("ord"), prefixed, nil, "c"},
		{nil, anyPattern, text("User:b"), "b"},
		{text("none"), literal, nil, ""},
	} {
		f := ACLFilter{Resource: kmsg.ACLResourceTypeAny, Name: c.name, Pattern: c.pattern, Principal: c.who, Operation: kmsg.ACLOperationAny, Permission: kmsg.ACLPermissionTypeAny}
		copied := i
		r := decided[[]ACLsDeleted](t, &copied, DeleteACLs{Filters: []ACLFilter{f}})[0]
		var got []string
		for _, a := range r.ACLs {
			got = append(got, strings.TrimPrefix(a.Principal, "User:"))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want || copied.ACLCount() != len(all)-len(got) {
			t.Errorf("%+v selects %v, want %s", f, got, c.want)
		}
		if len(got) > 0 == copied.SameACLs(i) {
			t.Errorf("%+v: SameACLs is %v", f, copied.SameACLs(i))
		}
	}
	if r := decided[[]ACLsDeleted](t, &i, DeleteACLs{Filters: []ACLFilter{{}}})[0]; r.Code != kafka.InvalidRequest {
		t.Errorf("a filter of unknowns: %v", r.Code)
	}
	other, err := i.Apply(i.Version()+1, []Record{ProducerIDsRecord{Next: 5}})
	if err != nil || !other.SameACLs(i) {
		t.Errorf("another change changes the ACLs: %v", err)
	}
}

// What is no credential is refused (K56), the secret is written once, and removing what is not there says so.
func TestK56_CredentialsThatAreNone(t *testing.T) {
	i := Empty()
	secret := bytes.Repeat([]byte{1}, scramSecretMin)
	for _, c := range []struct {
		name   string
		change func(*ScramCredential)
		want   kafka.ErrorCode
	}{
		{"as it is", func(*ScramCredential) {}, kafka.None},
		{"no iterations", func(c *ScramCredential) { c.Iterations = 0 }, kafka.UnacceptableCredential},
		{"4095 iterations", func(c *ScramCredential) { c.Iterations = 4095 }, kafka.UnacceptableCredential},
		{"10^9 iterations", func(c *ScramCredential) { c.Iterations = 1e9 }, kafka.UnacceptableCredential},
		{"16384 iterations", func(c *ScramCredential) { c.Iterations = 16384 }, kafka.None},
		{"no user", func(c *ScramCredential) { c.User = "" }, kafka.UnacceptableCredential},
		{"a long user", func(c *ScramCredential) { c.User = strings.Repeat("u", 1<<20) }, kafka.UnacceptableCredential},
		{"mechanism 3", func(c *ScramCredential) { c.Mechanism = 3 }, kafka.UnsupportedSASLMechanism},
		{"keys of the other mechanism", func(c *ScramCredential) { c.Mechanism = ScramSHA512 }, kafka.UnacceptableCredential},
		{"no salt", func(c *ScramCredential) { c.Salt = nil }, kafka.UnacceptableCredential},
	} {
		s := testScram()
		c.change(&s)
		if r := decided[[]ScramAltered](t, &i, AlterScram{Set: []ScramCredential{s}, Secret: secret})[0]; r.Code != c.want {
			t.Errorf("%s: %v %s", c.name, r.Code, r.Message)
		}
	}
	decided[[]ScramAltered](t, &i, AlterScram{Set: []ScramCredential{testScram()}, Secret: bytes.Repeat([]byte{2}, scramSecretMin)})
	if !bytes.Equal(i.ScramSecret(), secret) {
		t.Error("the secret changed: users who did not exist would show")
	}
	name := ScramName{"alice", ScramSHA256}
	got := decided[[]ScramAltered](t, &i, AlterScram{Remove: []ScramName{name, name}})
	if !got[0].OK() || got[1].Code != kafka.ResourceNotFound || i.Scram("alice", ScramSHA256) != nil {
		t.Errorf("removing twice: %+v", got)
	}
}
