package server

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// errorCodes are all error codes in an answer, wherever they stand.
func errorCodes(v reflect.Value) (out []kafka.ErrorCode) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			out = errorCodes(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			out = append(out, errorCodes(v.Index(i))...)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch {
			case f.Name == "ErrorCode":
				out = append(out, kafka.ErrorCode(v.Field(i).Int()))
			case f.IsExported():
				out = append(out, errorCodes(v.Field(i))...)
			}
		}
	}
	return out
}

var denials = []kafka.ErrorCode{
	kafka.TopicAuthorizationFailed, kafka.GroupAuthorizationFailed, kafka.ClusterAuthorizationFailed, kafka.TransactionalIDAuthorizationFailed,
}

func deniedIn(codes []kafka.ErrorCode) bool {
	return slices.ContainsFunc(codes, func(c kafka.ErrorCode) bool { return slices.Contains(denials, c) })
}

// accessRow is a row of testdata/access.txt.
type accessRow struct {
	denied kafka.ErrorCode // 0: none, or what may not be seen is left out
	since  int16
	rights []string
}

func accessTable(t *testing.T) map[string]accessRow {
	text, err := os.ReadFile("testdata/access.txt")
	must(t, err)
	out := map[string]accessRow{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] == "#" {
			continue
		}
		code, _ := strconv.Atoi(f[1])
		since, _ := strconv.Atoi(f[2])
		out[f[0]] = accessRow{kafka.ErrorCode(code), int16(since), f[3:]}
	}
	return out
}

// setACLs makes the ACLs of the cluster exactly these.
func (b *testBroker) setACLs(acls ...metadata.ACL) {
	b.t.Helper()
	all := metadata.ACLFilter{Resource: 1, Pattern: 1, Operation: 1, Permission: 1}
	for _, ev := range []metadata.Event{metadata.DeleteACLs{Filters: []metadata.ACLFilter{all}}, metadata.CreateACLs{ACLs: acls}} {
		r, _, err := b.control.Controller.Submit(context.Background(), ev)
		must(b.t, err)
		if made, ok := r.([]metadata.ACLCreated); ok {
			for _, m := range made {
				if !m.OK() {
					b.t.Fatal(m.Message)
				}
			}
		}
	}
}

// right is an ACL of user for "Operation:Resource", on all resources of the type or on one that nobody uses.
func right(t testing.TB, user, text, name string, p kmsg.ACLPermissionType) metadata.ACL {
	op, resource, _ := strings.Cut(text, ":")
	a := metadata.ACL{Pattern: kmsg.ACLResourcePatternTypeLiteral, Name: name, Principal: "User:" + user, Host: "*", Permission: p}
	var err error
	a.Operation, err = kmsg.ParseACLOperation(op)
	must(t, err)
	a.Resource, err = kmsg.ParseACLResourceType(resource)
	must(t, err)
	if a.Resource == kmsg.ACLResourceTypeCluster {
		a.Name = metadata.ClusterName
	}
	return a
}

// loggedIn is a client of a user.
func (b *testBroker) loggedInAs(user string) *testClient {
	c := b.dial()
	ask[*kmsg.SASLHandshakeResponse](c, newHandshake(1, auth.Plain))
	if r := ask[*kmsg.SASLAuthenticateResponse](c, newAuthenticate(2, "\x00"+user+"\x00"+testPassword)); r.ErrorCode != 0 {
		b.t.Fatalf("%s: %+v", user, r)
	}
	return c
}

func newGuardedBroker(t *testing.T, users ...string) *testBroker {
	b := newTestBroker(t, testOptions{door: Door{SASL: allMechanisms}, access: auth.Options{Enforced: true, Supers: []kafka.Principal{{Type: "User", Name: "super"}}}})
	for _, u := range append(users, "super") {
		b.addUser(u, metadata.ScramSHA512)
	}
	return b
}

// Every API at its first and last version, asked by everybody: without any right, with the right on another resource, with exactly the right, with it
// and a deny, and by a super user (R149, R150, R3, R13, R27, C104). The answers to expect are in testdata/access.txt.
func TestR149_Matrix(t *testing.T) {
	b := newGuardedBroker(t, "user")
	super, user := b.loggedInAs("super"), b.loggedInAs("user")
	id := super.create("versions", 1)
	findCoordinator(super)
	table := accessTable(t)
	const allow, deny = kmsg.ACLPermissionTypeAllow, kmsg.ACLPermissionTypeDeny
	for _, a := range served() {
		row, ok := table[a.Name]
		if !ok {
			t.Errorf("%s has no row in testdata/access.txt", a.Name)
			continue
		}
		if a.Key == wire.KeySaslHandshake || a.Key == wire.KeySaslAuthenticate {
			continue // TestK57: they are about the connection
		}
		rights := func(name string, ps ...kmsg.ACLPermissionType) (out []metadata.ACL) {
			for _, r := range row.rights {
				for _, p := range ps {
					if x := right(t, "user", r, name, p); name == "*" || x.Resource != kmsg.ACLResourceTypeCluster {
						out = append(out, x)
					}
				}
			}
			return out
		}
		for _, v := range slices.Compact([]int16{a.Min, a.Max}) {
			ask := func(c *testClient) []kafka.ErrorCode {
				return errorCodes(reflect.ValueOf(ask[kmsg.Response](c, withVersion(fullRequest(a.Key, id, b), v))))
			}
			for _, who := range []struct {
				name    string
				client  *testClient
				acls    []metadata.ACL
				allowed bool
			}{
				{"without a right", user, nil, false},
				{"with the right on another resource", user, rights("elsewhere", allow), false},
				{"with the right and a deny", user, rights("*", allow, deny), false},
				{"with the right", user, rights("*", allow), true},
				{"a super user", super, nil, true},
			} {
				b.setACLs(who.acls...)
				codes := ask(who.client)
				switch expect := !who.allowed && row.denied != 0 && v >= row.since; {
				case expect && !slices.Contains(codes, row.denied):
					t.Errorf("%s v%d, %s: %v, want %v", a.Name, v, who.name, codes, row.denied)
				case !expect && who.allowed && deniedIn(codes):
					t.Errorf("%s v%d, %s: %v", a.Name, v, who.name, codes)
				}
			}
		}
	}
	for name := range table {
		if !slices.ContainsFunc(served(), func(a wire.API) bool { return a.Name == name }) {
			t.Errorf("%s has a row and is not served", name)
		}
	}
}

