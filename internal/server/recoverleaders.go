package server

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/controller"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// An unclean election by Kafka's request is refused: nobody who sends it has seen what would be lost. The request of `partition elect --recover`
// carries a tagged field that says how far it goes; the answer carries, for each partition, what each replica has. Both are in
// docs/formats/recovery.md.
const (
	recoverTag = 10001
	// The values of the request's tag.
	recoverShow  = 1 // only tell
	recoverElect = 2 // elect whoever is up and has most
	recoverWhole = 3 // the same, once all that were last known to have every acknowledged record are back
)

// recoverMode reads the tag of a request; 0 without one, or with one that is not understood.
func recoverMode(req *kmsg.ElectLeadersRequest) int8 {
	mode := int8(0)
	req.UnknownTags.Each(func(tag uint32, v []byte) {
		if tag == recoverTag && len(v) == 1 && v[0] >= recoverShow && v[0] <= recoverWhole {
			mode = int8(v[0])
		}
	})
	return mode
}

// recoverLeaders shows what the replicas of partitions without a candidate hold, and elects.
func (s *Server) recoverLeaders(ctx context.Context, call *Call, req *kmsg.ElectLeadersRequest, mode int8) kmsg.Response {
	if s.cfg.Ends == nil {
		return refuseElection(req, refusal{kafka.UnsupportedVersion, "this node cannot ask what replicas hold"})
	}
	img := s.cfg.Image()
	tps, unknown := wantedRecoveries(img, req)
	ends := s.cfg.Ends(ctx, tps)
	results := make([]metadata.Recovered, 0, len(ends))
	if mode == recoverShow {
		for _, e := range ends {
			results = append(results, shown(img, e.TP))
		}
	} else if len(ends) > 0 {
		s.cfg.Log.Warn("recovery of partitions: acknowledged records may be lost", "principal", call.Principal.String(), "partitions", len(ends), "whole", mode == recoverWhole)
		var err error
		results, err = decide[[]metadata.Recovered](ctx, s, call, metadata.RecoverPartitions{Principal: call.Principal, Partitions: ends, Whole: mode == recoverWhole})
		if err == nil && len(results) != len(ends) {
			err = errReplyType
		}
		if err != nil {
			return refuseElection(req, refusal{s.code(err, "recover partitions"), err.Error()})
		}
	}
	resp := reply[*kmsg.ElectLeadersResponse](req)
	for i, r := range results {
		p := recoveredPartition(resp, r.Topic, r.Partition, refusal{r.Code, r.Message})
		p.UnknownTags.Set(recoverTag, encodeRecovered(r, ends[i].Ends))
		if r.OK() && mode != recoverShow {
			s.cfg.Log.Warn("a leader was elected that may miss acknowledged records", "principal", call.Principal.String(), "topic", r.Topic, "partition", r.Partition,
				"leader", r.Leader, "end", r.End)
		}
	}
	for _, n := range unknown {
		recoveredPartition(resp, n.Topic, n.Partition, refusal{kafka.UnknownTopicOrPartition, "there is no such partition"})
	}
	return resp
}

// wantedRecoveries are the partitions that a request names, or, when it names all, those without a candidate.
func wantedRecoveries(img *metadata.Image, req *kmsg.ElectLeadersRequest) (tps []kafka.TopicPartition, unknown []metadata.NamedPartition) {
	if req.Topics == nil {
		return controller.Leaderless(img, false), nil
	}
	for i := range req.Topics {
		t := img.Topic(req.Topics[i].Topic)
		for _, p := range req.Topics[i].Partitions {
			if t == nil || p < 0 || int(p) >= len(t.Partitions) {
				unknown = append(unknown, metadata.NamedPartition{Topic: req.Topics[i].Topic, Partition: p})
				continue
			}
			tps = append(tps, kafka.TopicPartition{Topic: t.ID, Partition: p})
		}
	}
	return tps, unknown
}

// shown is the present state of a partition in the form of a result.
func shown(img *metadata.Image, tp kafka.TopicPartition) metadata.Recovered {
	r := metadata.Recovered{PartitionName: metadata.PartitionName{ID: tp.Topic, Partition: tp.Partition}, Leader: kafka.NoNode}
	if t := img.TopicByID(tp.Topic); t != nil && int(tp.Partition) < len(t.Partitions) {
		r.Topic, r.Leader = t.Name, t.Partitions[tp.Partition].Leader
	}
	if r.Leader != kafka.NoNode {
		r.Outcome = metadata.Outcome{Code: kafka.ElectionNotNeeded, Message: fmt.Sprintf("broker %v leads", r.Leader)}
	}
	return r
}

// recoveredPartition adds the answer for one partition.
func recoveredPartition(resp *kmsg.ElectLeadersResponse, topic string, partition int32, o refusal) *kmsg.ElectLeadersResponseTopicPartition {
	if n := len(resp.Topics); n == 0 || resp.Topics[n-1].Topic != topic {
		t := kmsg.NewElectLeadersResponseTopic()
		t.Topic = topic
		resp.Topics = append(resp.Topics, t)
	}
	p := kmsg.NewElectLeadersResponseTopicPartition()
	p.Partition, p.ErrorCode, p.ErrorMessage = partition, int16(o.code), text(o.message)
	t := &resp.Topics[len(resp.Topics)-1]
	t.Partitions = append(t.Partitions, p)
	return &t.Partitions[len(t.Partitions)-1]
}

// encodeRecovered is the value of the tag in an answer.
func encodeRecovered(r metadata.Recovered, ends []metadata.ReplicaEnd) []byte {
	var e wire.Encoder
	e.Header(recoverTag, 0)
	e.Int32(int32(r.Leader))
	wire.AppendArray(&e, ends, func(e *wire.Encoder, end metadata.ReplicaEnd) {
		e.Int32(int32(end.Node))
		e.Int32(int32(end.LastEpoch))
		e.Int64(int64(end.End))
	})
	e.NoTags()
	return e.B
}
