package server

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"strandline.dev/internal/audit"
	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// testTrail is an audit trail in memory, which can be made to take nothing.
type testTrail struct {
	mu     sync.Mutex
	events []auth.Event
	broken bool
}

func (a *testTrail) Note(ev auth.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events = append(a.events, ev)
}

func (a *testTrail) Begin(_ context.Context, ev auth.Event) (func(string), error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken {
		return nil, audit.ErrUnavailable
	}
	at := len(a.events)
	ev.Outcome = "begun"
	a.events = append(a.events, ev)
	return func(outcome string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.events[at].Outcome = outcome
	}, nil
}

// take returns what was kept since the last time, and whether the trail works from now on.
func (a *testTrail) take(works bool) []auth.Event {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.events
	a.events, a.broken = nil, !works
	return out
}

// changeCase is an administrative request, and what the trail says of it.
type changeCase struct {
	name     string
	req      func() kmsg.Request
	resource string
	before   string // a part of it
	after    string
}

const auditCanary = "canary-5b1e6f0a9d"

// accessRequests are changes of who may come in and do what. The salt and the password have the canary in them.
func accessRequests() (scram, acl, noACL func() kmsg.Request) {
	scram = func() kmsg.Request {
		r := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
		up := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
		up.Name, up.Mechanism, up.Iterations, up.Salt, up.SaltedPassword = "bob", 2, 4096, []byte(auditCanary), []byte(auditCanary+strings.Repeat("x", 64-len(auditCanary)))
		r.Upsertions = append(r.Upsertions, up)
		return r
	}
	acl = func() kmsg.Request {
		r := kmsg.NewPtrCreateACLsRequest()
		r.Version = 3
		c := kmsg.NewCreateACLsRequestCreation()
		c.ResourceType, c.ResourceName, c.ResourcePatternType = kmsg.ACLResourceTypeTopic, "orders", kmsg.ACLResourcePatternTypeLiteral
		c.Principal, c.Host, c.Operation, c.PermissionType = "User:bob", "*", kmsg.ACLOperationRead, kmsg.ACLPermissionTypeAllow
		r.Creations = append(r.Creations, c)
		return r
	}
	noACL = func() kmsg.Request {
		r := kmsg.NewPtrDeleteACLsRequest()
		r.Version = 3
		f := kmsg.NewDeleteACLsRequestFilter()
		f.ResourceType, f.ResourcePatternType, f.Operation, f.PermissionType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny, kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
		r.Filters = append(r.Filters, f)
		return r
	}
	return scram, acl, noACL
}

