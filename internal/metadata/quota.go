package metadata

import (
	"cmp"
	"iter"
	"math"
	"strings"
)

// QuotaKind is what a quota limits.
type QuotaKind int8

// The kinds of quotas. The numbers are in records.
const (
	// QuotaProduce and QuotaFetch limit bytes of records a second.
	QuotaProduce QuotaKind = 1
	QuotaFetch   QuotaKind = 2
	// QuotaRequest limits the time that requests take, in percent of one core.
	QuotaRequest QuotaKind = 3
	// QuotaMutation limits the partitions made and deleted a second.
	QuotaMutation QuotaKind = 4
	// QuotaConnection limits the connections made a second from an address.
	QuotaConnection QuotaKind = 5

	quotaLast = QuotaConnection
)

// quotaNames are Kafka's names of the kinds.
var quotaNames = [...]string{
	QuotaProduce: "producer_byte_rate", QuotaFetch: "consumer_byte_rate", QuotaRequest: "request_percentage",
	QuotaMutation: "controller_mutation_rate", QuotaConnection: "connection_creation_rate",
}

// String returns Kafka's name of the kind.
func (k QuotaKind) String() string {
	if k < 1 || k > quotaLast {
		return "unknown"
	}
	return quotaNames[k]
}

// ParseQuotaKind finds a kind by Kafka's name; false when there is none.
func ParseQuotaKind(name string) (QuotaKind, bool) {
	for k := QuotaKind(1); k <= quotaLast; k++ {
		if quotaNames[k] == name {
			return k, true
		}
	}
	return 0, false
}

// QuotaScope says how much of a type of client an entity is about.
type QuotaScope int8

// The scopes. The numbers are in records.
const (
	ScopeNone    QuotaScope = 0 // the entity does not ask
	ScopeNamed   QuotaScope = 1 // one by name
	ScopeDefault QuotaScope = 2 // each one that has no quota by name
)

// QuotaName is one part of an entity.
type QuotaName struct {
	Scope QuotaScope
	Name  string // of ScopeNamed
}

// QuotaNamed and QuotaDefault make parts of an entity.
func QuotaNamed(name string) QuotaName { return QuotaName{ScopeNamed, name} }

// QuotaDefault is the part of whoever has no quota by name.
func QuotaDefault() QuotaName { return QuotaName{Scope: ScopeDefault} }

// QuotaEntity says whose quota it is: that of a user, a client id, both, or an address.
type QuotaEntity struct {
	User, Client, IP QuotaName
}

// String returns the entity for people: "user alice, client-id default".
func (e QuotaEntity) String() string {
	var b strings.Builder
	for _, p := range e.Parts() {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.Type)
		b.WriteByte(' ')
		if p.Scope == ScopeDefault {
			b.WriteString("(default)")
			continue
		}
		b.WriteString(p.Name)
	}
	return b.String()
}

// QuotaPart is a part of an entity with Kafka's name of its type.
type QuotaPart struct {
	Type string
	QuotaName
}

// Kafka's names of the types of entities.
const (
	EntityUser   = "user"
	EntityClient = "client-id"
	EntityIP     = "ip"
)

// Parts lists what the entity asks, the user first.
func (e QuotaEntity) Parts() []QuotaPart {
	var out []QuotaPart
	for _, p := range []QuotaPart{{EntityUser, e.User}, {EntityClient, e.Client}, {EntityIP, e.IP}} {
		if p.Scope != ScopeNone {
			out = append(out, p)
		}
	}
	return out
}

// Quota is one limit of one entity.
type Quota struct {
	Entity QuotaEntity
	Kind   QuotaKind
	Value  float64
}

type quotaKey struct {
	entity QuotaEntity
	kind   QuotaKind
}

func compareQuotas(a, b quotaKey) int {
	name := func(a, b QuotaName) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), strings.Compare(a.Name, b.Name))
	}
	return cmp.Or(
		name(a.entity.User, b.entity.User), name(a.entity.Client, b.entity.Client), name(a.entity.IP, b.entity.IP), cmp.Compare(a.kind, b.kind),
	)
}

