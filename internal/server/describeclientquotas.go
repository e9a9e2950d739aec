package server

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// quotaFilter selects entities: of each type that it names those that match, and with strict only those that have no other type.
type quotaFilter struct {
	parts  map[string]kmsg.DescribeClientQuotasRequestComponent
	strict bool
}

// handleDescribeClientQuotas lists the quotas that a filter selects, those of one entity together.
func (s *Server) handleDescribeClientQuotas(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.DescribeClientQuotasRequest)
	resp := reply[*kmsg.DescribeClientQuotasResponse](req)
	filter, no := quotaFilterOf(req)
	if no.code != kafka.None {
		resp.ErrorCode, resp.ErrorMessage = int16(no.code), text(no.message)
		return ready(resp)
	}
	resp.Entries = []kmsg.DescribeClientQuotasResponseEntry{} // null is for errors
	var last metadata.QuotaEntity
	for q := range s.cfg.Image().Quotas() {
		if !filter.selects(q.Entity) {
			continue
		}
		if len(resp.Entries) == 0 || q.Entity != last {
			resp.Entries, last = append(resp.Entries, quotaEntry(q.Entity)), q.Entity
		}
		v := kmsg.NewDescribeClientQuotasResponseEntryValue()
		v.Key, v.Value = q.Kind.String(), q.Value
		at := &resp.Entries[len(resp.Entries)-1]
		at.Values = append(at.Values, v)
	}
	return ready(resp)
}

func quotaEntry(e metadata.QuotaEntity) kmsg.DescribeClientQuotasResponseEntry {
	entry := kmsg.NewDescribeClientQuotasResponseEntry()
	for _, p := range e.Parts() {
		part := kmsg.NewDescribeClientQuotasResponseEntryEntity()
		if part.Type = p.Type; p.Scope == metadata.ScopeNamed {
			part.Name = kmsg.StringPtr(p.Name)
		}
		entry.Entity = append(entry.Entity, part)
	}
	return entry
}

// The match types of a filter, by Kafka's numbers.
const (
	matchExact   = 0
	matchDefault = 1
	matchAny     = 2
)

func quotaFilterOf(req *kmsg.DescribeClientQuotasRequest) (quotaFilter, refusal) {
	f := quotaFilter{parts: map[string]kmsg.DescribeClientQuotasRequestComponent{}, strict: req.Strict}
	bad := func(format string, args ...any) (quotaFilter, refusal) {
		return f, refusal{kafka.InvalidRequest, fmt.Sprintf(format, args...)}
	}
	for _, c := range req.Components {
		_, again := f.parts[c.EntityType]
		switch {
		case c.EntityType != metadata.EntityUser && c.EntityType != metadata.EntityClient && c.EntityType != metadata.EntityIP:
			return f, refusal{kafka.UnsupportedVersion, fmt.Sprintf("entities of type %q have no quotas; user, client-id and ip have", clip(c.EntityType))}
		case again:
			return bad("the entity type %s is in the filter more than once", c.EntityType)
		case c.MatchType < matchExact || c.MatchType > matchAny:
			return bad("there is no match type %d: 0 is a name, 1 the default, 2 any", int8(c.MatchType))
		case c.MatchType == matchExact && c.Match == nil:
			return bad("the filter for %s asks for a name and has none", c.EntityType)
		case c.MatchType != matchExact && c.Match != nil:
			return bad("the filter for %s has a name that it does not ask for", c.EntityType)
		}
		f.parts[c.EntityType] = c
	}
	if _, address := f.parts[metadata.EntityIP]; address && len(f.parts) > 1 {
		return bad("an ip has quotas of its own: no filter selects it with a user or a client-id")
	}
	return f, refusal{}
}

func (f quotaFilter) selects(e metadata.QuotaEntity) bool {
	parts := e.Parts()
	matched := 0
	for _, p := range parts {
		c, asked := f.parts[p.Type]
		if !asked {
			continue
		}
		switch c.MatchType {
		case matchExact:
			if p.Scope != metadata.ScopeNamed || p.Name != *c.Match {
				return false
			}
		case matchDefault:
			if p.Scope != metadata.ScopeDefault {
				return false
			}
		}
		matched++
	}
	return matched == len(f.parts) && (!f.strict || matched == len(parts))
}
