package metadata

import (
	"fmt"
	"math"
	"net/netip"

	"strandline.dev/internal/kafka"
)

// Fault says why an entity cannot have quotas, or "".
func (e QuotaEntity) Fault() string {
	parts := e.Parts()
	if len(parts) == 0 {
		return "the entity is empty: a quota is for a user, a client-id, both, or an ip"
	}
	for _, p := range parts {
		switch {
		case p.Scope != ScopeNamed && p.Scope != ScopeDefault, p.Scope == ScopeDefault && p.Name != "":
			return fmt.Sprintf("the entity's %s is neither a name nor the default", p.Type)
		case p.Scope == ScopeNamed && (p.Name == "" || len(p.Name) > quotaNameMax):
			return fmt.Sprintf("the name of the entity's %s has %d bytes; it needs 1 to %d", p.Type, len(p.Name), quotaNameMax)
		}
	}
	if e.IP.Scope != ScopeNone && len(parts) > 1 {
		return "an ip has quotas of its own: it cannot be combined with a user or a client-id"
	}
	if e.IP.Scope == ScopeNamed {
		if a, err := netip.ParseAddr(e.IP.Name); err != nil || a.Zone() != "" || a.Unmap().String() != e.IP.Name {
			return fmt.Sprintf("%q is not an IP address as addresses are written", e.IP.Name)
		}
	}
	return ""
}

// Fault says why a quota cannot be one, or "".
func (q Quota) Fault() string {
	if fault := q.Entity.Fault(); fault != "" {
		return fault
	}
	address := q.Entity.IP.Scope != ScopeNone
	switch {
	case q.Kind < 1 || q.Kind > quotaLast:
		return fmt.Sprintf("there is no quota of kind %d", q.Kind)
	case address != (q.Kind == QuotaConnection):
		return fmt.Sprintf("%v cannot be set for %v: an ip has %v, users and client-ids have the others", q.Kind, q.Entity, QuotaConnection)
	case math.IsNaN(q.Value) || math.IsInf(q.Value, 0) || q.Value <= 0:
		return fmt.Sprintf("%v must be greater than 0, not %v", q.Kind, q.Value)
	case q.Kind != QuotaRequest && q.Kind != QuotaMutation && !whole(q.Value):
		return fmt.Sprintf("%v must be a whole number, not %v", q.Kind, q.Value)
	}
	return ""
}

// alterQuotas changes the quotas of each entity, whole or not at all. What is removed and was not there is no fault.
func (d *decider) alterQuotas(ev AlterQuotas) any {
	out := make([]QuotaAltered, len(ev.Entities))
	seen := map[QuotaEntity]bool{}
	for n, c := range ev.Entities {
		out[n].Outcome = d.quotaFault(c)
		if seen[c.Entity] {
			out[n].Outcome = refused(kafka.InvalidRequest, "%v is in the request more than once", c.Entity)
		}
		seen[c.Entity] = true
		if !out[n].OK() || ev.ValidateOnly {
			continue
		}
		for _, op := range c.Ops {
			old, there := d.Quota(c.Entity, op.Kind)
			switch {
			case op.Remove && there:
				d.write(QuotaRecord{Quota: Quota{Entity: c.Entity, Kind: op.Kind}, Removed: true})
			case !op.Remove && (!there || old != op.Value):
				d.write(QuotaRecord{Quota: Quota{c.Entity, op.Kind, op.Value}})
			}
		}
	}
	return out
}

// quotaFault judges the changes of one entity.
func (d *decider) quotaFault(c QuotaChange) Outcome {
	if fault := c.Entity.Fault(); fault != "" {
		return refused(kafka.InvalidRequest, "%s", fault)
	}
	more, seen := 0, map[QuotaKind]bool{}
	for _, op := range c.Ops {
		q := Quota{c.Entity, op.Kind, op.Value}
		if op.Remove {
			q.Value = 1
		}
		if fault := q.Fault(); fault != "" {
			return refused(kafka.InvalidRequest, "%s", fault)
		}
		if seen[op.Kind] {
			return refused(kafka.InvalidRequest, "%v of %v is in the request more than once", op.Kind, c.Entity)
		}
		seen[op.Kind] = true
		_, there := d.Quota(c.Entity, op.Kind)
		switch {
		case op.Remove && there:
			more--
		case !op.Remove && !there:
			more++
		}
	}
	if more > 0 && d.QuotaCount()+more > QuotasMax {
		return refused(kafka.PolicyViolation, "there are %d quotas, and the limit is %d; defaults need fewer", d.QuotaCount(), QuotasMax)
	}
	return Outcome{}
}
