package server

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// The life of a topic beyond Kafka's requests: its version, the trash, and the way back. The tags are in docs/formats/topic-requests.md.

// told is what a Metadata request wants to know besides what Kafka's has.
func told(req *kmsg.MetadataRequest) byte {
	if v, there := wire.Tagged(&req.UnknownTags, wire.TagTopicLife); there && len(v) == 1 {
		return v[0]
	}
	return 0
}

func lifeTag(t *metadata.Topic) []byte {
	var e wire.Encoder
	wire.TopicLife{Version: t.Version, CreatedMs: t.Created.UnixMilli(), Owner: t.Owner}.Append(&e)
	return e.B
}

func purgeTag(at time.Time) []byte {
	if at.IsZero() {
		return wire.NumberTag(0)
	}
	return wire.NumberTag(at.UnixMilli())
}

// trashTag lists what was deleted and may be seen: first what can be restored, then what is being removed.
func (s *Server) trashTag(call *Call, img *metadata.Image) []byte {
	var out wire.Trash
	add := func(t *metadata.Topic) {
		if !s.seesTopic(call, kmsg.ACLOperationDescribe, t.Name) {
			return
		}
		if out.Total++; len(out.Topics) < wire.TrashShownMax {
			out.Topics = append(out.Topics, wire.TrashedTopic{
				ID: t.ID, Name: t.Name, Version: t.Version, Partitions: int32(len(t.Partitions)), DeletedMs: t.DeletedAt.UnixMilli(),
				PurgeAtMs: t.PurgeAt.UnixMilli(), DeletedBy: t.DeletedBy, Purging: t.State == metadata.StatePurging, Pending: int32(t.PendingPurges()),
			})
		}
	}
	for t := range img.Trash() {
		add(t)
	}
	for t := range img.AllTopics() {
		if t.State == metadata.StatePurging {
			add(t)
		}
	}
	var e wire.Encoder
	out.Append(&e)
	return e.B
}

// restoreTopic takes a topic back from the trash (R11). It comes as the creation of a topic without partitions, so that a broker that does not know
// the tag refuses it. The right to create the new name is judged already; the topic itself needs the right by which it was deleted.
func (s *Server) restoreTopic(ctx context.Context, call *Call, t *kmsg.CreateTopicsRequestTopic, tag []byte, out *kmsg.CreateTopicsResponseTopic) {
	from, err := wire.DecodeRestoration(tag)
	no := refusal{}
	switch {
	case err != nil:
		no = refusal{kafka.InvalidRequest, "the topic to restore cannot be read: name it by its id or by its name"}
	case call.Request.(*kmsg.CreateTopicsRequest).ValidateOnly, t.NumPartitions != 0, len(t.ReplicaAssignment)+len(t.Configs) > 0:
		no = refusal{kafka.InvalidRequest, "a topic is restored with the partitions and configs that it had, and not on trial"}
	case reservedTopic(t.Topic):
		no = refusal{kafka.InvalidTopicException, "the name belongs to the broker"}
	default:
		no = s.mayRemove(call, from.ID, from.Name)
	}
	if no.code != 0 {
		refuseTopic(out, no)
		return
	}
	r, err := decide[metadata.RestoreResult](ctx, s, call, metadata.RestoreTopic{Principal: call.Principal, ID: from.ID, Name: from.Name, As: t.Topic})
	switch {
	case err != nil:
		refuseTopic(out, refusal{s.code(err, "restore a topic"), err.Error()})
	case !r.OK():
		refuseTopic(out, refusal{r.Code, r.Message})
	default:
		s.cfg.Log.Info("a topic was restored", "principal", call.Principal.String(), "topic", r.Name, "id", r.ID.String(), "version", r.Version)
		out.TopicID = r.ID
		out.UnknownTags.Set(wire.TagRestoration, wire.NumberTag(r.Version))
		if restored := s.cfg.Image().TopicByID(r.ID); restored != nil && len(restored.Partitions) > 0 {
			out.NumPartitions, out.ReplicationFactor = int32(len(restored.Partitions)), int16(len(restored.Partitions[0].Replicas))
		}
	}
}
