package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

const (
	// offsetFetchTopCode is the first OffsetFetch version with an error code for the whole answer, and with "all topics".
	offsetFetchTopCode = 2
	// offsetFetchBatch is the first OffsetFetch version that asks for several groups, offsetFetchByMember the first that says who asks,
	// offsetFetchByID the first that names topics by id.
	offsetFetchBatch    = 8
	offsetFetchByMember = 9
	offsetFetchByID     = 10
)

// handleOffsetFetch reads stored offsets. What is not stored is offset -1 without an error; what cannot be read is an error without an
// offset (I8, C062).
func (s *Server) handleOffsetFetch(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.OffsetFetchRequest)
	if wantsReport(req) {
		return s.reportBacklogs(ctx, call, req)
	}
	if asked := askedGroups(req); s.isAhead(call, asked) {
		return s.fetchWhenCaughtUp(ctx, call, req, asked)
	}
	return s.fetchGroups(call, req)
}

func (s *Server) fetchGroups(call *Call, req *kmsg.OffsetFetchRequest) Reply {
	img := s.cfg.Image()
	asked := askedGroups(req)
	waits := make([]*coordinator.Wait, 0, min(len(asked), groupsMax))
	for i := range min(len(asked), groupsMax) {
		if !s.mayGroup(call, kmsg.ACLOperationDescribe, asked[i].Group) {
			waits = append(waits, nil)
			continue
		}
		ev := s.fetchOffsets(img, req.Version, &asked[i])
		waits = append(waits, s.cfg.Groups.Submit(ev.Group, func(token uint64) group.Event { ev.Token = token; return ev }))
	}
	return awaitGroups(func() kmsg.Response { return s.fetchedOffsets(call, req, asked, waits) }, waits...)
}

// askedGroups brings all versions into the form of the newest.
func askedGroups(req *kmsg.OffsetFetchRequest) []kmsg.OffsetFetchRequestGroup {
	if req.Version >= offsetFetchBatch {
		return req.Groups
	}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = req.Group
	if req.Topics != nil || req.Version < offsetFetchTopCode {
		g.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
	}
	for i := range req.Topics {
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.Partitions = req.Topics[i].Topic, req.Topics[i].Partitions
		g.Topics = append(g.Topics, t)
	}
	return []kmsg.OffsetFetchRequestGroup{g}
}

// fetchOffsets resolves the topics of one group.
func (s *Server) fetchOffsets(img *metadata.Image, version int16, g *kmsg.OffsetFetchRequestGroup) group.FetchOffsets {
	ev := group.FetchOffsets{Group: g.Group, All: g.Topics == nil, CurrentID: func(name string) kafka.TopicID {
		if t, _ := findTopic(img, name, kafka.TopicID{}, false); t != nil {
			return t.ID
		}
		return kafka.TopicID{}
	}}
	if version >= offsetFetchByMember && (g.MemberID != nil || g.MemberEpoch >= 0) {
		ev.Member = &group.FetchingMember{ID: opt(g.MemberID), Epoch: group.MemberEpoch(g.MemberEpoch)}
	}
	for i := range g.Topics {
		t := &g.Topics[i]
		ft := group.FetchTopic{Name: t.Topic, Partitions: t.Partitions}
		if topic, _ := findTopic(img, t.Topic, t.TopicID, version >= offsetFetchByID); topic != nil {
			ft.Name, ft.ID = topic.Name, topic.ID
		}
		ev.Topics = append(ev.Topics, ft)
	}
	return ev
}