// Quotas yields the quotas, those of one entity one after the other.
func (i *Image) Quotas() iter.Seq[Quota] {
	return func(yield func(Quota) bool) {
		for k, v := range i.quotas.all() {
			if !yield(Quota{k.entity, k.kind, v}) {
				return
			}
		}
	}
}

// QuotaCount counts the quotas.
func (i *Image) QuotaCount() int { return i.quotas.size }

// SameQuotas says that two Images share their quotas. It is cheap; false may also mean that equal quotas were written anew.
func (i *Image) SameQuotas(other *Image) bool { return i.quotas.same(&other.quotas) }

// OnlyQuotas returns an Image with these quotas and nothing else, for those who keep it longer than the Image: it keeps no topic alive.
func (i *Image) OnlyQuotas() *Image {
	only := Empty()
	only.version, only.quotas = i.version, i.quotas
	return only
}

// Quota returns the value of an entity's own quota; false when it has none.
func (i *Image) Quota(e QuotaEntity, k QuotaKind) (float64, bool) {
	return i.quotas.get(quotaKey{e, k})
}

// ClientQuota returns the quota that holds for a client, by Kafka's order of entities: a quota of the user with the client id comes before one of the
// user, that before one of the client id, and a name before a default. The entity it was found at says who shares it.
func (i *Image) ClientQuota(user, client string, k QuotaKind) (Quota, bool) {
	if i.quotas.size == 0 {
		return Quota{}, false
	}
	none := QuotaName{}
	for _, e := range [...]QuotaEntity{
		{User: QuotaNamed(user), Client: QuotaNamed(client)},
		{User: QuotaNamed(user), Client: QuotaDefault()},
		{User: QuotaNamed(user), Client: none},
		{User: QuotaDefault(), Client: QuotaNamed(client)},
		{User: QuotaDefault(), Client: QuotaDefault()},
		{User: QuotaDefault(), Client: none},
		{User: none, Client: QuotaNamed(client)},
		{User: none, Client: QuotaDefault()},
	} {
		if v, ok := i.Quota(e, k); ok {
			return Quota{e, k, v}, true
		}
	}
	return Quota{}, false
}

// AddressQuota returns the quota that holds for connections from an address.
func (i *Image) AddressQuota(address string) (Quota, bool) {
	for _, e := range [...]QuotaEntity{{IP: QuotaNamed(address)}, {IP: QuotaDefault()}} {
		if v, ok := i.Quota(e, QuotaConnection); ok {
			return Quota{e, QuotaConnection, v}, true
		}
	}
	return Quota{}, false
}

// QuotaRecord sets or removes a quota; of a removed one the value is 0.
type QuotaRecord struct {
	Quota   Quota
	Removed bool
}

func (QuotaRecord) recordType() uint8 { return 14 }

func (d *draft) applyQuota(r QuotaRecord) error {
	k := quotaKey{r.Quota.Entity, r.Quota.Kind}
	fault := r.Quota.Entity.Fault()
	if fault == "" && !r.Removed {
		fault = r.Quota.Fault()
	}
	if fault != "" {
		return bad("quota %+v: %s", r.Quota, fault)
	}
	if !r.Removed {
		d.quotas.set(d.own, k, r.Quota.Value)
		return nil
	}
	if _, there := d.quotas.get(k); !there || r.Quota.Value != 0 {
		return bad("%v has no quota %v to remove", r.Quota.Entity, r.Quota.Kind)
	}
	d.quotas.remove(d.own, k)
	return nil
}

// quotaRecords is the shortest list of records that leads to these quotas.
func (i *Image) quotaRecords(rs []Record) []Record {
	for q := range i.Quotas() {
		rs = append(rs, QuotaRecord{Quota: q})
	}
	return rs
}

// whole says whether a value is a whole number that an int64 can hold.
func whole(v float64) bool { return v == math.Trunc(v) && v < math.MaxInt64 }
