package server

import (
	"context"
	"slices"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// TopicView is what a door must know of a topic to make a request of the protocol. Who may see it is judged by the request.
type TopicView struct {
	// ID is zero and Partitions empty when there is no such topic.
	ID         kafka.TopicID
	Partitions []kafka.PartitionState
	// RecordIDHeader is the header that carries record ids, also where none are remembered.
	RecordIDHeader string
	// Topic is the whole, nil when there is none.
	Topic *metadata.Topic
}

// Topic finds a topic by name in the newest Image.
func (s *Server) Topic(name string) TopicView {
	t := s.cfg.Image().Topic(name)
	if t == nil || t.State != metadata.StateReady {
		return TopicView{RecordIDHeader: "record-id"}
	}
	return TopicView{ID: t.ID, Partitions: t.Partitions, RecordIDHeader: s.topicConfig(t).DedupHeader, Topic: t}
}

// TopicNames are the names of all topics in use that follow after, in order, at most limit.
func (s *Server) TopicNames(after string, limit int) (names []string) {
	for t := range s.cfg.Image().Topics() {
		if t.State == metadata.StateReady && t.Name > after {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return names[:min(limit, len(names))]
}

// LogEnds asks the leaders of a topic's partitions where their logs end, in the order of the partitions; NoOffset where none answers.
func (s *Server) LogEnds(ctx context.Context, t *metadata.Topic) []kafka.Offset {
	out := make([]kafka.Offset, len(t.Partitions))
	tps := make([]kafka.TopicPartition, len(t.Partitions))
	for i := range out {
		out[i], tps[i] = kafka.NoOffset, kafka.TopicPartition{Topic: t.ID, Partition: int32(i)}
	}
	if s.cfg.Ends == nil {
		return out
	}
	for _, p := range s.cfg.Ends(ctx, tps) {
		for _, e := range p.Ends {
			if i := int(p.TP.Partition); i < len(out) && e.Node == t.Partitions[i].Leader {
				out[i] = e.End
			}
		}
	}
	return out
}
