package server

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/replica"
)

// findTopic resolves the topic of a request from one Image: by id when the version has ids, else by name. Topics in the trash, and those
// not wholly made yet, are not there for clients.
func findTopic(img *metadata.Image, name string, id kafka.TopicID, byID bool) (*metadata.Topic, kafka.ErrorCode) {
	if byID {
		if t := img.TopicByID(id); t != nil && t.State == metadata.StateReady {
			return t, kafka.None
		}
		return nil, kafka.UnknownTopicID
	}
	if t := img.Topic(name); t != nil && t.State == metadata.StateReady {
		return t, kafka.None
	}
	return nil, kafka.UnknownTopicOrPartition
}

// partitionCode is the code of an error about a partition that the Image had. The host not knowing it means either that the topic has
// been deleted since, or that another node has it, or that this one has not taken it up yet: the last two are a matter of asking the
// leader, now or again.
func (s *Server) partitionCode(err error, tp kafka.TopicPartition, byID bool, doing string) kafka.ErrorCode {
	if !errors.Is(err, replica.ErrUnknownPartition) {
		return s.code(err, doing)
	}
	t := s.cfg.Image().TopicByID(tp.Topic)
	switch {
	case t == nil || t.State != metadata.StateReady:
		if byID {
			return kafka.UnknownTopicID
		}
		return kafka.UnknownTopicOrPartition
	case int(tp.Partition) >= len(t.Partitions):
		return kafka.UnknownTopicOrPartition
	}
	return kafka.NotLeaderOrFollower
}

// leaderHint is the leader of a partition by the newest Image: what a client that asked the wrong node is told (KIP-951). The epoch is
// the committed one or unknown, never made up (C077).
func (s *Server) leaderHint(tp kafka.TopicPartition) (kafka.NodeID, kafka.LeaderEpoch) {
	t := s.cfg.Image().TopicByID(tp.Topic)
	if t == nil || tp.Partition < 0 || int(tp.Partition) >= len(t.Partitions) {
		return kafka.NoNode, kafka.NoEpoch
	}
	st := &t.Partitions[tp.Partition]
	return st.Leader, st.LeaderEpoch
}

// newestLeader is the newest leadership that is known here: the one that the partition had when the request came, or what the Image says by now. A
// request that was parked in one epoch and failed at its end would else name this node itself, and its client would wait instead of moving.
func (s *Server) newestLeader(tp kafka.TopicPartition, node kafka.NodeID, epoch kafka.LeaderEpoch) (kafka.NodeID, kafka.LeaderEpoch) {
	if now, at := s.leaderHint(tp); node == kafka.NoNode || at > epoch {
		return now, at
	}
	return node, epoch
}

// hints collects the endpoints of the leaders named in one response, each once.
type hints struct {
	nodes []kafka.NodeID
	at    []Endpoint
	racks []*string
}

func (h *hints) add(s *Server, call *Call, node kafka.NodeID) {
	for _, n := range h.nodes {
		if n == node {
			return
		}
	}
	img := s.cfg.Image()
	b := img.Broker(node)
	if b == nil {
		return
	}
	if at, ok := s.endpointOf(b, call); ok {
		h.nodes, h.at, h.racks = append(h.nodes, node), append(h.at, at), append(h.racks, rackOf(b))
	}
}

func (h *hints) produce() (out []kmsg.ProduceResponseBroker) {
	for i, n := range h.nodes {
		b := kmsg.NewProduceResponseBroker()
		b.NodeID, b.Host, b.Port, b.Rack = int32(n), h.at[i].Host, h.at[i].Port, h.racks[i]
		out = append(out, b)
	}
	return out
}

func (h *hints) fetch() (out []kmsg.FetchResponseBroker) {
	for i, n := range h.nodes {
		b := kmsg.NewFetchResponseBroker()
		b.NodeID, b.Host, b.Port, b.Rack = int32(n), h.at[i].Host, h.at[i].Port, h.racks[i]
		out = append(out, b)
	}
	return out
}

// seen finds repeated keys of one request: by looking back while there are few, by a map from then on.
type seen[K comparable] struct {
	few  []K
	many map[K]struct{}
}

// seenFew is where a map becomes cheaper than looking back.
const seenFew = 16

// add reports whether k was there already.
func (s *seen[K]) add(k K) bool {
	if s.many == nil {
		for _, x := range s.few {
			if x == k {
				return true
			}
		}
		if len(s.few) < seenFew {
			s.few = append(s.few, k)
			return false
		}
		s.many = make(map[K]struct{}, 4*seenFew)
		for _, x := range s.few {
			s.many[x] = struct{}{}
		}
	}
	if _, there := s.many[k]; there {
		return true
	}
	s.many[k] = struct{}{}
	return false
}
