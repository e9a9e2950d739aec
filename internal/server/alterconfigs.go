package server

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// alteration is one resource of AlterConfigs or IncrementalAlterConfigs in the event's form.
type alteration struct {
	resource metadata.Resource
	ops      []metadata.ConfigOp
	expected int64 // 0: any version
	version  int64 // of the topic afterwards, 0 where nothing was changed

	versioned bool // the request wants to know it
	refused   refusal
}

// handleIncrementalAlterConfigs changes single configs of each resource.
func (s *Server) handleIncrementalAlterConfigs(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.IncrementalAlterConfigsRequest)
	work := make([]alteration, len(req.Resources))
	for i := range req.Resources {
		r, w := &req.Resources[i], &work[i]
		w.resource = metadata.Resource{Kind: metadata.ResourceKind(r.ResourceType), Name: r.ResourceName}
		for _, c := range r.Configs {
			w.ops = append(w.ops, metadata.ConfigOp{Key: c.Name, Op: metadata.ConfigOpKind(c.Op), Value: c.Value})
		}
		var err error
		if w.expected, w.versioned, err = wire.Expected(&r.UnknownTags); err != nil {
			w.refused = wrongExpected
		}
	}
	return background(ctx, adminWaitDefault, func(ctx context.Context) kmsg.Response {
		s.alter(ctx, call, work, metadata.AlterConfigs{Principal: call.Principal, ValidateOnly: req.ValidateOnly})
		resp := reply[*kmsg.IncrementalAlterConfigsResponse](req)
		for i := range work {
			out := kmsg.NewIncrementalAlterConfigsResponseResource()
			out.ResourceType, out.ResourceName = req.Resources[i].ResourceType, req.Resources[i].ResourceName
			out.ErrorCode, out.ErrorMessage = int16(work[i].refused.code), text(work[i].refused.message)
			if work[i].versioned && work[i].version != 0 {
				out.UnknownTags.Set(wire.TagExpected, wire.NumberTag(work[i].version))
			}
			resp.Resources = append(resp.Resources, out)
		}
		return resp
	})
}

// wrongExpected refuses a version that cannot be read.
var wrongExpected = refusal{kafka.InvalidRequest, "the expected version cannot be read"}

// handleAlterConfigs replaces all configs of each resource: what is not named goes back to its default (O14).
func (s *Server) handleAlterConfigs(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.AlterConfigsRequest)
	work := make([]alteration, len(req.Resources))
	for i := range req.Resources {
		r, w := &req.Resources[i], &work[i]
		w.resource = metadata.Resource{Kind: metadata.ResourceKind(r.ResourceType), Name: r.ResourceName}
		for _, c := range r.Configs {
			w.ops = append(w.ops, metadata.ConfigOp{Key: c.Name, Op: metadata.OpSet, Value: c.Value})
		}
	}
	return background(ctx, adminWaitDefault, func(ctx context.Context) kmsg.Response {
		s.alter(ctx, call, work, metadata.AlterConfigs{Principal: call.Principal, ValidateOnly: req.ValidateOnly, Replace: true})
		resp := reply[*kmsg.AlterConfigsResponse](req)
		for i := range work {
			out := kmsg.NewAlterConfigsResponseResource()
			out.ResourceType, out.ResourceName = req.Resources[i].ResourceType, req.Resources[i].ResourceName
			out.ErrorCode, out.ErrorMessage = int16(work[i].refused.code), text(work[i].refused.message)
			resp.Resources = append(resp.Resources, out)
		}
		return resp
	})
}

// alter has each resource changed, whole or not at all, one after the other; the outcome is left in work.
func (s *Server) alter(ctx context.Context, call *Call, work []alteration, common metadata.AlterConfigs) {
	named := map[metadata.Resource]int{}
	for i := range work {
		named[work[i].resource]++
	}
	for i := range work {
		w := &work[i]
		switch {
		case i >= adminItemsMax:
			w.refused = tooManyItems
			continue
		case w.refused.code != 0:
			continue
		case named[w.resource] > 1:
			w.refused = refusal{kafka.InvalidRequest, "the resource is named more than once in the request"}
			continue
		}
		if code := s.mayConfigs(call, kmsg.ACLOperationAlterConfigs, w.resource.Kind, w.resource.Name); code != kafka.None {
			w.refused = refusal{code: code}
			continue
		}
		if w.refused = wrongAlteration(w); w.refused.code != 0 {
			continue
		}
		ev := common
		ev.Resource, ev.Ops, ev.ExpectedVersion = w.resource, w.ops, w.expected
		r, err := decide[metadata.AlterResult](ctx, s, call, ev)
		switch {
		case err != nil:
			w.refused = refusal{s.code(err, "alter configs"), err.Error()}
		case !r.OK():
			w.refused = refusal{r.Code, r.Message}
		default:
			w.version = r.Version
		}
	}
}

// wrongAlteration says what is wrong with the request itself, whatever the resource's state.
func wrongAlteration(w *alteration) refusal {
	if w.resource.Kind != metadata.ResourceTopic && w.resource.Kind != metadata.ResourceBroker {
		return refusal{kafka.InvalidRequest, "resource type " + strconv.Itoa(int(w.resource.Kind)) + " has no configs here"}
	}
	seen := make(map[string]bool, len(w.ops))
	for _, op := range w.ops {
		if seen[op.Key] {
			return refusal{kafka.InvalidRequest, "config " + clip(op.Key) + " is named more than once"}
		}
		seen[op.Key] = true
		if op.Op < metadata.OpSet || op.Op > metadata.OpSubtract {
			return refusal{kafka.InvalidRequest, "unknown operation " + strconv.Itoa(int(op.Op)) + " on config " + clip(op.Key)}
		}
		if op.Value == nil && op.Op != metadata.OpDelete {
			return refusal{kafka.InvalidConfig, "config " + clip(op.Key) + " has no value"}
		}
	}
	return refusal{}
}
