package auth

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

var alice = kafka.Principal{Type: "User", Name: "alice"}

const (
	topicType         = kmsg.ACLResourceTypeTopic
	literal, prefixed = kmsg.ACLResourcePatternTypeLiteral, kmsg.ACLResourcePatternTypePrefixed
	allow, deny       = kmsg.ACLPermissionTypeAllow, kmsg.ACLPermissionTypeDeny
	read, write, desc = kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribe
)

// imageWith is an Image with ACLs.
func imageWith(t interface{ Fatal(...any) }, acls ...metadata.ACL) *metadata.Image {
	d := metadata.Empty().Decide(metadata.CreateACLs{ACLs: acls})
	for _, r := range d.Reply.([]metadata.ACLCreated) {
		if !r.OK() {
			t.Fatal(r.Message)
		}
	}
	img, err := metadata.Empty().Apply(1, d.Records)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// onTopic is an ACL of "User:NAME" or "User:NAME@HOST".
func onTopic(name string, pattern kmsg.ACLResourcePatternType, from string, op kmsg.ACLOperation, p kmsg.ACLPermissionType) metadata.ACL {
	who, host, given := strings.Cut(from, "@")
	if !given {
		host = "*"
	}
	return metadata.ACL{Resource: topicType, Pattern: pattern, Name: name, Principal: who, Host: host, Operation: op, Permission: p}
}

// The rules of Kafka's ACLs, one at a time (R149).
func TestR149_Decide(t *testing.T) {
	all := kmsg.ACLOperationAll
	for name, c := range map[string]struct {
		acls    []metadata.ACL
		op      kmsg.ACLOperation
		options Options
		want    bool
	}{
		"nothing":                   {nil, read, Options{}, false},
		"allow if none":             {nil, read, Options{AllowIfNone: true}, true},
		"none for me":               {[]metadata.ACL{onTopic("orders", literal, "User:bob", read, allow)}, read, Options{AllowIfNone: true}, false},
		"a super user":              {nil, read, Options{Supers: []kafka.Principal{alice}}, true},
		"a denied super user":       {[]metadata.ACL{onTopic("orders", literal, "User:alice", all, deny)}, read, Options{Supers: []kafka.Principal{alice}}, true},
		"literal":                   {[]metadata.ACL{onTopic("orders", literal, "User:alice", read, allow)}, read, Options{}, true},
		"another operation":         {[]metadata.ACL{onTopic("orders", literal, "User:alice", read, allow)}, write, Options{}, false},
		"another topic":             {[]metadata.ACL{onTopic("order", literal, "User:alice", read, allow)}, read, Options{}, false},
		"all operations":            {[]metadata.ACL{onTopic("orders", literal, "User:alice", all, allow)}, write, Options{}, true},
		"prefixed":                  {[]metadata.ACL{onTopic("ord", prefixed, "User:alice", read, allow)}, read, Options{}, true},
		"the whole name as prefix":  {[]metadata.ACL{onTopic("orders", prefixed, "User:alice", read, allow)}, read, Options{}, true},
		"longer than the name":      {[]metadata.ACL{onTopic("orders2", prefixed, "User:alice", read, allow)}, read, Options{}, false},
		"wildcard":                  {[]metadata.ACL{onTopic("*", literal, "User:alice", read, allow)}, read, Options{}, true},
		"a star as prefix":          {[]metadata.ACL{onTopic("*", prefixed, "User:alice", read, allow)}, read, Options{}, false},
		"everybody":                 {[]metadata.ACL{onTopic("orders", literal, "User:*", read, allow)}, read, Options{}, true},
		"this host":                 {[]metadata.ACL{onTopic("orders", literal, "User:alice@10.0.0.1", read, allow)}, read, Options{}, true},
		"another host":              {[]metadata.ACL{onTopic("orders", literal, "User:alice@10.0.0.2", read, allow)}, read, Options{}, false},
		"read implies describe":     {[]metadata.ACL{onTopic("orders", literal, "User:alice", read, allow)}, desc, Options{}, true},
		"create does not":           {[]metadata.ACL{onTopic("orders", literal, "User:alice", kmsg.ACLOperationCreate, allow)}, desc, Options{}, false},
		"describe is not read":      {[]metadata.ACL{onTopic("orders", literal, "User:alice", desc, allow)}, read, Options{}, false},
		"denied read, not describe": {[]metadata.ACL{onTopic("orders", literal, "User:alice", read, deny), onTopic("orders", literal, "User:alice", write, allow)}, desc, Options{}, true},
		"deny beats allow": {[]metadata.ACL{onTopic("orders", literal, "User:alice", all, allow), onTopic("*", literal, "User:*", read, deny)},
			read, Options{}, false},
		"a prefixed deny beats a literal allow": {[]metadata.ACL{onTopic("orders", literal, "User:alice", read, allow), onTopic("or", prefixed, "User:alice", all, deny)},
			read, Options{}, false},
		"a deny of another host": {[]metadata.ACL{onTopic("orders", literal, "User:alice", read, allow), onTopic("orders", literal, "User:alice@10.0.0.2", read, deny)},
			read, Options{}, true},
	} {
		c.options.Enforced = true
		v := Compile(imageWith(t, c.acls...), &c.options).Decide(alice, "10.0.0.1", Action{c.op, topicType, "orders"})
		if v.Allowed != c.want || v.Why == "" {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if v := Compile(metadata.Empty(), &Options{}).Decide(kafka.Anonymous, "", OnCluster(kmsg.ACLOperationAlter)); !v.Allowed {
		t.Errorf("without authentication: %+v", v)
	}
}

// bruteForce is Kafka's rule, without an index.
func bruteForce(acls []metadata.ACL, who kafka.Principal, host string, act Action) bool {
	allowed := false
	for _, a := range acls {
		if a.Resource != act.Resource || !a.Covers(act.Name) || (a.Principal != who.String() && a.Principal != "User:*") || (a.Host != host && a.Host != "*") {
			continue
		}
		switch {
		case a.Permission == deny && (a.Operation == act.Operation || a.Operation == kmsg.ACLOperationAll):
			return false
		case a.Permission == allow:
			allowed = allowed || implies(a.Operation, act.Operation)
		}
	}
	return allowed
}

// Whatever the ACLs are, the indexed decision is the one that reads them all; so is the one that is remembered, while the ACLs change and
// come back from a snapshot (security test 7).
func TestR149_DecideAgainstBruteForce(t *testing.T) {
	names := []string{"a", "ab", "abc", "b", "*", "abcd"}
	rapid.Check(t, func(t *rapid.T) {
		img := metadata.Empty()
		z := NewAuthorizer(func() *metadata.Image { return img }, Options{Enforced: true})
		g := z.Grants(alice, "h1")
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			one := onTopic(rapid.SampledFrom(names).Draw(t, "name"), rapid.SampledFrom([]kmsg.ACLResourcePatternType{literal, prefixed}).Draw(t, "pattern"),
				rapid.SampledFrom([]string{"User:alice", "User:bob", "User:*"}).Draw(t, "who")+"@"+rapid.SampledFrom([]string{"h1", "h2", "*"}).Draw(t, "host"),
				rapid.SampledFrom([]kmsg.ACLOperation{read, write, desc, kmsg.ACLOperationAll, kmsg.ACLOperationAlterConfigs}).Draw(t, "op"),
				rapid.SampledFrom([]kmsg.ACLPermissionType{allow, deny}).Draw(t, "permission"))
			d := img.Decide(metadata.CreateACLs{ACLs: []metadata.ACL{one}})
			if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
				d = img.Decide(metadata.DeleteACLs{Filters: []metadata.ACLFilter{{Resource: 1, Pattern: 1, Name: &one.Name, Operation: 1, Permission: 1}}})
			}
			next, err := img.Apply(uint64(step+1), d.Records)
			if err != nil {
				t.Fatal(err)
			}
			if img = next; rapid.IntRange(0, 3).Draw(t, "reload") == 0 { // as after a restart, from a snapshot
				if img, err = metadata.DecodeImage(metadata.EncodeImage(nil, img)); err != nil {
					t.Fatal(err)
				}
			}
			acls := slices.Collect(img.ACLs())
			for _, name := range names {
				for _, op := range []kmsg.ACLOperation{read, write, desc, kmsg.ACLOperationDescribeConfigs} {
					act := Action{op, topicType, name}
					if want := bruteForce(acls, alice, "h1", act); g.May(act) != want || z.Rules().Decide(alice, "h1", act).Allowed != want {
						t.Fatalf("%v: want %v, remembered %v, %+v\n%+v", act, want, g.May(act), g.Explain(act), acls)
					}
				}
			}
		}
	})
}

// Who may write to some topic may produce idempotently, unless a deny covers all of what allows it.
// Rules outlive the Image they were made of by any time, and must not keep its topics in memory.
func TestAuthorizer_KeepsNoImage(t *testing.T) {
	img := imageWith(t, onTopic("a", literal, "User:alice@*", read, allow))
	z := NewAuthorizer(func() *metadata.Image { return img }, Options{Enforced: true})
	g, act := z.Grants(alice, "h1"), Action{read, topicType, "a"}
	rules, old := z.Rules(), weak.Make(img)
	if !g.May(act) {
		t.Error("what the ACL allows is denied")
	}
	next, err := img.Apply(img.Version()+1, []metadata.Record{metadata.ProducerIDsRecord{Next: 5}})
	if err != nil {
		t.Fatal(err)
	}
	img, next = next, nil
	runtime.GC()
	if old.Value() != nil {
		t.Error("the Image that the rules came from is kept")
	}
	if z.Rules() != rules || !g.May(act) {
		t.Error("the same ACLs are compiled again")
	}
}

func TestDecideAny(t *testing.T) {
	for name, c := range map[string]struct {
		acls []metadata.ACL
		want bool
	}{
		"nothing":          {nil, false},
		"literal":          {[]metadata.ACL{onTopic("x", literal, "User:alice", write, allow)}, true},
		"prefixed":         {[]metadata.ACL{onTopic("x", prefixed, "User:alice", write, allow)}, true},
		"of another":       {[]metadata.ACL{onTopic("x", literal, "User:bob", write, allow)}, false},
		"denied there":     {[]metadata.ACL{onTopic("x", literal, "User:alice", write, allow), onTopic("x", literal, "User:*", write, deny)}, false},
		"denied for all":   {[]metadata.ACL{onTopic("x", literal, "User:alice", write, allow), onTopic("*", literal, "User:alice", write, deny)}, false},
		"denied elsewhere": {[]metadata.ACL{onTopic("x", literal, "User:alice", write, allow), onTopic("y", literal, "User:alice", write, deny)}, true},
	} {
		if got := Compile(imageWith(t, c.acls...), &Options{Enforced: true}).DecideAny(alice, "h", write, topicType); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// An ACL that looks as if it matched much and matches nothing is named.
func TestIdle(t *testing.T) {
	for name, c := range map[string]struct {
		acl  metadata.ACL
		want string
	}{
		"a prefixed star":       {onTopic("*", prefixed, "User:a", read, allow), "the literal * stands for all names"},
		"a star at the end":     {onTopic("orders-*", literal, "User:a", read, allow), "use the prefixed pattern orders-"},
		"a starred principal":   {onTopic("orders", literal, "User:a*", read, allow), "only User:* stands for everybody"},
		"a good literal":        {onTopic("orders", literal, "User:a", read, allow), ""},
		"all, by everybody":     {onTopic("*", literal, "User:*", read, allow), ""},
		"a prefix without star": {onTopic("orders-", prefixed, "User:a", read, allow), ""},
	} {
		if got := Idle(c.acl); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Without authentication the cost of a decision is a look at a flag; with it, one into a small map.
func BenchmarkGrants_May(b *testing.B) {
	img := imageWith(b, onTopic("ord", prefixed, "User:alice", write, allow))
	g := NewAuthorizer(func() *metadata.Image { return img }, Options{Enforced: true}).Grants(alice, "h")
	b.ReportAllocs()
	for b.Loop() {
		if !g.May(Action{write, topicType, "orders"}) {
			b.Fatal("denied")
		}
	}
}
