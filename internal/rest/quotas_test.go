package rest_test

import (
	"strconv"
	"strings"
	"testing"
)

// TestR125_QuotasOverREST: set, replaced, listed, deleted; what is wrong is refused with the reason.
func TestR125_QuotasOverREST(t *testing.T) {
	a := newTestAPI(t, 1)[0]
	const shop = `"entity":[{"type":"user","name":"shop"}]`
	a.send("PUT", "/v1/quotas", `{`+shop+`,"quotas":{"producer_byte_rate":1000,"request_percentage":12.5}}`).want(t, 200)
	a.send("PUT", "/v1/quotas", `{"entity":[{"type":"ip","default":true}],"quotas":{"connection_creation_rate":5000}}`).want(t, 200)
	a.send("PUT", "/v1/quotas", `{`+shop+`,"quotas":{"consumer_byte_rate":2000,"request_percentage":50}}`).want(t, 200)
	all := a.send("GET", "/v1/quotas", "").want(t, 200)
	for _, want := range []string{
		`{"entity":[{"type":"ip","default":true}],"quotas":{"connection_creation_rate":5000}}`,
		`{"entity":[{"type":"user","name":"shop"}],"quotas":{"consumer_byte_rate":2000,"request_percentage":50}}`,
	} {
		if !strings.Contains(all.text, want) {
			t.Errorf("%s is missing in %s", want, all.text)
		}
	}
	if one := a.send("GET", "/v1/quotas?user=shop", "").want(t, 200); len(one.body["quotas"].([]any)) != 1 {
		t.Errorf("of one user: %s", one.text)
	}
	for _, c := range []struct{ body, says string }{
		{`{"entity":[],"quotas":{}}`, "body.entity"},
		{`{"entity":[{"type":"group","name":"x"}],"quotas":{}}`, "body.entity"},
		{`{"entity":[{"type":"user"}],"quotas":{}}`, "either a name or default"},
		{`{"entity":[{"type":"user","name":"x","default":true}],"quotas":{}}`, "either a name or default"},
		{`{` + shop + `,"quotas":{"speed":1}}`, `no quota`},
		{`{` + shop + `,"quotas":{"producer_byte_rate":-1}}`, "greater than 0"},
		{`{"entity":[{"type":"user","name":"x"},{"type":"ip","name":"10.0.0.1"}],"quotas":{"producer_byte_rate":1}}`, "ip"},
	} {
		if got := a.send("PUT", "/v1/quotas", c.body).want(t, 422); !strings.Contains(got.text, c.says) {
			t.Errorf("%s: %s", c.body, got.text)
		}
	}
	a.send("PUT", "/v1/quotas", `{`+shop+`,"quotas":{}}`).want(t, 200)
	if one := a.send("GET", "/v1/quotas?user=shop", "").want(t, 200); len(one.body["quotas"].([]any)) != 0 {
		t.Errorf("deleted: %s", one.text)
	}
}

// TestR28_OverQuotaIs429: a publish over the quota is refused at once, with the time after which it is not, and stores nothing; so is a read.
func TestR28_OverQuotaIs429(t *testing.T) {
	a := newTestAPI(t, 1)[0]
	a.send("POST", "/v1/topics", `{"name":"orders"}`).want(t, 201)
	a.send("PUT", "/v1/quotas", `{"entity":[{"type":"user","name":"ANONYMOUS"}],"quotas":{"producer_byte_rate":100,"consumer_byte_rate":100}}`).want(t, 200)
	const records = "/v1/topics/orders/partitions/0/records"
	body := `{"value":{"text":"` + strings.Repeat("x", 5000) + `"}}`
	refused := func(got answer) {
		t.Helper()
		after, err := strconv.Atoi(got.header.Get("Retry-After"))
		if got.status != 429 || err != nil || after < 30 || after > 51 || got.body["code"] != "THROTTLING_QUOTA_EXCEEDED" || got.body["outcome"] != "none" || got.body["retriable"] != true {
			t.Errorf("%d, Retry-After %q: %s", got.status, got.header.Get("Retry-After"), got.text)
		}
	}
	a.send("POST", records, body).want(t, 201) // 5,000 bytes by a quota of 100 a second: 49 s are owed
	refused(a.send("POST", records, body))
	refused(a.send("POST", "/v1/topics/orders/records", `{"records":[`+body+`,`+body+`]}`))
	if got := a.send("GET", records+"?fromOffset=0", "").want(t, 200); got.number("highWatermark") != 1 {
		t.Errorf("something refused is stored: %s", got.text)
	}
	refused(a.send("GET", records+"?fromOffset=0", ""))
	a.send("PUT", "/v1/quotas", `{"entity":[{"type":"user","name":"ANONYMOUS"}],"quotas":{}}`).want(t, 200)
	a.send("POST", records, body).want(t, 201)
	a.send("GET", records+"?fromOffset=0", "").want(t, 200)
}

// TestR28_WhatIsRefusedIsNotCharged: a publish of which nothing is stored leaves the quota as it was; one that is stored does not.
func TestR28_WhatIsRefusedIsNotCharged(t *testing.T) {
	nodes := newTestAPI(t, 3)
	nodes[0].send("POST", "/v1/topics", `{"name":"orders","partitionCount":1,"replicationFactor":1}`).want(t, 201)
	const records = "/v1/topics/orders/partitions/0/records"
	body := `{"value":{"text":"` + strings.Repeat("x", 500_000) + `"}}`
	nodes[0].send("PUT", "/v1/quotas", `{"entity":[{"type":"user","name":"ANONYMOUS"}],"quotas":{"producer_byte_rate":100}}`).want(t, 200)
	for _, node := range nodes {
		node.until("GET", "/v1/quotas", `"producer_byte_rate":100`)
		node.until("GET", "/v1/topics/orders", `"partition":0`)
		node.send("POST", "/v1/topics/none/records", body).want(t, 404)
		node.send("POST", "/v1/topics/orders/partitions/7/records", body).want(t, 404)
		for range 3 {
			got := node.send("POST", records, body)
			if got.status == 429 {
				t.Fatalf("%s charged for what it did not take: %s", node.base, got.text)
			}
			if got.status == 201 {
				node.send("POST", records, body).want(t, 429)
			}
			if got.status != 421 {
				break
			}
		}
	}
}
