package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

// reportsMax bounds the groups of one request for reports: each asks the leaders of all its partitions.
const reportsMax = 100

// wantsReport says whether an OffsetFetch carries the tag that asks for the backlog of its groups (docs/formats/group-requests.md).
func wantsReport(req *kmsg.OffsetFetchRequest) (wants bool) {
	req.UnknownTags.Each(func(tag uint32, v []byte) { wants = wants || tag == group.ReportType && len(v) == 1 && v[0] == 1 })
	return wants && req.Version >= offsetFetchBatch
}

// reportBacklogs answers with a report for each group, in a tag, and with no topics.
func (s *Server) reportBacklogs(ctx context.Context, call *Call, req *kmsg.OffsetFetchRequest) Reply {
	return background(ctx, adminWaitDefault, func(ctx context.Context) kmsg.Response {
		resp := reply[*kmsg.OffsetFetchResponse](req)
		for i := range req.Groups {
			out := kmsg.NewOffsetFetchResponseGroup()
			out.Group = req.Groups[i].Group
			if i >= reportsMax {
				out.ErrorCode = int16(kafka.PolicyViolation)
			} else if !s.mayGroup(call, kmsg.ACLOperationDescribe, out.Group) {
				out.ErrorCode = int16(kafka.GroupAuthorizationFailed)
			} else if r, err := s.cfg.Groups.Backlog(ctx, out.Group); err != nil {
				out.ErrorCode = int16(s.code(err, "report a backlog"))
			} else {
				r.Keep(func(topic string) bool { return s.seesTopic(call, kmsg.ACLOperationDescribe, topic) })
				out.UnknownTags.Set(group.ReportType, r.Append(nil))
			}
			resp.Groups = append(resp.Groups, out)
		}
		return resp
	})
}
