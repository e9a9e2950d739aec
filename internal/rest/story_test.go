package rest_test

import (
	"context"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// TestR9_R10_R38_R44_R46_R68_TheOrderStoryByCurl runs test/e2e/orders.sh against three nodes: create, publish with a record id, give up and repeat, two
// groups, commit 82, a stale generation, out of range, delete with the expected version, restore.
func TestR9_R10_R38_R44_R46_R68_TheOrderStoryByCurl(t *testing.T) {
	args := []string{"../../test/e2e/orders.sh"}
	for _, node := range newTestAPI(t, 3) {
		args = append(args, node.base)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "sh", args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestGroups_HTTPMembersShareAGroup: two members get their own partitions, one that leaves gives them up at once, and the group's backlog is shown.
func TestGroups_HTTPMembersShareAGroup(t *testing.T) {
	a := newTestAPI(t, 1)[0]
	a.send("POST", "/v1/topics", `{"name":"orders","partitionCount":2}`).want(t, 201)
	for _, key := range []string{"a", "b", "c", "d"} {
		a.send("POST", "/v1/topics/orders/records", `{"routingKey":"`+key+`","value":{"text":"x"}}`).want(t, 201)
	}
	first := a.eventually("POST", "/v1/groups/g/members", `{"topics":["orders"]}`, 200)
	id, _ := first.body["memberId"].(string)
	if id == "" || first.number("generation") < 1 || first.number("heartbeatIntervalMs") < 1 {
		t.Fatalf("joined: %s", first.text)
	}
	beat := a.send("PUT", "/v1/groups/g/members/"+id, `{"generation":`+strconv.Itoa(first.number("generation"))+`,"owned":[{"topic":"orders","partitions":[0,1]}]}`).want(t, 200)
	a.send("PUT", "/v1/groups/g/members/"+id, `{"generation":99}`).want(t, 409)
	a.send("PUT", "/v1/groups/g/members/nobody", `{"generation":1}`).want(t, 404)
	second := a.send("POST", "/v1/groups/g/members", `{"topics":["orders"],"memberId":"two"}`).want(t, 200)
	if second.number("generation") <= first.number("generation") {
		t.Errorf("a member more is a higher generation: %s, %s", first.text, second.text)
	}
	a.send("PUT", "/v1/groups/g/offsets/orders/0", `{"generation":`+strconv.Itoa(beat.number("generation"))+`,"memberId":"`+id+`","nextOffset":1}`).want(t, 200)
	a.send("PUT", "/v1/groups/g/offsets/orders/0", `{"nextOffset":0}`).want(t, 404) // only without members
	a.send("DELETE", "/v1/groups/g", "").want(t, 409)
	if d := a.send("GET", "/v1/groups/g", "").want(t, 200); d.number("members") != 2 {
		t.Errorf("described: %s", d.text)
	}
	a.send("DELETE", "/v1/groups/g/members/two", "").want(t, 204)
	a.send("DELETE", "/v1/groups/g/members/"+id, "").want(t, 204)
	a.send("PUT", "/v1/groups/g/offsets/orders/0", `{"nextOffset":0}`).want(t, 200)
	a.send("DELETE", "/v1/groups/g", "").want(t, 204)
}
