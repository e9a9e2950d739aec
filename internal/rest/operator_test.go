package rest_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestChangeTopic_UnderItsVersion: configs and partitions change under the version that was seen, and under no other; what is refused
// changes nothing.
func TestChangeTopic_UnderItsVersion(t *testing.T) {
	a := newTestAPI(t, 1)[0]
	a.send("POST", "/v1/topics", `{"name":"orders","partitionCount":2}`).want(t, 201)
	const path = "/v1/topics/orders"
	set := a.send("PATCH", path, `{"expectedVersion":1,"configs":{"retention.ms":"7200000"}}`).want(t, 200)
	if set.number("topicVersion") != 2 || set.header.Get("ETag") != `"2"` {
		t.Errorf("set: %v %s", set.header, set.text)
	}
	for _, c := range []struct {
		body   string
		status int
		says   string
	}{
		{`{"expectedVersion":1,"configs":{"retention.ms":"1"}}`, 409, "VERSION_CONFLICT"},
		{`{"expectedVersion":1,"partitionCount":4,"confirmKeyRemap":true}`, 409, "VERSION_CONFLICT"},
		{`{"configs":{"retention.ms":"1"}}`, 422, "body.expectedVersion"},
		{`{"expectedVersion":2}`, 422, "changes nothing"},
		{`{"expectedVersion":2,"partitionCount":4}`, 422, "body.confirmKeyRemap"},
		{`{"expectedVersion":2,"partitionCount":1,"confirmKeyRemap":true}`, 422, "INVALID_PARTITIONS"},
		{`{"expectedVersion":2,"configs":{"retention.mss":"1"}}`, 422, "INVALID_CONFIG"},
		{`{"expectedVersion":2,"partitionCount":4,"confirmKeyRemap":true,"configs":{"retention.ms":"x"}}`, 422, "INVALID_CONFIG"},
		{`{"expectedVersion":2,"configs":{"retention.ms":"1"},"colour":"red"}`, 422, "colour"},
	} {
		if got := a.send("PATCH", path, c.body); got.status != c.status || !strings.Contains(got.text, c.says) || got.body["outcome"] != "none" {
			t.Errorf("%s: %d %s", c.body, got.status, got.text)
		}
	}
	a.send("PATCH", "/v1/topics/none", `{"expectedVersion":1,"configs":{"retention.ms":"1"}}`).want(t, 404)
	if d := a.send("GET", path, "").want(t, 200); d.number("topicVersion") != 2 || len(d.body["partitions"].([]any)) != 2 {
		t.Errorf("refused, and changed: %s", d.text)
	}
	both := a.send("PATCH", path, `{"configs":{"retention.ms":null,"segment.ms":"60000"},"partitionCount":4,"confirmKeyRemap":true}`, `If-Match: "2"`).want(t, 200)
	d := a.send("GET", path, "").want(t, 200)
	if d.number("topicVersion") != both.number("topicVersion") || len(d.body["partitions"].([]any)) != 4 ||
		!strings.Contains(d.text, `"name":"retention.ms","value":"1209600000","source":"default_config"`) ||
		!strings.Contains(d.text, `"name":"segment.ms","value":"60000","source":"dynamic_topic_config"`) {
		t.Errorf("both: %s\n%s", both.text, d.text)
	}
}

// TestR9_AGuardThatCannotBeReadDeletesNothing: an empty version, two of them, one in a body, and a query that does not parse are refused; without one it is deleted.
func TestR9_AGuardThatCannotBeReadDeletesNothing(t *testing.T) {
	a := newTestAPI(t, 1)[0]
	a.send("POST", "/v1/topics", `{"name":"t","partitionCount":1}`).want(t, 201)
	for _, query := range []string{"expectedVersion=", "expectedVersion", "expectedVersion=%zz", "expectedVersion=1&expectedVersion=99", "expectedVersion=1;x", "expectedVersion=0"} {
		a.send("DELETE", "/v1/topics/t?"+query, "").want(t, 422)
		a.send("GET", "/v1/topics/t", "").want(t, 200)
	}
	a.send("DELETE", "/v1/topics/t", `{"expectedVersion":99}`).want(t, 400)
	a.send("GET", "/v1/topics/t", `{"expectedVersion":99}`).want(t, 400)
	a.send("DELETE", "/v1/topics/t?expectedVersion=99", "").want(t, 409)
	a.send("DELETE", "/v1/topics/t", "").want(t, 202)
}

