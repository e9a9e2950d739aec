package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// createEvent fills in what every creation takes from this node's settings. Time, ids and seeds are the controller's to add.
func (s *Server) createEvent(ev metadata.CreateTopics) metadata.CreateTopics {
	b := s.broker()
	ev.DefaultPartitions, ev.DefaultReplicationFactor = b.NumPartitions, b.DefaultReplicationFactor
	return ev
}

// handleCreateTopics creates topics, each whole or not at all, and takes topics back from the trash.
func (s *Server) handleCreateTopics(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.CreateTopicsRequest)
	return background(ctx, adminTimeout(req.TimeoutMillis), func(ctx context.Context) kmsg.Response {
		return s.createTopics(ctx, call, req)
	})
}

func (s *Server) createTopics(ctx context.Context, call *Call, req *kmsg.CreateTopicsRequest) kmsg.Response {
	resp := reply[*kmsg.CreateTopicsResponse](req)
	ev := metadata.CreateTopics{Principal: call.Principal, ValidateOnly: req.ValidateOnly}
	at := map[string]int{} // of the answer, by name
	for i := range req.Topics {
		t := &req.Topics[i]
		if j, twice := at[t.Topic]; twice {
			refuseTopic(&resp.Topics[j], refusal{kafka.InvalidRequest, "the topic is named more than once in the request"})
			continue
		}
		at[t.Topic] = len(resp.Topics)
		out := kmsg.NewCreateTopicsResponseTopic()
		out.Topic = t.Topic
		if i >= adminItemsMax {
			refuseTopic(&out, tooManyItems)
		}
		resp.Topics = append(resp.Topics, out)
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		out := &resp.Topics[at[t.Topic]]
		if out.ErrorCode != 0 {
			continue
		}
		if !s.mayCreate(call, t.Topic) {
			refuseTopic(out, refusal{code: kafka.TopicAuthorizationFailed})
		} else if from, asked := wire.Tagged(&t.UnknownTags, wire.TagRestoration); asked {
			s.restoreTopic(ctx, call, t, from, out)
		} else if nt, no := newTopic(t); no.code != 0 {
			refuseTopic(out, no)
		} else {
			ev.Topics = append(ev.Topics, nt)
		}
	}
	if len(ev.Topics) == 0 {
		return resp
	}
	results, err := decide[[]metadata.TopicResult](ctx, s, call, s.createEvent(ev))
	if err != nil {
		for i := range ev.Topics {
			refuseTopic(&resp.Topics[at[ev.Topics[i].Name]], refusal{s.code(err, "create topics"), err.Error()})
		}
		return resp
	}
	for _, r := range results {
		s.createdTopic(call, &resp.Topics[at[r.Name]], r)
	}
	return resp
}

// tooManyItems refuses what is beyond adminItemsMax.
var tooManyItems = refusal{kafka.PolicyViolation, "too many items in one request; send several"}

// newTopic turns one entry of a request into the event's form.
func newTopic(t *kmsg.CreateTopicsRequestTopic) (metadata.NewTopic, refusal) {
	out := metadata.NewTopic{
		Name:       t.Topic,
		Partitions: t.NumPartitions, ReplicationFactor: t.ReplicationFactor,
		Configs: make(map[string]*string, len(t.Configs)),
	}
	if reservedTopic(t.Topic) {
		return out, refusal{kafka.InvalidTopicException, "the name belongs to the broker"}
	}
	for _, c := range t.Configs {
		if _, twice := out.Configs[c.Name]; twice {
			return out, refusal{kafka.InvalidRequest, "config " + clip(c.Name) + " is set more than once"}
		}
		out.Configs[c.Name] = c.Value
	}
	for _, a := range t.ReplicaAssignment {
		out.Assignments = append(out.Assignments, metadata.Assignment{Partition: a.Partition, Replicas: kafkaNodes(a.Replicas)})
	}
	return out, refusal{}
}

func kafkaNodes(ids []int32) []kafka.NodeID {
	out := make([]kafka.NodeID, len(ids))
	for i, n := range ids {
		out[i] = kafka.NodeID(n)
	}
	return out
}

func refuseTopic(out *kmsg.CreateTopicsResponseTopic, no refusal) {
	out.ErrorCode, out.ErrorMessage = int16(no.code), text(no.message)
	out.NumPartitions, out.ReplicationFactor = -1, -1
}

func (s *Server) createdTopic(call *Call, out *kmsg.CreateTopicsResponseTopic, r metadata.TopicResult) {
	if !r.OK() {
		refuseTopic(out, refusal{r.Code, r.Message})
		return
	}
	out.TopicID = r.ID
	if !s.seesTopic(call, kmsg.ACLOperationDescribeConfigs, r.Name) {
		out.ConfigErrorCode, out.NumPartitions, out.ReplicationFactor = int16(kafka.TopicAuthorizationFailed), -1, -1
		return
	}
	out.NumPartitions, out.ReplicationFactor = r.Partitions, r.ReplicationFactor
	for _, e := range config.DescribeTopic(r.Configs, *s.broker(), s.cfg.Dev) {
		c := kmsg.NewCreateTopicsResponseTopicConfig()
		c.Name, c.Value, c.ReadOnly, c.Source, c.IsSensitive = e.Name, e.Value, e.ReadOnly, int8(e.Source), e.Sensitive
		out.Configs = append(out.Configs, c)
	}
}