func (s *Server) fetchedOffsets(call *Call, req *kmsg.OffsetFetchRequest, asked []kmsg.OffsetFetchRequestGroup, waits []*coordinator.Wait) kmsg.Response {
	resp := reply[*kmsg.OffsetFetchResponse](req)
	for i := range asked {
		out := kmsg.NewOffsetFetchResponseGroup()
		out.Group, out.ErrorCode = asked[i].Group, int16(kafka.PolicyViolation)
		switch {
		case i >= len(waits):
		case waits[i] == nil:
			out.ErrorCode = int16(kafka.GroupAuthorizationFailed)
		default:
			s.fetchedGroup(call, &asked[i], waits[i], &out)
		}
		resp.Groups = append(resp.Groups, out)
	}
	if req.Version < offsetFetchBatch {
		oneGroup(req, resp, resp.Groups[0])
		resp.Groups = nil
	}
	return resp
}

// fetchedGroup fills in the answer of one group.
func (s *Server) fetchedGroup(call *Call, asked *kmsg.OffsetFetchRequestGroup, w *coordinator.Wait, out *kmsg.OffsetFetchResponseGroup) {
	r, code := answerOf[group.FetchReply](s, w)
	if code == kafka.None {
		code = r.Code
	}
	if out.ErrorCode = int16(code); code != kafka.None {
		return
	}
	version := call.Request.GetVersion()
	for i := range r.Topics {
		t := &r.Topics[i]
		denied := kafka.None
		switch name := t.Name; {
		case asked.Topics == nil && !s.seesTopic(call, kmsg.ACLOperationDescribe, name):
			continue
		case asked.Topics != nil && name != "" && !s.mayTopic(call, kmsg.ACLOperationDescribe, name):
			denied = kafka.TopicAuthorizationFailed
		}
		ot := kmsg.NewOffsetFetchResponseGroupTopic()
		ot.Topic, ot.TopicID = t.Name, t.ID
		unknown := false
		if asked.Topics != nil { // an answer names topics as the request does
			ot.Topic, ot.TopicID = asked.Topics[i].Topic, asked.Topics[i].TopicID
			unknown = version >= offsetFetchByID && t.ID.IsZero()
		}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			op := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			op.Partition, op.Offset, op.LeaderEpoch, op.Metadata = p.Partition, int64(p.Offset), int32(p.LeaderEpoch), &p.Metadata
			switch {
			case denied != kafka.None:
				op.Offset, op.LeaderEpoch, op.Metadata, op.ErrorCode = int64(kafka.NoOffset), int32(kafka.NoEpoch), new(string), int16(denied)
			case unknown:
				op.ErrorCode = int16(kafka.UnknownTopicID)
			}
			ot.Partitions = append(ot.Partitions, op)
		}
		out.Topics = append(out.Topics, ot)
	}
}

// oneGroup puts the answer of the only group into the form of the old versions. The oldest has no place for an error of the group but
// in each partition.
func oneGroup(req *kmsg.OffsetFetchRequest, resp *kmsg.OffsetFetchResponse, g kmsg.OffsetFetchResponseGroup) {
	resp.ErrorCode = g.ErrorCode
	for i := range g.Topics {
		t := kmsg.NewOffsetFetchResponseTopic()
		t.Topic = g.Topics[i].Topic
		for _, p := range g.Topics[i].Partitions {
			op := kmsg.NewOffsetFetchResponseTopicPartition()
			op.Partition, op.Offset, op.LeaderEpoch, op.Metadata, op.ErrorCode = p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode
			t.Partitions = append(t.Partitions, op)
		}
		resp.Topics = append(resp.Topics, t)
	}
	if g.ErrorCode == 0 || req.Version >= offsetFetchTopCode {
		return
	}
	for i := range req.Topics {
		t := kmsg.NewOffsetFetchResponseTopic()
		t.Topic = req.Topics[i].Topic
		for _, p := range req.Topics[i].Partitions {
			op := kmsg.NewOffsetFetchResponseTopicPartition()
			op.Partition, op.Offset, op.ErrorCode, op.Metadata = p, int64(kafka.NoOffset), g.ErrorCode, new(string)
			t.Partitions = append(t.Partitions, op)
		}
		resp.Topics = append(resp.Topics, t)
	}
}
