package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// handleListPartitionReassignments lists the partitions that are being moved; null topics mean all. What is not being moved, or not
// there, is left out.
func (s *Server) handleListPartitionReassignments(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.ListPartitionReassignmentsRequest)
	resp := reply[*kmsg.ListPartitionReassignmentsResponse](req)
	img := s.cfg.Image()
	if req.Topics == nil {
		for t := range img.Topics() {
			if t.State == metadata.StateReady {
				addMoves(resp, t, nil)
			}
		}
		return ready(resp)
	}
	asked := 0
	for i := range req.Topics {
		if asked += len(req.Topics[i].Partitions); asked > partitionsMax {
			resp.Topics = nil
			resp.ErrorCode, resp.ErrorMessage = int16(tooManyItems.code), text(tooManyItems.message)
			return ready(resp)
		}
		if t, _ := findTopic(img, req.Topics[i].Topic, kafka.TopicID{}, false); t != nil {
			wanted := map[int32]bool{}
			for _, p := range req.Topics[i].Partitions {
				wanted[p] = true
			}
			addMoves(resp, t, wanted)
		}
	}
	return ready(resp)
}

// addMoves adds the partitions of a topic that are being moved; a nil set of wanted ones is all.
func addMoves(resp *kmsg.ListPartitionReassignmentsResponse, t *metadata.Topic, wanted map[int32]bool) {
	out := kmsg.NewListPartitionReassignmentsResponseTopic()
	out.Topic = t.Name
	for i := range t.Partitions {
		st := &t.Partitions[i]
		if len(st.Adding)+len(st.Removing) == 0 || wanted != nil && !wanted[int32(i)] {
			continue
		}
		p := kmsg.NewListPartitionReassignmentsResponseTopicPartition()
		p.Partition = int32(i)
		p.Replicas, p.AddingReplicas, p.RemovingReplicas = nodeIDs(st.Replicas), nodeIDs(st.Adding), nodeIDs(st.Removing)
		out.Partitions = append(out.Partitions, p)
	}
	if len(out.Partitions) > 0 {
		resp.Topics = append(resp.Topics, out)
	}
}
