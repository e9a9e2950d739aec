package metadata

import (
	"math"
	"strings"
	"testing"

	"strandline.dev/internal/kafka"
)

// setQuotas makes quotas, all of one kind.
func setQuotas(t *testing.T, i **Image, k QuotaKind, value float64, es ...QuotaEntity) {
	t.Helper()
	for _, e := range es {
		if r := decided[[]QuotaAltered](t, i, AlterQuotas{Entities: []QuotaChange{{e, []QuotaOp{{Kind: k, Value: value}}}}})[0]; !r.OK() {
			t.Fatal(r.Message)
		}
		value++
	}
}

// The order of entities by which a client's quota is found, and a step down it each time the one that held is removed (R125).
func TestR125_OrderOfEntities(t *testing.T) {
	user, anyUser := QuotaNamed("alice"), QuotaDefault()
	client, anyClient := QuotaNamed("app"), QuotaDefault()
	order := []QuotaEntity{
		{User: user, Client: client}, {User: user, Client: anyClient}, {User: user},
		{User: anyUser, Client: client}, {User: anyUser, Client: anyClient}, {User: anyUser},
		{Client: client}, {Client: anyClient},
	}
	i := Empty()
	setQuotas(t, &i, QuotaProduce, 1, order...)
	// The others of their kind, and another kind of the same entity, change nothing.
	setQuotas(t, &i, QuotaProduce, 100, QuotaEntity{User: QuotaNamed("bob"), Client: client}, QuotaEntity{User: user, Client: QuotaNamed("other")})
	setQuotas(t, &i, QuotaFetch, 200, order[0])
	for n, e := range order {
		if q, ok := i.ClientQuota("alice", "app", QuotaProduce); !ok || q != (Quota{e, QuotaProduce, float64(n + 1)}) {
			t.Errorf("with %d of them left: %+v, want that of %v", len(order)-n, q, e)
		}
		decided[[]QuotaAltered](t, &i, AlterQuotas{Entities: []QuotaChange{{e, []QuotaOp{{Kind: QuotaProduce, Remove: true}}}}})
	}
	if q, ok := i.ClientQuota("alice", "app", QuotaProduce); ok {
		t.Errorf("with none left: %+v", q)
	}
	if q, ok := i.ClientQuota("alice", "app", QuotaFetch); !ok || q.Value != 200 {
		t.Errorf("the other kind: %+v, %v", q, ok)
	}
	if i.QuotaCount() != 3 {
		t.Errorf("%d quotas are left", i.QuotaCount())
	}
}

// An address has its own quota, or the default of all; a client without a name has the default ones.
func TestClientQuota_DefaultsAndAddresses(t *testing.T) {
	i := Empty()
	if _, ok := i.AddressQuota("10.0.0.1"); ok {
		t.Error("a quota where there is none")
	}
	setQuotas(t, &i, QuotaConnection, 5, QuotaEntity{IP: QuotaDefault()}, QuotaEntity{IP: QuotaNamed("10.0.0.1")})
	for address, want := range map[string]float64{"10.0.0.1": 6, "10.0.0.2": 5, "": 5} {
		if q, ok := i.AddressQuota(address); !ok || q.Value != want {
			t.Errorf("%q: %+v, want %v", address, q, want)
		}
	}
	setQuotas(t, &i, QuotaRequest, 7, QuotaEntity{Client: QuotaDefault()})
	if q, ok := i.ClientQuota("ANONYMOUS", "", QuotaRequest); !ok || q.Value != 7 {
		t.Errorf("without a client id: %+v", q)
	}
}

