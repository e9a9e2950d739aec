package server

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// handleAlterClientQuotas changes quotas, those of each entity whole or not at all.
func (s *Server) handleAlterClientQuotas(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.AlterClientQuotasRequest)
	if len(req.Entries) > adminItemsMax {
		return ready(refuseQuotas(req, refusal{kafka.PolicyViolation, "too many entities in one request"}))
	}
	ev := metadata.AlterQuotas{Principal: call.Principal, ValidateOnly: req.ValidateOnly}
	faults, index := make([]refusal, len(req.Entries)), []int(nil) // index[i] is the entry of ev.Entities[i]
	for i := range req.Entries {
		change, fault := quotaChange(&req.Entries[i])
		if fault != "" {
			faults[i] = refusal{kafka.InvalidRequest, fault}
			continue
		}
		ev.Entities, index = append(ev.Entities, change), append(index, i)
	}
	answer := func() kmsg.Response {
		resp := refuseQuotas(req, refusal{})
		for i, f := range faults {
			resp.Entries[i].ErrorCode, resp.Entries[i].ErrorMessage = int16(f.code), text(f.message)
		}
		return resp
	}
	if len(ev.Entities) == 0 {
		return ready(answer())
	}
	return background(ctx, adminWaitDefault, func(ctx context.Context) kmsg.Response {
		results, err := decide[[]metadata.QuotaAltered](ctx, s, call, ev)
		for n, i := range index {
			switch {
			case err != nil:
				faults[i] = refusal{s.code(err, "alter quotas"), err.Error()}
			case !results[n].OK():
				faults[i] = refusal{results[n].Code, results[n].Message}
			}
		}
		return answer()
	})
}

// refuseQuotas answers every entity alike.
func refuseQuotas(req *kmsg.AlterClientQuotasRequest, no refusal) *kmsg.AlterClientQuotasResponse {
	resp := reply[*kmsg.AlterClientQuotasResponse](req)
	for i := range req.Entries {
		e := kmsg.NewAlterClientQuotasResponseEntry()
		e.ErrorCode, e.ErrorMessage = int16(no.code), text(no.message)
		for _, p := range req.Entries[i].Entity {
			part := kmsg.NewAlterClientQuotasResponseEntryEntity()
			part.Type, part.Name = p.Type, p.Name
			e.Entity = append(e.Entity, part)
		}
		resp.Entries = append(resp.Entries, e)
	}
	return resp
}

// quotaChange reads the change of one entity, or says what is wrong with it.
func quotaChange(e *kmsg.AlterClientQuotasRequestEntry) (c metadata.QuotaChange, fault string) {
	for _, p := range e.Entity {
		part := map[string]*metadata.QuotaName{
			metadata.EntityUser: &c.Entity.User, metadata.EntityClient: &c.Entity.Client, metadata.EntityIP: &c.Entity.IP,
		}[p.Type]
		switch {
		case part == nil:
			return c, fmt.Sprintf("entities of type %q have no quotas; user, client-id and ip have", clip(p.Type))
		case part.Scope != metadata.ScopeNone:
			return c, fmt.Sprintf("the entity has two parts of type %s", p.Type)
		case p.Name == nil:
			*part = metadata.QuotaDefault()
		default:
			*part = metadata.QuotaNamed(*p.Name)
		}
	}
	for _, o := range e.Ops {
		k, ok := metadata.ParseQuotaKind(o.Key)
		if !ok {
			return c, fmt.Sprintf("there is no quota %q", clip(o.Key))
		}
		op := metadata.QuotaOp{Kind: k, Remove: o.Remove}
		if !o.Remove {
			op.Value = o.Value
		}
		c.Ops = append(c.Ops, op)
	}
	return c, ""
}
