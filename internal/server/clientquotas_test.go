package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// defaultName is the name of the default entity in these tests.
const defaultName = "(default)"

// quotaEntryOf sets one quota of an entity of one type.
func quotaEntryOf(kind, name, key string, value float64) kmsg.AlterClientQuotasRequestEntry {
	e := kmsg.NewAlterClientQuotasRequestEntry()
	e.Entity = append(e.Entity, quotaPart(kind, name))
	op := kmsg.NewAlterClientQuotasRequestEntryOp()
	op.Key, op.Value = key, value
	e.Ops = append(e.Ops, op)
	return e
}

func quotaPart(kind, name string) kmsg.AlterClientQuotasRequestEntryEntity {
	p := kmsg.NewAlterClientQuotasRequestEntryEntity()
	if p.Type = kind; name != defaultName {
		p.Name = &name
	}
	return p
}

// alterQuotas returns the code and the message of each entry.
func alterQuotas(c *testClient, validateOnly bool, entries ...kmsg.AlterClientQuotasRequestEntry) (codes []kafka.ErrorCode, messages string) {
	c.t.Helper()
	r := kmsg.NewPtrAlterClientQuotasRequest()
	r.Version, r.Entries, r.ValidateOnly = 1, entries, validateOnly
	for _, e := range ask[*kmsg.AlterClientQuotasResponse](c, r).Entries {
		codes = append(codes, kafka.ErrorCode(e.ErrorCode))
		if e.ErrorMessage != nil {
			messages += *e.ErrorMessage + "\n"
		}
	}
	return codes, messages
}

// setQuota sets one quota of an entity of one type.
func setQuota(c *testClient, kind, name, key string, value float64) {
	c.t.Helper()
	if codes, why := alterQuotas(c, false, quotaEntryOf(kind, name, key, value)); codes[0] != kafka.None {
		c.t.Fatalf("%v %s", codes, why)
	}
}

// describeQuotas returns what a filter selects: "type=name,type=name key=value key=value", a line an entity.
func describeQuotas(c *testClient, strict bool, parts ...kmsg.DescribeClientQuotasRequestComponent) (string, *kmsg.DescribeClientQuotasResponse) {
	c.t.Helper()
	r := kmsg.NewPtrDescribeClientQuotasRequest()
	r.Version, r.Components, r.Strict = 1, parts, strict
	resp := ask[*kmsg.DescribeClientQuotasResponse](c, r)
	var lines []string
	for _, e := range resp.Entries {
		var entity, values []string
		for _, p := range e.Entity {
			name := defaultName
			if p.Name != nil {
				name = *p.Name
			}
			entity = append(entity, p.Type+"="+name)
		}
		for _, v := range e.Values {
			values = append(values, fmt.Sprintf("%s=%v", v.Key, v.Value))
		}
		lines = append(lines, strings.Join(entity, ",")+" "+strings.Join(values, " "))
	}
	return strings.Join(lines, "\n"), resp
}

func quotaMatch(kind string, match kmsg.QuotasMatchType, name ...string) kmsg.DescribeClientQuotasRequestComponent {
	p := kmsg.NewDescribeClientQuotasRequestComponent()
	p.EntityType, p.MatchType = kind, match
	if len(name) > 0 {
		p.Match = &name[0]
	}
	return p
}

// Quotas are set, selected by every kind of filter, changed and removed.
func TestClientQuotas_SetSelectRemove(t *testing.T) {
	c := newTestBroker(t, testOptions{}).dial()
	both := quotaEntryOf("user", "alice", "producer_byte_rate", 1000)
	both.Entity = append(both.Entity, quotaPart("client-id", defaultName))
	percent := kmsg.NewAlterClientQuotasRequestEntryOp()
	percent.Key, percent.Value = "request_percentage", 12.5
	both.Ops = append(both.Ops, percent)
	codes, why := alterQuotas(c, false,
		both, quotaEntryOf("user", "alice", "consumer_byte_rate", 2000), quotaEntryOf("user", defaultName, "controller_mutation_rate", 0.5),
		quotaEntryOf("client-id", "app", "producer_byte_rate", 3000), quotaEntryOf("ip", "10.0.0.1", "connection_creation_rate", 5))
	if fmt.Sprint(codes) != "[NONE NONE NONE NONE NONE]" {
		t.Fatalf("%v %s", codes, why)
	}
	const (
		alice   = "user=alice consumer_byte_rate=2000"
		anyUser = "user=(default) controller_mutation_rate=0.5"
		pair    = "user=alice,client-id=(default) producer_byte_rate=1000 request_percentage=12.5"
		app     = "client-id=app producer_byte_rate=3000"
		ip      = "ip=10.0.0.1 connection_creation_rate=5"
	)
	for _, q := range []struct {
		name   string
		strict bool
		parts  []kmsg.DescribeClientQuotasRequestComponent
		want   []string
	}{
		{"all", false, nil, []string{ip, app, alice, pair, anyUser}},
		{"nothing else than nothing", true, nil, nil},
		{"any user", false, []kmsg.DescribeClientQuotasRequestComponent{quotaMatch("user", 2)}, []string{alice, pair, anyUser}},
		{"any user, alone", true, []kmsg.DescribeClientQuotasRequestComponent{quotaMatch("user", 2)}, []string{alice, anyUser}},
		{"a user", false, []kmsg.DescribeClientQuotasRequestComponent{quotaMatch("user", 0, "alice")}, []string{alice, pair}},
		{"the default user", false, []kmsg.DescribeClientQuotasRequestComponent{quotaMatch("user", 1)}, []string{anyUser}},
		{"a user with the default client", true, []kmsg.DescribeClientQuotasRequestComponent{quotaMatch("user", 0, "alice"), quotaMatch("client-id", 1)}, []string{pair}},
		{"a client", true, []kmsg.DescribeClientQuotasRequestComponent{quotaMatch("client-id", 0, "app")}, []string{app}},
		{"addresses", false, []kmsg.DescribeClientQuotasRequestComponent{quotaMatch("ip", 2)}, []string{ip}},
		{"nobody", false, []kmsg.DescribeClientQuotasRequestComponent{quotaMatch("user", 0, "bob")}, nil},
	} {
		if got, resp := describeQuotas(c, q.strict, q.parts...); got != strings.Join(q.want, "\n") || resp.ErrorCode != 0 || resp.Entries == nil {
			t.Errorf("%s: %d\n%s\nwant\n%s", q.name, resp.ErrorCode, got, strings.Join(q.want, "\n"))
		}
	}
	// What only validates changes nothing; a value is replaced; a removal of what is there and of what is not there succeed.
	if codes, why := alterQuotas(c, true, quotaEntryOf("client-id", "app", "producer_byte_rate", 1)); codes[0] != kafka.None {
		t.Errorf("validated: %v %s", codes, why)
	}
	setQuota(c, "ip", "10.0.0.1", "connection_creation_rate", 6)
	gone := quotaEntryOf("user", "alice", "consumer_byte_rate", 0)
	gone.Ops[0].Remove = true
	for range 2 {
		if codes, why := alterQuotas(c, false, gone); codes[0] != kafka.None {
			t.Errorf("removed: %v %s", codes, why)
		}
	}
	if got, _ := describeQuotas(c, false); got != strings.Join([]string{"ip=10.0.0.1 connection_creation_rate=6", app, pair, anyUser}, "\n") {
		t.Errorf("in the end:\n%s", got)
	}
}

