package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// `group seek` is an OffsetCommit with a tagged field: a commit would be refused while the group has members too, but what it replaces
// would be gone. The answer carries the outcome in a tag, because without partitions it has no other place. Both are in
// docs/formats/group-requests.md.
const (
	seekTag  = 10003
	seekTo   = 1 // to the offsets of the request
	seekUndo = 2 // back to what the last seek replaced; the request names no topics
)

// seekMode reads the tag of a request; 0 without one, or with one that is not understood.
func seekMode(req *kmsg.OffsetCommitRequest) (mode int8) {
	req.UnknownTags.Each(func(tag uint32, v []byte) {
		if tag == seekTag && len(v) == 1 && v[0] >= seekTo && v[0] <= seekUndo {
			mode = int8(v[0])
		}
	})
	return mode
}

// seek moves a group that has no members (R50). It is logged with who did it.
func (s *Server) seek(ctx context.Context, call *Call, req *kmsg.OffsetCommitRequest, undo bool) Reply {
	ev := group.SeekOffsets{Group: req.Group, Undo: undo, MayMove: func(topic string) bool { return s.mayTopic(call, kmsg.ACLOperationRead, topic) }}
	var after list
	if undo {
		after.add("the offsets before its last seek")
	} else {
		ev.Topics = s.commitTopics(call, req)
		for _, t := range req.Topics {
			for _, p := range t.Partitions {
				after.add("%s-%d: offset %d", t.Topic, p.Partition, p.Offset)
			}
		}
	}
	change := auth.Event{API: "SeekGroup", Resource: "Group:" + req.Group, After: after.String()}
	refuse := func(code kafka.ErrorCode) kmsg.Response { return soughtAnswer(req, code, 0) }
	return s.audited(ctx, call, change, refuse, func() Reply { return s.seekNow(call, req, ev) })
}

func (s *Server) seekNow(call *Call, req *kmsg.OffsetCommitRequest, ev group.SeekOffsets) Reply {
	w := s.cfg.Groups.Submit(req.Group, func(token uint64) group.Event { ev.Token = token; return ev })
	who, peer := call.Principal.String(), call.Peer
	return awaitGroups(func() kmsg.Response {
		r, code := answerOf[group.SeekReply](s, w)
		moved := 0
		if code == kafka.None {
			code, moved = r.Code, r.Moved
		}
		s.cfg.Log.Info("an operator moves a group", "principal", who, "peer", peer, "group", clip(req.Group), "undo", ev.Undo, "partitions", moved, "outcome", code.String())
		return soughtAnswer(req, code, moved)
	}, w)
}

func soughtAnswer(req *kmsg.OffsetCommitRequest, code kafka.ErrorCode, moved int) kmsg.Response {
	resp := reply[*kmsg.OffsetCommitResponse](req)
	for i := range req.Topics {
		out := kmsg.NewOffsetCommitResponseTopic()
		out.Topic, out.TopicID = req.Topics[i].Topic, req.Topics[i].TopicID
		for j := range req.Topics[i].Partitions {
			p := kmsg.NewOffsetCommitResponseTopicPartition()
			p.Partition, p.ErrorCode = req.Topics[i].Partitions[j].Partition, int16(code)
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	var e wire.Encoder
	e.Header(seekTag, 0)
	e.Int16(int16(code))
	e.Int32(int32(moved))
	e.NoTags()
	resp.UnknownTags.Set(seekTag, e.B)
	return resp
}
