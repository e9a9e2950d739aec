package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A client may have heard of new partitions from another node, whose Image is newer than this one's. "No offset" for such a partition
// would send a consumer that starts at the end past what was written already (R62), so the answer waits until this node knows the
// partition, or has had time to hear of it.

// isAhead says whether a request names a partition that a topic does not have in the present Image.
func (s *Server) isAhead(call *Call, asked []kmsg.OffsetFetchRequestGroup) bool {
	img := s.cfg.Image()
	for i := range asked {
		for j := range asked[i].Topics {
			t := &asked[i].Topics[j]
			topic, _ := findTopic(img, t.Topic, t.TopicID, call.Request.GetVersion() >= offsetFetchByID)
			if topic == nil || !s.seesTopic(call, kmsg.ACLOperationDescribe, topic.Name) {
				continue
			}
			for _, p := range t.Partitions {
				if int(p) >= len(topic.Partitions) {
					return true
				}
			}
		}
	}
	return false
}

// fetchWhenCaughtUp answers when the Image has the partitions, or after newPartitionWait: then there are none.
func (s *Server) fetchWhenCaughtUp(ctx context.Context, call *Call, req *kmsg.OffsetFetchRequest, asked []kmsg.OffsetFetchRequestGroup) Reply {
	return background(ctx, newPartitionWait+adminWaitDefault, func(ctx context.Context) kmsg.Response {
		wait, cancel := context.WithTimeout(ctx, newPartitionWait)
		defer cancel()
		for changed := s.cfg.Quorum.Changed(); s.isAhead(call, asked) && wait.Err() == nil; changed = s.cfg.Quorum.Changed() {
			select {
			case <-changed:
			case <-wait.Done():
			}
		}
		r, err := Await(ctx, s.fetchGroups(call, req))
		if err != nil {
			return s.fetchedOffsets(call, req, asked, nil) // nobody reads it any more
		}
		return r.Response
	})
}