// TestR50_AGroupIsMovedOverREST: without execute nothing moves; with it the group moves, and undo takes it back; a group with members stays.
func TestR50_AGroupIsMovedOverREST(t *testing.T) {
	nodes := newTestAPI(t, 3)
	a := nodes[0]
	a.send("POST", "/v1/topics", `{"name":"orders","partitionCount":2,"replicationFactor":3}`).want(t, 201)
	for i := range 8 {
		a.eventually("POST", "/v1/topics/orders/records", fmt.Sprintf(`{"routingKey":"k%d","recordId":"r%d","value":null}`, i, i), 201)
	}
	a.eventually("PUT", "/v1/groups/billing/offsets/orders/0", `{"nextOffset":1}`, 200)
	where := func(n int) {
		t.Helper()
		for _, node := range nodes {
			if at := node.send("GET", "/v1/groups/billing/offsets/orders/0", "").want(t, 200); at.number("nextOffset") != n {
				t.Errorf("the place is %s, want %d", at.text, n)
			}
		}
	}
	dry := nodes[1].send("POST", "/v1/groups/billing/seek", `{"to":"start"}`).want(t, 200)
	if dry.body["executed"] != false || !strings.Contains(dry.text, `{"topic":"orders","partition":0,"from":1,"to":0,"skips":-1}`) {
		t.Errorf("dry run: %s", dry.text)
	}
	where(1)
	done := nodes[1].send("POST", "/v1/groups/billing/seek", `{"to":"+0","topics":["orders"],"execute":true}`).want(t, 200)
	if done.body["executed"] != false || !strings.Contains(done.text, "left alone") {
		t.Errorf("to where it is: %s", done.text)
	}
	nodes[2].send("POST", "/v1/groups/billing/seek", `{"to":"start","execute":true}`).want(t, 200)
	where(0)
	if undo := nodes[2].send("POST", "/v1/groups/billing/seek", `{"undo":true,"execute":true}`).want(t, 200); undo.body["executed"] != true {
		t.Errorf("undo: %s", undo.text)
	}
	where(1)
	for body, status := range map[string]int{
		`{"to":"somewhere"}`: 422, `{}`: 422, `{"undo":true,"to":"end"}`: 422, `{"to":"end","topics":["none"]}`: 404,
	} {
		a.send("POST", "/v1/groups/billing/seek", body).want(t, status)
	}
	a.send("POST", "/v1/groups/nobody/seek", `{"to":"end"}`).want(t, 404)
	for _, nobody := range []string{"nobody", strings.Repeat("n", 4000), strings.Repeat("%F0%9F%8C%8A", 4000)} { // a name may be longer than a topic's
		if none := a.send("GET", "/v1/groups/"+nobody, "").want(t, 404); none.body["code"] != "GROUP_ID_NOT_FOUND" {
			t.Error(none.text)
		}
		nodes[0].send("GET", "/v1/groups?pageToken="+nobody, "").want(t, 200)
	}
	joined := a.eventually("POST", "/v1/groups/active/members", `{"topics":["orders"],"memberId":"one"}`, 200)
	if busy := a.send("POST", "/v1/groups/active/seek", `{"to":"end","execute":true}`).want(t, 409); busy.body["code"] != "NON_EMPTY_GROUP" {
		t.Errorf("%s: active: %s", joined.text, busy.text)
	}
	var seen []string
	for token, pages := "", 0; pages < 9; pages++ {
		page := nodes[pages%3].send("GET", "/v1/groups?limit=1&pageToken="+token, "").want(t, 200)
		for _, one := range page.body["groups"].([]any) {
			g := one.(map[string]any)
			seen = append(seen, fmt.Sprint(g["group"], " ", g["state"]))
		}
		var more bool
		if token, more = page.body["nextPageToken"].(string); !more {
			break
		}
	}
	if got := strings.Join(seen, ", "); got != "active Stable, billing Empty" {
		t.Errorf("listed: %s", got)
	}
}

// TestCluster_OverREST: who is there and what it holds, and a node is drained, put back, and not forgotten while it is needed.
func TestCluster_OverREST(t *testing.T) {
	nodes := newTestAPI(t, 3)
	nodes[0].send("POST", "/v1/topics", `{"name":"orders","partitionCount":3,"replicationFactor":1}`).want(t, 201)
	c := nodes[1].until("GET", "/v1/cluster", `"partitions":{"total":3,"offline":0,`)
	if len(c.body["controllers"].([]any)) != 3 || len(c.body["nodes"].([]any)) != 3 || c.number("controller") < 1 || c.body["clusterId"] == "" {
		t.Errorf("cluster: %s", c.text)
	}
	for _, asked := range nodes { // each shows of each, itself too, where Kafka clients reach it
		for _, path := range []string{"/v1/nodes", "/v1/cluster"} {
			for i, one := range asked.until("GET", path, `"node":1,`, `"node":2,`, `"node":3,`).body["nodes"].([]any) {
				if at := one.(map[string]any)["address"]; at != nodes[i].kafka {
					t.Errorf("%s%s: node %d is at %v, want %s", asked.base, path, i+1, at, nodes[i].kafka)
				}
			}
		}
	}
	if on := nodes[2].send("PUT", "/v1/nodes/3/drain", "").want(t, 200); on.body["draining"] != true {
		t.Errorf("drain: %s", on.text)
	}
	nodes[0].until("GET", "/v1/nodes", `"node":3,`, `"state":"drained"`)
	held := nodes[0].send("DELETE", "/v1/nodes/3", "")
	if held.status < 400 || held.status > 499 || held.body["outcome"] != "none" {
		t.Errorf("a node that runs is forgotten: %d %s", held.status, held.text)
	}
	nodes[0].send("DELETE", "/v1/nodes/3/drain", "").want(t, 200)
	nodes[1].send("PUT", "/v1/nodes/77/drain", "").want(t, 404)
	nodes[1].send("DELETE", "/v1/nodes/77", "").want(t, 404)
	nodes[1].send("PUT", "/v1/nodes/-1/drain", "").want(t, 422)
	// Without logins there are no rules of access; each says so.
	for _, path := range []string{"/v1/acls", "/v1/acls/explain?user=a&operation=read&resource=topic:a"} {
		if got := nodes[0].send("GET", path, "").want(t, 422); got.body["code"] != "SECURITY_DISABLED" {
			t.Errorf("%s: %s", path, got.text)
		}
	}
	if none := nodes[0].send("GET", "/v1/audit", "").want(t, 404); !strings.Contains(none.text, "auth.audit") {
		t.Errorf("audit: %s", none.text)
	}
}