// fullRequest is an ordinary request of an API that names at least one thing.
func fullRequest(key int16, id kafka.TopicID, b *testBroker) kmsg.Request {
	req := request(key, "versions", id, b.newBatch("x"))
	switch r := req.(type) {
	case *kmsg.CreateACLsRequest:
		c := kmsg.NewCreateACLsRequestCreation()
		c.ResourceType, c.ResourceName, c.Principal, c.Host = kmsg.ACLResourceTypeTopic, "other", "User:x", "*"
		c.Operation, c.PermissionType = kmsg.ACLOperationRead, kmsg.ACLPermissionTypeAllow
		r.Creations = append(r.Creations, c)
	case *kmsg.DeleteACLsRequest:
		f := kmsg.NewDeleteACLsRequestFilter()
		f.ResourceType, f.ResourceName, f.Operation, f.PermissionType = kmsg.ACLResourceTypeTopic, kmsg.StringPtr("other"), 1, 1
		r.Filters = append(r.Filters, f)
	case *kmsg.DescribeACLsRequest:
		r.ResourceType, r.Operation, r.PermissionType = 1, 1, 1
	case *kmsg.AlterClientQuotasRequest:
		r.Entries = append(r.Entries, quotaEntryOf("user", "no such user", "producer_byte_rate", 1))
		r.ValidateOnly = true
	case *kmsg.AlterUserSCRAMCredentialsRequest:
		d := kmsg.NewAlterUserSCRAMCredentialsRequestDeletion()
		d.Name, d.Mechanism = "no such user", 1
		r.Deletions = append(r.Deletions, d)
	}
	return req
}

// Somebody without the right to see a topic is answered the same whether it exists or not, and finds it in no list (security test 3.5 (2)).
func TestR149_UnseenIsAbsent(t *testing.T) {
	b := newGuardedBroker(t, "user")
	super, user := b.loggedInAs("super"), b.loggedInAs("user")
	super.create("secret", 1)
	super.create("public", 1)
	b.setACLs(right(t, "user", "Describe:Topic", "public", kmsg.ACLPermissionTypeAllow))
	for _, name := range []string{"secret", "missing"} {
		m := ask[*kmsg.MetadataResponse](user, request(wire.KeyMetadata, name, kafka.TopicID{}, nil))
		if got := m.Topics[0]; got.ErrorCode != int16(kafka.TopicAuthorizationFailed) || got.TopicID != [16]byte{} || len(got.Partitions) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	all := kmsg.NewPtrMetadataRequest()
	all.Version, all.Topics = 12, nil
	if m := ask[*kmsg.MetadataResponse](user, all); len(m.Topics) != 1 || *m.Topics[0].Topic != "public" {
		t.Errorf("all topics: %+v", m.Topics)
	}
	d := kmsg.NewPtrDescribeTopicPartitionsRequest()
	if m := ask[*kmsg.DescribeTopicPartitionsResponse](user, d); len(m.Topics) != 1 || *m.Topics[0].Topic != "public" {
		t.Errorf("described: %+v", m.Topics)
	}
	if log := b.log.String(); !strings.Contains(log, "no ACL allows User:user") || !strings.Contains(log, "Describe on Topic secret") {
		t.Errorf("the denial is not explained: %s", log)
	}
}

// A denied publish appends nothing (R27), a poll that is parked when the right goes hands out nothing (P42), and a change of ACLs counts at once on
// connections that are open.
func TestR27_P42_RightsThatGo(t *testing.T) {
	b := newGuardedBroker(t, "user")
	super, user := b.loggedInAs("super"), b.loggedInAs("user")
	id := super.create("t", 1)
	if p := user.publish(newProduce("t", 0, b.newBatch("no"))); p.ErrorCode != int16(kafka.TopicAuthorizationFailed) {
		t.Errorf("%+v", p)
	}
	b.setACLs(right(t, "user", "Read:Topic", "t", kmsg.ACLPermissionTypeAllow))
	poll := newFetch("t", 0, 0)
	poll.Topics[0].TopicID = id
	poll.MinBytes, poll.MaxWaitMillis = 1, 20_000
	n := user.send(poll)
	eventually(t, "the poll is parked", func() bool { return b.spy.parks.Load() > 0 })
	b.setACLs()
	super.publish(newProduce("t", 0, b.newBatch("secret")))
	r := user.read(poll, n).(*kmsg.FetchResponse)
	if p := r.Topics[0].Partitions[0]; p.ErrorCode != int16(kafka.TopicAuthorizationFailed) || len(p.RecordBatches) != 0 {
		t.Errorf("%+v", p)
	}
	if end := fmt.Sprint(values(t, ask[*kmsg.FetchResponse](super, newFetch("t", 0, 0)).Topics[0].Partitions[0].RecordBatches)); end != "[secret]" {
		t.Errorf("the log has %s", end)
	}
}
