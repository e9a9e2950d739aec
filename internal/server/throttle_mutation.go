package server

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// Topics and partitions that are made and deleted count against controller_mutation_rate. Clients that know THROTTLING_QUOTA_EXCEEDED are refused
// while they owe anything, and try again; older ones are served, and then wait.

// mutate counts the partitions that a request makes or deletes, or refuses it.
func (m *metering) mutate(key int16, now time.Time) (kmsg.Response, bool) {
	if !m.client.Has(metadata.QuotaMutation) {
		return nil, false
	}
	n := m.server.mutations(m.call.Request)
	if n == 0 {
		return nil, false
	}
	strict := map[int16]int16{wire.KeyCreateTopics: 6, wire.KeyCreatePartitions: 3, wire.KeyDeleteTopics: 5}
	if m.call.Request.GetVersion() >= strict[key] {
		if no, wait := m.server.overQuota(m.client, metadata.QuotaMutation, now); m.client.Wait(metadata.QuotaMutation, now) > 0 {
			m.take(metadata.QuotaMutation, 0, now)
			tell := refuseMutation(m.call.Request, no)
			m.until = later(m.until, now.Add(wait))
			return tell, true
		}
	}
	m.take(metadata.QuotaMutation, float64(n), now)
	return nil, false
}

// mutations are the partitions that a request asks to make or delete.
func (s *Server) mutations(req kmsg.Request) (n int) {
	img := s.cfg.Image()
	switch r := req.(type) {
	case *kmsg.CreateTopicsRequest:
		for i := range r.Topics {
			n += max(1, int(r.Topics[i].NumPartitions), len(r.Topics[i].ReplicaAssignment))
		}
		if r.ValidateOnly {
			return 0
		}
	case *kmsg.CreatePartitionsRequest:
		for i := range r.Topics {
			have := 0
			if t := img.Topic(r.Topics[i].Topic); t != nil {
				have = len(t.Partitions)
			}
			n += max(1, int(r.Topics[i].Count)-have)
		}
		if r.ValidateOnly {
			return 0
		}
	case *kmsg.DeleteTopicsRequest:
		size := func(t *metadata.Topic) int {
			if t == nil {
				return 1
			}
			return max(1, len(t.Partitions))
		}
		for _, name := range r.TopicNames {
			n += size(img.Topic(name))
		}
		for i := range r.Topics {
			if name := r.Topics[i].Topic; name != nil {
				n += size(img.Topic(*name))
				continue
			}
			n += size(img.TopicByID(r.Topics[i].TopicID))
		}
	}
	return n
}

// refuseMutation answers everything that a request names alike.
func refuseMutation(req kmsg.Request, no refusal) kmsg.Response {
	resp := req.ResponseKind()
	switch r := resp.(type) {
	case *kmsg.CreateTopicsResponse:
		for _, t := range req.(*kmsg.CreateTopicsRequest).Topics {
			out := kmsg.NewCreateTopicsResponseTopic()
			out.Topic = t.Topic
			refuseTopic(&out, no)
			r.Topics = append(r.Topics, out)
		}
	case *kmsg.CreatePartitionsResponse:
		for _, t := range req.(*kmsg.CreatePartitionsRequest).Topics {
			out := kmsg.NewCreatePartitionsResponseTopic()
			out.Topic, out.ErrorCode, out.ErrorMessage = t.Topic, int16(no.code), text(no.message)
			r.Topics = append(r.Topics, out)
		}
	case *kmsg.DeleteTopicsResponse:
		ask := req.(*kmsg.DeleteTopicsRequest)
		add := func(name *string, id [16]byte) {
			out := kmsg.NewDeleteTopicsResponseTopic()
			out.Topic, out.TopicID, out.ErrorCode, out.ErrorMessage = name, id, int16(no.code), text(no.message)
			r.Topics = append(r.Topics, out)
		}
		for i := range ask.TopicNames {
			add(&ask.TopicNames[i], [16]byte{})
		}
		for i := range ask.Topics {
			add(ask.Topics[i].Topic, ask.Topics[i].TopicID)
		}
	}
	return resp
}