// What is no quota is refused with the reason, and changes nothing (K55).
func TestAlterQuotas_Refused(t *testing.T) {
	alice, ip := QuotaEntity{User: QuotaNamed("alice")}, QuotaEntity{IP: QuotaDefault()}
	long := strings.Repeat("x", quotaNameMax+1)
	i := Empty()
	setQuotas(t, &i, QuotaFetch, 9, alice)
	for _, c := range []struct {
		entity QuotaEntity
		ops    []QuotaOp
		why    string
	}{
		{QuotaEntity{}, []QuotaOp{{Kind: QuotaProduce, Value: 1}}, "empty"},
		{QuotaEntity{User: QuotaNamed("")}, nil, "1 to 1024"},
		{QuotaEntity{User: QuotaNamed(long)}, nil, "1 to 1024"},
		{QuotaEntity{User: QuotaName{3, "x"}}, nil, "neither a name nor the default"},
		{QuotaEntity{User: QuotaName{ScopeDefault, "x"}}, nil, "neither a name nor the default"},
		{QuotaEntity{User: QuotaNamed("alice"), IP: QuotaDefault()}, nil, "cannot be combined"},
		{QuotaEntity{IP: QuotaNamed("localhost")}, nil, "not an IP address"},
		{QuotaEntity{IP: QuotaNamed("::ffff:10.0.0.1")}, nil, "not an IP address as"},
		{alice, []QuotaOp{{Kind: 0, Value: 1}}, "no quota of kind 0"},
		{alice, []QuotaOp{{Kind: 6, Value: 1}}, "no quota of kind 6"},
		{alice, []QuotaOp{{Kind: QuotaConnection, Value: 1}}, "cannot be set for user alice"},
		{ip, []QuotaOp{{Kind: QuotaProduce, Value: 1}}, "cannot be set for ip (default)"},
		{alice, []QuotaOp{{Kind: QuotaProduce, Value: 0}}, "greater than 0"},
		{alice, []QuotaOp{{Kind: QuotaProduce, Value: -5}}, "greater than 0"},
		{alice, []QuotaOp{{Kind: QuotaRequest, Value: math.NaN()}}, "greater than 0"},
		{alice, []QuotaOp{{Kind: QuotaRequest, Value: math.Inf(1)}}, "greater than 0"},
		{alice, []QuotaOp{{Kind: QuotaProduce, Value: 1.5}}, "whole number"},
		{alice, []QuotaOp{{Kind: QuotaFetch, Value: 1e300}}, "whole number"},
		{alice, []QuotaOp{{Kind: QuotaProduce, Value: 1}, {Kind: QuotaProduce, Value: 2}}, "more than once"},
		{alice, []QuotaOp{{Kind: QuotaFetch, Remove: true}, {Kind: QuotaProduce, Value: -1}}, "greater than 0"}, // whole or not at all
	} {
		d := i.Decide(AlterQuotas{Entities: []QuotaChange{{c.entity, c.ops}}})
		if r := d.Reply.([]QuotaAltered)[0]; r.Code != kafka.InvalidRequest || !strings.Contains(r.Message, c.why) || len(d.Records) != 0 {
			t.Errorf("%+v %+v: %v %q, %d records; want %q", c.entity, c.ops, r.Code, r.Message, len(d.Records), c.why)
		}
	}
	// Entities are judged each on its own.
	d := i.Decide(AlterQuotas{Entities: []QuotaChange{{alice, nil}, {QuotaEntity{}, nil}, {alice, nil}}})
	var codes []kafka.ErrorCode
	for _, r := range d.Reply.([]QuotaAltered) {
		codes = append(codes, r.Code)
	}
	if codes[0] != kafka.None || codes[1] != kafka.InvalidRequest || codes[2] != kafka.InvalidRequest {
		t.Errorf("%v", codes)
	}
}

// Quotas are bounded, and at the limit what is there can still be changed and removed (I14).
func TestAlterQuotas_Limit(t *testing.T) {
	d := Empty().draft()
	for n := range QuotasMax {
		e := QuotaEntity{User: QuotaNamed(strings.Repeat("u", n%1000+1)), Client: QuotaNamed(strings.Repeat("c", n/1000+1))}
		if err := d.apply(QuotaRecord{Quota: Quota{e, QuotaProduce, 1}}); err != nil {
			t.Fatal(err)
		}
	}
	i := &d.Image
	there := QuotaEntity{User: QuotaNamed("u"), Client: QuotaNamed("c")}
	for _, c := range []struct {
		name string
		ops  []QuotaOp
		want kafka.ErrorCode
	}{
		{"one more", []QuotaOp{{Kind: QuotaFetch, Value: 1}}, kafka.PolicyViolation},
		{"another value", []QuotaOp{{Kind: QuotaProduce, Value: 2}}, kafka.None},
		{"one for another", []QuotaOp{{Kind: QuotaProduce, Remove: true}, {Kind: QuotaFetch, Value: 1}}, kafka.None},
	} {
		if r := i.Decide(AlterQuotas{Entities: []QuotaChange{{there, c.ops}}}).Reply.([]QuotaAltered)[0]; r.Code != c.want {
			t.Errorf("%s: %v %s", c.name, r.Code, r.Message)
		}
	}
}

// Quotas are in snapshots, only a change of them makes two Images differ in them, and what only validates changes nothing.
func TestR125_QuotasSurviveASnapshot(t *testing.T) {
	i := Empty()
	setQuotas(t, &i, QuotaProduce, 1<<20, QuotaEntity{User: QuotaDefault(), Client: QuotaNamed("app")}, QuotaEntity{Client: QuotaDefault()})
	setQuotas(t, &i, QuotaRequest, 12.5, QuotaEntity{User: QuotaNamed("alice")})
	back, err := DecodeImage(EncodeImage(nil, i))
	if err != nil {
		t.Fatal(err)
	}
	var was, is []Quota
	for q := range i.Quotas() {
		was = append(was, q)
	}
	for q := range back.Quotas() {
		is = append(is, q)
	}
	if len(was) != 3 || len(is) != 3 || was[0] != is[0] || was[1] != is[1] || was[2] != is[2] {
		t.Errorf("%+v became %+v", was, is)
	}
	other, err := i.Apply(i.Version()+1, []Record{ProducerIDsRecord{Next: 5}})
	if err != nil || !other.SameQuotas(i) {
		t.Errorf("another change changes the quotas: %v", err)
	}
	ev := AlterQuotas{Entities: []QuotaChange{{QuotaEntity{Client: QuotaDefault()}, []QuotaOp{{Kind: QuotaProduce, Value: 5}}}}, ValidateOnly: true}
	if d := i.Decide(ev); len(d.Records) != 0 || !d.Reply.([]QuotaAltered)[0].OK() {
		t.Errorf("validated: %+v", d)
	}
	ev.ValidateOnly = false
	if changed, err := i.Apply(i.Version()+1, i.Decide(ev).Records); err != nil || changed.SameQuotas(i) {
		t.Errorf("a changed quota: %v", err)
	}
	ev.Entities[0].Ops[0].Value = 1<<20 + 1
	if d := i.Decide(ev); len(d.Records) != 0 {
		t.Errorf("what is there already is written again: %+v", d.Records)
	}
}