func changeCases(id kafka.TopicID) []changeCase {
	scram, acl, noACL := accessRequests()
	configs := func() kmsg.Request {
		r := kmsg.NewPtrIncrementalAlterConfigsRequest()
		r.Version = 1
		res := kmsg.NewIncrementalAlterConfigsRequestResource()
		res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeTopic, "orders"
		res.Configs = append(res.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: "retention.ms", Value: kmsg.StringPtr("7200000")})
		r.Resources = append(r.Resources, res)
		return r
	}
	grow := func() kmsg.Request {
		r := kmsg.NewPtrCreatePartitionsRequest()
		r.Version, r.TimeoutMillis = 3, 10_000
		t := kmsg.NewCreatePartitionsRequestTopic()
		t.Topic, t.Count = "orders", 3
		r.Topics = append(r.Topics, t)
		return r
	}
	seek := func() kmsg.Request {
		r := newCommit("orders", id, 7)
		r.Generation = -1
		r.UnknownTags.Set(seekTag, []byte{seekTo})
		return r
	}
	groups := func() kmsg.Request {
		r := kmsg.NewPtrDeleteGroupsRequest()
		r.Version, r.Groups = 2, []string{testGroup}
		return r
	}
	offsets := func() kmsg.Request {
		r := kmsg.NewPtrOffsetDeleteRequest()
		r.Group = testGroup
		t := kmsg.NewOffsetDeleteRequestTopic()
		t.Topic, t.Partitions = "orders", []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}
		r.Topics = append(r.Topics, t)
		return r
	}
	drop := func() kmsg.Request {
		r := kmsg.NewPtrDeleteTopicsRequest()
		r.Version, r.TimeoutMillis = 5, 10_000
		r.TopicNames = []string{"orders"}
		return r
	}
	return []changeCase{
		{"CreateTopics", func() kmsg.Request { return newCreate("more", 2, "retention.ms", "3600000") }, "Topic:more", "", "more: 2 partitions, 1 replicas retention.ms=3600000"},
		{"AlterConfigs", configs, "Topic:orders", "retention.ms=3600000", "retention.ms=7200000"},
		{"CreatePartitions", grow, "Topic:orders", "1 partitions", "3 partitions"},
		{"AlterScram", scram, "User:bob", "", "another password"},
		{"CreateACLs", acl, "TOPIC:orders", "", "User:bob"},
		{"DeleteACLs", noACL, "TOPIC:orders", "User:bob", ""},
		{"SeekGroup", seek, "Group:" + testGroup, "", "orders-0: offset 7"},
		{"DeleteRecords", func() kmsg.Request { return newDeleteRecords("orders", 0, 0) }, "Topic:orders", "", "orders-0: nothing below offset 0"},
		{"OffsetDelete", offsets, "Group:" + testGroup, "", "orders [0]"},
		{"DeleteGroups", groups, "Group:" + testGroup, "", "no such groups"},
		{"AlterQuotas", func() kmsg.Request {
			r := kmsg.NewPtrAlterClientQuotasRequest()
			r.Entries = append(r.Entries, quotaEntryOf("user", "bob", "producer_byte_rate", 1024))
			return r
		}, "Quota:user bob", "producer_byte_rate not set", "user bob: producer_byte_rate=1024"},
		{"AddRaftVoter", func() kmsg.Request { r := kmsg.NewPtrAddRaftVoterRequest(); r.VoterID = 1; return r }, "Broker:1", "controllers 1", ""},
		{"RemoveRaftVoter", func() kmsg.Request { r := kmsg.NewPtrRemoveRaftVoterRequest(); r.VoterID = 1; return r }, "Broker:1", "controllers 1", ""},
		{"DeleteTopics", drop, "Topic:orders", "retention.ms=7200000", ""},
	}
}

// TestC096_NoChangeWithoutItsEntry: a change that the trail cannot keep is refused and not made, while data goes on; one that it keeps is made, with
// what was there before and what is to be, and no secret (R152, C096).
func TestC096_NoChangeWithoutItsEntry(t *testing.T) {
	trail := &testTrail{}
	access := auth.Options{Enforced: true, Supers: []kafka.Principal{kafka.Anonymous}}
	b := newTestBroker(t, testOptions{audit: trail, access: access, voters: &fakeVoters{}, broker: map[string]string{"group.initial.rebalance.delay.ms": "0"}})
	c := b.dial()
	findCoordinator(c)
	id := c.create("orders", 1, "retention.ms", "3600000")
	if code := commit(c, func() *kmsg.OffsetCommitRequest { r := newCommit("orders", id, 5); r.Generation = -1; return r }()); code != kafka.None {
		t.Fatal(code)
	}
	for _, one := range changeCases(id) {
		trail.take(false)
		was := b.quorum.Image().Version()
		req := one.req()
		codes := errorCodes(reflect.ValueOf(ask[kmsg.Response](c, req)))
		if !strings.Contains(fmt.Sprint(codes), kafka.PolicyViolation.String()) || b.quorum.Image().Version() != was {
			t.Errorf("%s without a trail: %v, version %d, was %d", one.name, codes, b.quorum.Image().Version(), was)
		}
		if one.name != "DeleteTopics" {
			if p := c.publish(newProduce("orders", 0, b.newBatch("data goes on"))); p.ErrorCode != 0 {
				t.Errorf("%s: publish: %v", one.name, kafka.ErrorCode(p.ErrorCode))
			}
		}
		trail.take(true)
		codes = errorCodes(reflect.ValueOf(ask[kmsg.Response](c, one.req())))
		for _, code := range codes {
			if code != kafka.None {
				t.Errorf("%s: %v", one.name, codes)
			}
		}
		events := trail.take(true)
		if len(events) != 1 {
			t.Errorf("%s: %+v", one.name, events)
			continue
		}
		ev := events[0]
		if ev.What != auth.Change || ev.API != one.name || ev.Resource != one.resource || ev.Outcome != "" || ev.Principal != kafka.Anonymous || ev.Peer == "" ||
			!strings.Contains(ev.Before, one.before) || !strings.Contains(ev.After, one.after) {
			t.Errorf("%s: %+v", one.name, ev)
		}
		if strings.Contains(fmt.Sprintf("%+v %q", ev, ev), auditCanary) {
			t.Errorf("%s: a secret is in %+v", one.name, ev)
		}
	}
}

