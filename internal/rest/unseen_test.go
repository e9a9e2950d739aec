package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestSecurity2_UnseenIsAbsentOverREST: every operation that names a topic, asked about one that the caller may not see, is answered word for word as
// about one that does not exist: to somebody without any right, and to somebody with every right on another topic and on the group.
func TestSecurity2_UnseenIsAbsentOverREST(t *testing.T) {
	a, admin := newGuardedAPI(t)
	root, user := basic("root", accessPassword), basic("user", accessPassword)
	for _, name := range []string{"secret", "public"} {
		a.send("POST", "/v1/topics", fmt.Sprintf(`{"name":%q,"partitionCount":1,"replicationFactor":1}`, name), root).want(t, 201)
	}
	elsewhere := []string{
		"Read:Topic", "Write:Topic", "Create:Topic", "Delete:Topic", "Alter:Topic", "Describe:Topic", "DescribeConfigs:Topic", "AlterConfigs:Topic",
		"Read:Group", "Describe:Group", "Delete:Group",
	}
	on := named{kadm.ACLPatternLiteral, map[string]string{"Topic": "public", "Group": "g"}}
	asked := 0
	for what, rights := range map[string][]string{"no right": nil, "rights elsewhere": elsewhere} {
		ruled(t, admin, rights, on, kmsg.ACLPermissionTypeAllow)
		for id, o := range operations {
			said := map[string]string{}
			for _, name := range []string{"absent", "secret"} {
				path := strings.ReplaceAll(o.path, "/topics/t", "/topics/"+name)
				path = strings.ReplaceAll(path, "/offsets/t/", "/offsets/"+name+"/")
				body := strings.ReplaceAll(o.body, `"t"`, `"`+name+`"`)
				if path == o.path && body == o.body {
					continue
				}
				got := a.send(o.method, path, body, user)
				said[name] = fmt.Sprint(got.status, " ", got.header.Get("Retry-After"), got.header.Get("ETag"), " ", strings.ReplaceAll(got.text, name, "NAME"))
			}
			asked += len(said)
			// A member's id is new each time.
			if id == "joinGroup" && strings.HasPrefix(said["absent"], "20") && strings.HasPrefix(said["secret"], "20") {
				continue
			}
			if said["absent"] != said["secret"] {
				t.Errorf("%s, %s:\nabsent: %s\nunseen: %s", id, what, said["absent"], said["secret"])
			}
		}
	}
	if asked < 40 {
		t.Errorf("only %d operations name a topic", asked)
	}
}
