package server

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// handleDescribeTopicPartitions describes topics page by page, in name order: a page ends after ResponsePartitionLimit partitions, and
// the cursor names the first partition of the next one.
func (s *Server) handleDescribeTopicPartitions(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.DescribeTopicPartitionsRequest)
	resp := reply[*kmsg.DescribeTopicPartitionsResponse](req)
	img := s.cfg.Image()
	room := s.pageSize(req.ResponsePartitionLimit)
	for i, name := range s.pageTopics(call, img, req) {
		from := 0
		if req.Cursor != nil && name == req.Cursor.Topic {
			from = int(max(0, req.Cursor.Partition))
		}
		if room == 0 || i == lookupsMax {
			resp.NextCursor = cursorAt(name, from)
			return ready(resp)
		}
		if !s.mayTopic(call, kmsg.ACLOperationDescribe, name) {
			out := undescribed(name)
			out.ErrorCode = int16(kafka.TopicAuthorizationFailed)
			resp.Topics = append(resp.Topics, out)
			continue
		}
		t := img.Topic(name)
		if t == nil || t.State != metadata.StateReady {
			resp.Topics = append(resp.Topics, undescribed(name))
			continue
		}
		until := min(len(t.Partitions), from+room)
		resp.Topics = append(resp.Topics, s.describedTopic(img, t, from, until, call))
		room -= max(0, until-from)
		if until < len(t.Partitions) {
			resp.NextCursor = cursorAt(name, until)
			return ready(resp)
		}
	}
	return ready(resp)
}

func (s *Server) pageSize(asked int32) int {
	page := s.broker().MaxRequestPartitionLimit
	if page <= 0 || page > describePageMax {
		page = describePageDefault
	}
	return max(1, min(page, int(asked)))
}

// pageTopics returns the names to describe from the cursor on, sorted, each once; an empty request means all.
func (s *Server) pageTopics(call *Call, img *metadata.Image, req *kmsg.DescribeTopicPartitionsRequest) []string {
	var names []string
	for _, t := range req.Topics {
		names = append(names, t.Topic)
	}
	if len(req.Topics) == 0 {
		for t := range img.Topics() {
			if t.State == metadata.StateReady && s.seesTopic(call, kmsg.ACLOperationDescribe, t.Name) {
				names = append(names, t.Name)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if req.Cursor != nil {
		i, _ := slices.BinarySearch(names, req.Cursor.Topic)
		names = names[i:]
	}
	return names
}

func cursorAt(topic string, partition int) *kmsg.DescribeTopicPartitionsResponseNextCursor {
	c := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	c.Topic, c.Partition = topic, int32(partition)
	return &c
}

func undescribed(name string) kmsg.DescribeTopicPartitionsResponseTopic {
	out := kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic, out.ErrorCode = &name, int16(kafka.UnknownTopicOrPartition)
	if !validTopicName(name) {
		out.ErrorCode = int16(kafka.InvalidTopicException)
	}
	return out
}

func (s *Server) describedTopic(img *metadata.Image, t *metadata.Topic, from, until int, call *Call) kmsg.DescribeTopicPartitionsResponseTopic {
	out := kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic, out.TopicID, out.IsInternal = &t.Name, t.ID, t.Internal
	out.AuthorizedOperations = s.topicBits(call, t.Name)
	for i := from; i < until; i++ {
		st := &t.Partitions[i]
		p := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
		p.Partition, p.LeaderEpoch = int32(i), int32(st.LeaderEpoch)
		p.Replicas, p.ISR, p.OfflineReplicas = nodeIDs(st.Replicas), nodeIDs(st.ISR), offline(img, st.Replicas)
		p.EligibleLeaderReplicas, p.LastKnownELR = nodeIDs(st.ELR), nodeIDs(st.LastKnown)
		p.LeaderID = int32(st.Leader)
		code := s.leaderCode(img, st, call, newestMetadata)
		if s.offlineHere(t.ID, int32(i), st) {
			// Only people read this answer, so it says what Metadata cannot.
			code, p.OfflineReplicas = kafka.KafkaStorageError, withNode(p.OfflineReplicas, s.cfg.Node)
		}
		if code != kafka.None {
			p.ErrorCode, p.LeaderID = int16(code), int32(kafka.NoNode)
		}
		out.Partitions = append(out.Partitions, p)
	}
	return out
}

// newestMetadata stands for "all error codes are known to the client".
const newestMetadata = 13
