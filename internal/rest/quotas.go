package rest

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// quotaPart is one part of whose quota it is.
type quotaPart struct {
	Type    string `json:"type" enum:"user,client-id,ip"`
	Name    string `json:"name,omitempty" maxLength:"1024"`
	Default bool   `json:"default,omitempty,omitzero" doc:"instead of a name: each one that has no quota by name"`
}

// entityQuotas are the quotas of one entity, by Kafka's names.
type entityQuotas struct {
	Entity []quotaPart        `json:"entity" minItems:"1" maxItems:"2" doc:"a user, a client id, both, or an ip"`
	Quotas map[string]float64 `json:"quotas" doc:"producer_byte_rate, consumer_byte_rate (bytes a second), request_percentage (of one core), controller_mutation_rate (partitions a second), connection_creation_rate (a second, of an ip); per node"`
}

type listQuotas struct {
	User     string `query:"user" doc:"those of a user"`
	ClientID string `query:"clientId" doc:"those of a client id"`
	IP       string `query:"ip" doc:"those of an address"`
}

type listedQuotas struct {
	Body struct {
		Quotas []entityQuotas `json:"quotas"`
	}
}

type putQuotas struct {
	Body entityQuotas
}

type puttedQuotas struct {
	Body entityQuotas
}

// describeQuotas registers the routes of quotas.
func (d *door) describeQuotas(api huma.API) {
	tags := []string{"quotas"}
	huma.Register(api, huma.Operation{
		OperationID: "listQuotas", Method: http.MethodGet, Path: "/v1/quotas", Tags: tags,
		Summary: "List the quotas of users, client ids and addresses",
	}, d.listQuotas)
	huma.Register(api, huma.Operation{
		OperationID: "putQuotas", Method: http.MethodPut, Path: "/v1/quotas", Tags: tags,
		Summary: "Make the quotas of a user, a client id, both, or an ip exactly these; none deletes them",
	}, d.putQuotas)
}

func (d *door) listQuotas(ctx context.Context, in *listQuotas) (*listedQuotas, error) {
	var parts []quotaPart
	for _, p := range []quotaPart{{Type: "user", Name: in.User}, {Type: "client-id", Name: in.ClientID}, {Type: "ip", Name: in.IP}} {
		if p.Name != "" {
			parts = append(parts, p)
		}
	}
	have, err := d.quotas(ctx, parts, false)
	if err != nil {
		return nil, err
	}
	out := &listedQuotas{}
	out.Body.Quotas = have
	return out, nil
}

// quotas are those of entities that have these parts, with exactly only those that have no others.
func (d *door) quotas(ctx context.Context, parts []quotaPart, exactly bool) ([]entityQuotas, error) {
	req := kmsg.NewPtrDescribeClientQuotasRequest()
	req.Strict = exactly
	for _, p := range parts {
		c := kmsg.NewDescribeClientQuotasRequestComponent()
		if c.EntityType = p.Type; p.Default {
			c.MatchType = 1
		} else {
			c.Match = &p.Name
		}
		req.Components = append(req.Components, c)
	}
	resp, err := askHere[*kmsg.DescribeClientQuotasResponse](ctx, d, req)
	if err != nil {
		return nil, err
	}
	if resp.ErrorCode != 0 {
		return nil, failed(kafka.ErrorCode(resp.ErrorCode), resp.ErrorMessage)
	}
	out := []entityQuotas{}
	for i := range resp.Entries {
		e := entityQuotas{Quotas: map[string]float64{}}
		for _, p := range resp.Entries[i].Entity {
			part := quotaPart{Type: p.Type, Default: p.Name == nil}
			if p.Name != nil {
				part.Name = *p.Name
			}
			e.Entity = append(e.Entity, part)
		}
		for _, v := range resp.Entries[i].Values {
			e.Quotas[v.Key] = v.Value
		}
		out = append(out, e)
	}
	return out, nil
}

// putQuotas is one change of the entity: what is there and not named goes, with what is named.
func (d *door) putQuotas(ctx context.Context, in *putQuotas) (*puttedQuotas, error) {
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	for _, p := range in.Body.Entity {
		if p.Default == (p.Name != "") {
			return nil, invalid("body.entity", "a part has either a name or default")
		}
	}
	have, err := d.quotas(ctx, in.Body.Entity, true)
	if err != nil {
		return nil, err
	}
	entry := kmsg.NewAlterClientQuotasRequestEntry()
	for _, p := range in.Body.Entity {
		part := kmsg.NewAlterClientQuotasRequestEntryEntity()
		if part.Type = p.Type; !p.Default {
			part.Name = &p.Name
		}
		entry.Entity = append(entry.Entity, part)
	}
	op := func(key string, value float64, remove bool) {
		o := kmsg.NewAlterClientQuotasRequestEntryOp()
		o.Key, o.Value, o.Remove = key, value, remove
		entry.Ops = append(entry.Ops, o)
	}
	for key, value := range in.Body.Quotas {
		op(key, value, false)
	}
	for _, e := range have {
		for key := range e.Quotas {
			if _, stays := in.Body.Quotas[key]; !stays {
				op(key, 0, true)
			}
		}
	}
	slices.SortFunc(entry.Ops, func(a, b kmsg.AlterClientQuotasRequestEntryOp) int { return strings.Compare(a.Key, b.Key) })
	req := kmsg.NewPtrAlterClientQuotasRequest()
	req.Entries = append(req.Entries, entry)
	resp, err := askHere[*kmsg.AlterClientQuotasResponse](ctx, d, req)
	if err != nil {
		return nil, err
	}
	if len(resp.Entries) != 1 {
		return nil, failed(kafka.UnknownServerError, nil)
	}
	if r := &resp.Entries[0]; r.ErrorCode != 0 {
		return nil, failed(kafka.ErrorCode(r.ErrorCode), r.ErrorMessage)
	}
	return &puttedQuotas{in.Body}, nil
}
