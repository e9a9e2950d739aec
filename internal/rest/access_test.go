package rest_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/config"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/node"
	"strandline.dev/internal/sys"
)

const accessPassword = "open sesame"

// newGuardedAPI is a node on which what no rule allows is denied, with the users root, who may do everything, and user.
func newGuardedAPI(t *testing.T) (api, *kgo.Client) {
	dir := t.TempDir()
	var users strings.Builder
	for _, name := range []string{"root", "user"} {
		c, err := auth.NewScram(name, accessPassword, metadata.ScramSHA512)
		if err != nil {
			t.Fatal(err)
		}
		users.WriteString(auth.UserLine(c) + "\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "users"), []byte(users.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Build(map[string]string{
		"node.id": "1", "data.dir": filepath.Join(dir, "data"), "http.address": "127.0.0.1:0", "auth.audit": "off",
		"auth.users.file": filepath.Join(dir, "users"), "auth.super.users": "User:root",
		"listeners.0.name": "clients", "listeners.0.address": "127.0.0.1:0", "listeners.0.sasl": "PLAIN",
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	n, err := node.Start(t.Context(), node.Options{Config: c, Machine: sys.Real(), Dev: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := n.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(n.KafkaAddresses()...), kgo.SASL(plain.Auth{User: "root", Pass: accessPassword}.AsMechanism()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return api{t: t, base: n.HTTPURL()}, cl
}

func basic(user, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// operation is how one operation of the API is asked for.
type operation struct{ method, path, body string }

// operations are ordinary requests, by operation id. What is denied must not depend on what is there, so nobody has made the group.
var operations = map[string]operation{
	"listTopics":      {"GET", "/v1/topics", ""},
	"createTopic":     {"POST", "/v1/topics", `{"name":"fresh","partitionCount":1,"replicationFactor":9}`},
	"describeTopic":   {"GET", "/v1/topics/t", ""},
	"deleteTopic":     {"DELETE", "/v1/topics/t?expectedVersion=999999", ""},
	"restoreTopic":    {"POST", "/v1/topics/t/restore", `{}`},
	"publishRecord":   {"POST", "/v1/topics/t/partitions/0/records", `{"value":{"text":"x"}}`},
	"publishRecords":  {"POST", "/v1/topics/t/records", `{"value":{"text":"x"}}`},
	"fetchRecords":    {"GET", "/v1/topics/t/partitions/0/records?fromOffset=0", ""},
	"joinGroup":       {"POST", "/v1/groups/g/members", `{"topics":["t"]}`},
	"heartbeat":       {"PUT", "/v1/groups/g/members/m", `{"generation":1}`},
	"leaveGroup":      {"DELETE", "/v1/groups/g/members/m", ""},
	"committedOffset": {"GET", "/v1/groups/g/offsets/t/0", ""},
	"commitOffset":    {"PUT", "/v1/groups/g/offsets/t/0", `{"generation":-1,"nextOffset":0}`},
	"describeGroup":   {"GET", "/v1/groups/g", ""},
	"deleteGroup":     {"DELETE", "/v1/groups/g", ""},
	"changeTopic":     {"PATCH", "/v1/topics/t", `{"expectedVersion":999999,"configs":{"retention.ms":"1"}}`},
	"listGroups":      {"GET", "/v1/groups", ""},
	"seekGroup":       {"POST", "/v1/groups/g/seek", `{"to":"start","topics":["t"]}`},
	"describeCluster": {"GET", "/v1/cluster", ""},
	"listNodes":       {"GET", "/v1/nodes", ""},
	"drainNode":       {"PUT", "/v1/nodes/99/drain", ""},
	"undrainNode":     {"DELETE", "/v1/nodes/99/drain", ""},
	"removeNode":      {"DELETE", "/v1/nodes/99", ""},
	"createACL":       {"POST", "/v1/acls", `{"user":"zed","operation":"read","resource":"topic:z"}`},
	"listACLs":        {"GET", "/v1/acls", ""},
	"deleteACLs":      {"DELETE", "/v1/acls?user=zed", ""},
	"explainACL":      {"GET", "/v1/acls/explain?user=zed&operation=read&resource=topic:z", ""},
	"createUser":      {"POST", "/v1/users", `{"user":"zed","password":"x","replace":true}`},
	"listUsers":       {"GET", "/v1/users", ""},
	"deleteUser":      {"DELETE", "/v1/users/zed", ""},
	"readAudit":       {"GET", "/v1/audit", ""},
	"listQuotas":      {"GET", "/v1/quotas", ""},
	"putQuotas":       {"PUT", "/v1/quotas", `{"entity":[{"type":"user","name":"zed"}],"quotas":{"producer_byte_rate":1000000}}`},
}

// named is what rules are about: names by the right, or by the kind of resource, and how they match.
type named struct {
	pattern kadm.ACLPattern
	names   map[string]string
}

// ruled makes the rules of User:user exactly these: the rights on a name or a prefix, allowed or denied.
func ruled(t *testing.T, admin *kgo.Client, rights []string, on named, permissions ...kmsg.ACLPermissionType) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	remove := kmsg.NewDeleteACLsRequestFilter()
	remove.ResourceType, remove.ResourcePatternType, remove.Operation, remove.PermissionType = 1, 1, 1, 1
	drop := kmsg.NewPtrDeleteACLsRequest()
	drop.Filters = append(drop.Filters, remove)
	make := kmsg.NewPtrCreateACLsRequest()
	for _, r := range rights {
		op, kind, _ := strings.Cut(r, ":")
		for _, p := range permissions {
			c := kmsg.NewCreateACLsRequestCreation()
			c.Operation, _ = kmsg.ParseACLOperation(op)
			c.ResourceType, _ = kmsg.ParseACLResourceType(kind)
			c.ResourceName, c.ResourcePatternType, c.Principal, c.Host, c.PermissionType = on.names[r], on.pattern, "User:user", "*", p
			if c.ResourceName == "" {
				c.ResourceName = on.names[kind]
			}
			make.Creations = append(make.Creations, c)
		}
	}
	for _, req := range []kmsg.Request{drop, make} {
		resp, err := admin.Request(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		if made, ok := resp.(*kmsg.CreateACLsResponse); ok {
			for _, r := range made.Results {
				if r.ErrorCode != 0 {
					t.Fatalf("%v: %+v", rights, r)
				}
			}
		}
	}
}

// TestSecurity1_RESTMatrix: every operation of the API, asked by everybody: without a login, with a wrong password, without a right, with the right on
// something else, on a prefix, with exactly the right, with it and a deny, and by a super user (C104, C111, H11, H12).
func TestSecurity1_RESTMatrix(t *testing.T) {
	a, admin := newGuardedAPI(t)
	root, user := basic("root", accessPassword), basic("user", accessPassword)
	a.send("POST", "/v1/topics", `{"name":"t","partitionCount":1,"replicationFactor":1}`, root).want(t, 201)
	table := accessRows(t, a)
	a.strangers()
	names := map[string]string{"Topic": "t", "Group": "g", "Create:Topic": "fresh", "Cluster": metadata.ClusterName}
	elsewhere := map[string]string{"Topic": "other", "Group": "other", "Create:Topic": "other"}
	prefix := map[string]string{"Topic": "t", "Group": "g", "Create:Topic": "fre"}
	const allow, deny = kmsg.ACLPermissionTypeAllow, kmsg.ACLPermissionTypeDeny
	for _, id := range slices.Sorted(maps.Keys(table)) {
		o, row := operations[id], table[id]
		if id == "restoreTopic" {
			names["Create:Topic"], prefix["Create:Topic"] = "t", "t"
		} else {
			names["Create:Topic"], prefix["Create:Topic"] = "fresh", "fre"
		}
		if names["Topic"], prefix["Topic"] = "t", "t"; id == "readAudit" {
			names["Topic"], prefix["Topic"] = "__strandline_audit", "__strand"
		}
		ofCluster := strings.HasSuffix(row.rights[0], ":Cluster") // there is one, so there is no other and no prefix
		for _, who := range []struct {
			name    string
			login   []string
			rules   func()
			allowed bool
		}{
			{"no right", []string{user}, func() { ruled(t, admin, nil, named{}) }, false},
			{"the right elsewhere", []string{user}, func() { ruled(t, admin, row.rights, named{kadm.ACLPatternLiteral, elsewhere}, allow) }, false},
			{"the right and a deny", []string{user}, func() { ruled(t, admin, row.rights, named{kadm.ACLPatternLiteral, names}, allow, deny) }, false},
			{"the right", []string{user}, func() { ruled(t, admin, row.rights, named{kadm.ACLPatternLiteral, names}, allow) }, true},
			{"the right on a prefix", []string{user}, func() { ruled(t, admin, row.rights, named{kadm.ACLPatternPrefixed, prefix}, allow) }, true},
			{"a super user", []string{root}, nil, true},
		} {
			if ofCluster && (who.name == "the right elsewhere" || who.name == "the right on a prefix") {
				continue
			}
			if who.rules != nil {
				who.rules()
			}
			got := a.send(o.method, o.path, o.body, who.login...)
			switch {
			case who.allowed && (got.status == http.StatusUnauthorized || got.status == http.StatusForbidden),
				!who.allowed && row.denied != "hides" && fmt.Sprint(got.status) != row.denied,
				!who.allowed && strings.Contains(got.text, `"name":"t"`):
				t.Errorf("%s, %s: %d %s", id, who.name, got.status, got.text)
			}
		}
	}
}

// strangers ask for every operation without a login, with a wrong password, a blank one, and by another scheme, all at once: each answer has a pause.
func (a api) strangers() {
	var all sync.WaitGroup
	for id, o := range operations {
		for who, login := range map[string]string{"nobody": "", "a wrong password": "Basic dXNlcjp3cm9uZw==", "a blank login": "Basic", "another scheme": "Digest x"} {
			req, err := http.NewRequest(o.method, a.base+o.path, strings.NewReader(o.body))
			if err != nil {
				a.t.Fatal(err)
			}
			if login != "" {
				req.Header.Set("Authorization", login)
			}
			all.Go(func() {
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					a.t.Error(err)
					return
				}
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusUnauthorized {
					a.t.Errorf("%s, %s: %d", id, who, resp.StatusCode)
				}
			})
		}
	}
	all.Wait()
}

type accessRow struct {
	denied string
	rights []string
}

// accessRows reads the table and holds it against what the API says about itself.
func accessRows(t *testing.T, a api) map[string]accessRow {
	t.Helper()
	text, err := os.ReadFile("testdata/access.txt")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]accessRow{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 2 && f[0] != "#" {
			table[f[0]] = accessRow{f[1], f[2:]}
		}
	}
	served := map[string]bool{}
	paths, _ := a.send("GET", "/openapi.json", "").want(t, 200).body["paths"].(map[string]any)
	for path, methods := range paths {
		for method, described := range methods.(map[string]any) {
			id, _ := described.(map[string]any)["operationId"].(string)
			served[id] = true
			if _, ok := table[id]; !ok || operations[id].path == "" {
				t.Errorf("%s %s (%s) has no row in testdata/access.txt, or no request here", method, path, id)
			}
		}
	}
	for id := range table {
		if !served[id] {
			t.Errorf("%s has a row and is not served", id)
			delete(table, id)
		}
	}
	return table
}