// TestR152_RefusedChangeSaysWhy: the trail says of a change that the controller refused, why.
func TestR152_RefusedChangeSaysWhy(t *testing.T) {
	trail := &testTrail{}
	c := newTestBroker(t, testOptions{audit: trail}).dial()
	c.create("orders", 1)
	trail.take(true)
	ask[*kmsg.CreateTopicsResponse](c, newCreate("orders", 1))
	validate := newCreate("other", 1)
	validate.ValidateOnly = true
	ask[*kmsg.CreateTopicsResponse](c, validate)
	if events := trail.take(true); len(events) != 1 || !strings.Contains(events[0].Outcome, kafka.TopicAlreadyExists.String()) {
		t.Errorf("%+v", events)
	}
}

// TestR3_DenialIsKept: who may not create a topic is in the trail, with what was missing.
func TestR3_DenialIsKept(t *testing.T) {
	trail := &testTrail{}
	b := newTestBroker(t, testOptions{audit: trail, access: auth.Options{Enforced: true}})
	c := b.dial()
	ask[*kmsg.CreateTopicsResponse](c, newCreate("orders", 1))
	events := trail.take(true)
	if len(events) == 0 || events[0].What != auth.Denied || !strings.Contains(events[0].Resource, "orders") || events[0].Outcome == "" {
		t.Errorf("%+v", events)
	}
	for _, ev := range events {
		if ev.What == auth.Change {
			t.Errorf("denied, and begun: %+v", ev)
		}
	}
	var none metadata.Event = metadata.DrainBroker{}
	if ev, ok := b.server.changeOf(none); !ok || ev.API != "DrainBroker" || ev.Resource == "" {
		t.Errorf("a change of another kind: %v %+v", ok, ev)
	}
}

// TestR152_FailedLoginIsKept: a wrong password is in the trail, the password is not.
func TestR152_FailedLoginIsKept(t *testing.T) {
	trail := &testTrail{}
	b := newTestBroker(t, testOptions{audit: trail, door: Door{SASL: []string{auth.Scram256}}})
	if err := b.login("t", kgo.SASL(scram.Auth{User: "bob", Pass: auditCanary}.AsSha256Mechanism())); err == nil {
		t.Fatal("let in")
	}
	events := trail.take(true)
	if len(events) == 0 || events[0].What != auth.LoginFailed || events[0].API != auth.Scram256 || events[0].Peer == "" || events[0].Outcome == "" || strings.Contains(fmt.Sprintf("%+v", events), auditCanary) {
		t.Errorf("%+v", events)
	}
}

