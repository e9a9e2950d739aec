package server

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// rightsOperation is something that takes a right.
type rightsOperation struct {
	name string
	req  func() kmsg.Request
}

// rightsOperations are those on the topic t, one for each right.
func rightsOperations(b *testBroker, id kafka.TopicID) []rightsOperation {
	deletion := kmsg.NewPtrDeleteTopicsRequest()
	deletion.Version = 6
	one := kmsg.NewDeleteTopicsRequestTopic()
	one.Topic = kmsg.StringPtr("t")
	deletion.Topics = append(deletion.Topics, one)
	return []rightsOperation{
		{"create", func() kmsg.Request { r := newCreate("fresh", 1); r.ValidateOnly = true; return r }},
		{"grow", func() kmsg.Request {
			r := kmsg.NewPtrCreatePartitionsRequest()
			r.Version, r.ValidateOnly = 3, true
			one := kmsg.NewCreatePartitionsRequestTopic()
			one.Topic, one.Count = "t", 2
			r.Topics = append(r.Topics, one)
			return r
		}},
		{"publish", func() kmsg.Request { return newProduce("t", 0, b.newBatch("x")) }},
		{"read", func() kmsg.Request { r := newFetch("t", 0, 0); r.Topics[0].TopicID = id; return r }},
		{"join", func() kmsg.Request { return withVersion(request(wire.KeyHeartbeat, "t", id, nil), 4) }},
		{"commit", func() kmsg.Request { return newCommit("t", id, 0) }},
		{"delete", func() kmsg.Request { return deletion }}, // the last: with the right to, the topic is gone
	}
}

// One topic, one right at a time: each gives its own operations and no other's. A commit takes two (R149, R150, R13).
func TestR150_EachRightAlone(t *testing.T) {
	b := newGuardedBroker(t, "user")
	super, user := b.loggedInAs("super"), b.loggedInAs("user")
	id := super.create("t", 1)
	findCoordinator(super)
	operations := rightsOperations(b, id)
	for _, c := range []struct {
		rights []string // "Operation:Resource"
		want   string
	}{
		{nil, ""},
		{[]string{"Create:Topic"}, "create"},
		{[]string{"Alter:Topic"}, "grow"},
		{[]string{"Write:Topic"}, "publish"},
		{[]string{"Read:Topic"}, "read"},
		{[]string{"Describe:Topic"}, ""},
		{[]string{"Read:Group"}, "join"},
		{[]string{"Read:Topic", "Read:Group"}, "read join commit"},
		{[]string{"Create:Topic", "Alter:Topic", "Write:Topic", "Read:Topic", "Read:Group"}, "create grow publish read join commit"},
		{[]string{"Delete:Topic"}, "delete"},
	} {
		var acls []metadata.ACL
		for _, r := range c.rights {
			name := "t"
			switch {
			case r == "Create:Topic":
				name = "fresh"
			case strings.HasSuffix(r, ":Group"):
				name = testGroup
			}
			acls = append(acls, right(t, "user", r, name, kmsg.ACLPermissionTypeAllow))
		}
		b.setACLs(acls...)
		var may []string
		for _, o := range operations {
			codes := errorCodes(reflect.ValueOf(ask[kmsg.Response](user, o.req())))
			codes = slices.DeleteFunc(codes, func(c kafka.ErrorCode) bool { return c == kafka.None })
			switch {
			case !deniedIn(codes):
				may = append(may, o.name)
			case slices.ContainsFunc(codes, func(c kafka.ErrorCode) bool { return !slices.Contains(denials, c) }):
				t.Errorf("%v: %s: %v", c.rights, o.name, codes)
			}
		}
		if got := strings.Join(may, " "); got != c.want {
			t.Errorf("with %v: %q, want %q", c.rights, got, c.want)
		}
	}
}
