package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/metadata"
)

// handleAlterPartitionReassignments gives partitions other replicas; null replicas end a move in progress.
func (s *Server) handleAlterPartitionReassignments(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.AlterPartitionAssignmentsRequest)
	return background(ctx, adminTimeout(req.TimeoutMillis), func(ctx context.Context) kmsg.Response {
		return s.alterAssignments(ctx, call, req)
	})
}

func (s *Server) alterAssignments(ctx context.Context, call *Call, req *kmsg.AlterPartitionAssignmentsRequest) kmsg.Response {
	resp := reply[*kmsg.AlterPartitionAssignmentsResponse](req)
	resp.AllowReplicationFactorChange = req.AllowReplicationFactorChange
	ev := metadata.AlterAssignments{Principal: call.Principal, KeepFactor: req.Version >= 1 && !req.AllowReplicationFactorChange}
	asked := 0
	for i := range req.Topics {
		t := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		t.Topic = req.Topics[i].Topic
		for j := range req.Topics[i].Partitions {
			n := &req.Topics[i].Partitions[j]
			p := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			p.Partition = n.Partition
			if asked++; asked > adminItemsMax {
				p.ErrorCode, p.ErrorMessage = int16(tooManyItems.code), text(tooManyItems.message)
			} else {
				ev.Partitions = append(ev.Partitions, metadata.NewAssignment{
					NamedPartition: metadata.NamedPartition{Topic: t.Topic, Partition: n.Partition},
					Replicas:       kafkaNodes(n.Replicas), Cancel: n.Replicas == nil,
				})
			}
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	if len(ev.Partitions) == 0 {
		return resp
	}
	results, err := decide[[]metadata.AssignmentResult](ctx, s, call, ev)
	if err == nil && len(results) != len(ev.Partitions) {
		err = errReplyType
	}
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage = int16(s.code(err, "alter partition reassignments")), text(err.Error())
		return resp
	}
	for i := range resp.Topics { // in the order of the event, which is that of the request up to the limit
		for j := range resp.Topics[i].Partitions {
			if len(results) == 0 {
				return resp
			}
			p := &resp.Topics[i].Partitions[j]
			p.ErrorCode, p.ErrorMessage = int16(results[0].Code), text(results[0].Message)
			results = results[1:]
		}
	}
	return resp
}