// Faulty changes and filters are refused with the reason; the other entities of the request are changed.
func TestClientQuotas_Refused(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	twice := quotaEntryOf("user", "a", "producer_byte_rate", 1)
	twice.Entity = append(twice.Entity, quotaPart("user", "b"))
	mixed := quotaEntryOf("ip", "10.0.0.1", "connection_creation_rate", 1)
	mixed.Entity = append(mixed.Entity, quotaPart("user", "b"))
	for _, r := range []struct {
		entry kmsg.AlterClientQuotasRequestEntry
		why   string
	}{
		{quotaEntryOf("group", "x", "producer_byte_rate", 1), `type "group"`},
		{quotaEntryOf("user", "x", "no_such_rate", 1), `no quota "no_such_rate"`},
		{quotaEntryOf("user", "", "producer_byte_rate", 1), "1 to 1024"},
		{quotaEntryOf("user", "x", "producer_byte_rate", -1), "greater than 0"},
		{quotaEntryOf("user", "x", "producer_byte_rate", 0.5), "whole number"},
		{quotaEntryOf("user", "x", "connection_creation_rate", 1), "cannot be set for user x"},
		{quotaEntryOf("ip", "not an address", "connection_creation_rate", 1), "not an IP address"},
		{kmsg.NewAlterClientQuotasRequestEntry(), "empty"},
		{twice, "two parts of type user"},
		{mixed, "cannot be combined"},
	} {
		codes, why := alterQuotas(c, false, r.entry, quotaEntryOf("user", "good", "producer_byte_rate", 1))
		if codes[0] != kafka.InvalidRequest || codes[1] != kafka.None || !strings.Contains(why, r.why) {
			t.Errorf("%v %q, want %q", codes, why, r.why)
		}
	}
	if got, _ := describeQuotas(c, false); got != "user=good producer_byte_rate=1" {
		t.Errorf("there is: %s", got)
	}
	many := make([]kmsg.AlterClientQuotasRequestEntry, adminItemsMax+1)
	for i := range many {
		many[i] = quotaEntryOf("user", fmt.Sprint(i), "producer_byte_rate", 1)
	}
	if codes, _ := alterQuotas(c, false, many...); len(codes) != len(many) || codes[0] != kafka.PolicyViolation {
		t.Errorf("%d entities: %d answers, the first %v", len(many), len(codes), codes[0])
	}
	for _, f := range []struct {
		parts []kmsg.DescribeClientQuotasRequestComponent
		code  kafka.ErrorCode
		why   string
	}{
		{[]kmsg.DescribeClientQuotasRequestComponent{quotaMatch("group", 2)}, kafka.UnsupportedVersion, `type "group"`},
		{[]kmsg.DescribeClientQuotasRequestComponent{quotaMatch("user", 2), quotaMatch("user", 2)}, kafka.InvalidRequest, "more than once"},
		{[]kmsg.DescribeClientQuotasRequestComponent{quotaMatch("user", 3)}, kafka.InvalidRequest, "no match type 3"},
		{[]kmsg.DescribeClientQuotasRequestComponent{quotaMatch("user", 0)}, kafka.InvalidRequest, "has none"},
		{[]kmsg.DescribeClientQuotasRequestComponent{quotaMatch("user", 1, "x")}, kafka.InvalidRequest, "does not ask for"},
		{[]kmsg.DescribeClientQuotasRequestComponent{quotaMatch("user", 2), quotaMatch("ip", 2)}, kafka.InvalidRequest, "an ip has quotas of its own"},
	} {
		_, resp := describeQuotas(c, false, f.parts...)
		if kafka.ErrorCode(resp.ErrorCode) != f.code || resp.ErrorMessage == nil || !strings.Contains(*resp.ErrorMessage, f.why) || resp.Entries != nil {
			t.Errorf("%+v: %+v, want %v %q", f.parts, resp, f.code, f.why)
		}
	}
}