// TestP45_TheTrailIsNobodysToShorten: no change of configs, by either request, lets entries of the trail go sooner than it was made with, or than they
// do now; the refusal names what and why. Raising is done.
func TestP45_TheTrailIsNobodysToShorten(t *testing.T) {
	b := newGuardedBroker(t)
	super := b.loggedInAs("super")
	_, _, err := b.control.Controller.Submit(t.Context(), metadata.CreateTopics{Topics: []metadata.NewTopic{
		{Name: audit.TopicName, Partitions: 1, ReplicationFactor: 1, Internal: true, Configs: metadata.AuditConfigs()},
	}})
	must(t, err)
	unset := func(name string) kmsg.Request {
		r := newAlter(wire.KeyIncrementalAlterConfigs, audit.TopicName, name, "").(*kmsg.IncrementalAlterConfigsRequest)
		r.Resources[0].Configs[0].Op, r.Resources[0].Configs[0].Value = kmsg.IncrementalAlterConfigOpDelete, nil
		return r
	}
	set := func(name, value string) kmsg.Request {
		return newAlter(wire.KeyIncrementalAlterConfigs, audit.TopicName, name, value)
	}
	replace := func(all ...string) kmsg.Request {
		r := newAlter(wire.KeyAlterConfigs, audit.TopicName, "cleanup.policy", "delete").(*kmsg.AlterConfigsRequest)
		for i := 0; i < len(all); i += 2 {
			c := kmsg.NewAlterConfigsRequestResourceConfig()
			c.Name, c.Value = all[i], &all[i+1]
			r.Resources[0].Configs = append(r.Resources[0].Configs, c)
		}
		return r
	}
	for _, one := range []struct {
		req   kmsg.Request
		named string // what the refusal names; "": it is done
	}{
		{set("retention.ms", "1"), "retention.ms=1:"}, {set("retention.ms", "31535999999"), "retention.ms=31535999999:"}, {unset("retention.ms"), "without retention.ms:"},
		{set("retention.bytes", "0"), "retention.bytes=0:"}, {set("retention.bytes", "9223372036854775806"), "retention.bytes=9223372036854775806:"}, {unset("retention.bytes"), "without retention.bytes:"},
		{set("strandline.minimum.retention.ms", "0"), "strandline.minimum.retention.ms=0:"}, {unset("strandline.minimum.retention.ms"), "without strandline.minimum.retention.ms:"},
		{replace(), "without retention.ms:"},
		{replace("retention.ms", "1", "retention.bytes", "-1", "strandline.minimum.retention.ms", "1209600000"), "retention.ms=1:"},
		{replace("retention.ms", "31536000000", "retention.bytes", "-1", "strandline.minimum.retention.ms", "1209600000"), ""},
		{set("segment.ms", "1000"), ""}, {set("retention.ms", "41536000000"), ""}, {set("retention.ms", "31536000000"), "retention.ms=31536000000:"},
		{set("retention.ms", "-1"), ""}, {set("retention.ms", "9000000000000000000"), "retention.ms=9000000000000000000:"},
		{set("strandline.minimum.retention.ms", "1209600001"), ""}, {set("strandline.minimum.retention.ms", "1209600000"), "strandline.minimum.retention.ms=1209600000:"},
	} {
		var code int16
		var message string
		switch resp := ask[kmsg.Response](super, one.req).(type) {
		case *kmsg.IncrementalAlterConfigsResponse:
			code, message = resp.Resources[0].ErrorCode, str(resp.Resources[0].ErrorMessage)
		case *kmsg.AlterConfigsResponse:
			code, message = resp.Resources[0].ErrorCode, str(resp.Resources[0].ErrorMessage)
		}
		switch {
		case one.named == "" && code != 0:
			t.Errorf("%+v: %v %s", one.req, kafka.ErrorCode(code), message)
		case one.named != "" && (kafka.ErrorCode(code) != kafka.PolicyViolation || !strings.Contains(message, one.named) || !strings.Contains(message, "audit trail")):
			t.Errorf("%q: %v %s", one.named, kafka.ErrorCode(code), message)
		}
	}
}
