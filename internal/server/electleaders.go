package server

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// The election types of ElectLeaders v1+.
const (
	electPreferred = 0
	electUnclean   = 1
)

// handleElectLeaders has the preferred replicas elected. Topics that are null mean all partitions; then only those are answered where
// something was to be done. An unclean election by itself does not exist (I4): the decision says so for each partition that has no
// leader. What `partition elect --recover` sends is in recoverleaders.go.
func (s *Server) handleElectLeaders(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.ElectLeadersRequest)
	ev := metadata.ElectLeaders{Principal: call.Principal, Unclean: req.ElectionType == electUnclean, All: req.Topics == nil}
	for i := range req.Topics {
		for _, p := range req.Topics[i].Partitions {
			ev.Partitions = append(ev.Partitions, metadata.NamedPartition{Topic: req.Topics[i].Topic, Partition: p})
		}
	}
	switch {
	case req.ElectionType != electPreferred && req.ElectionType != electUnclean:
		return ready(refuseElection(req, refusal{kafka.InvalidRequest, "unknown election type " + strconv.Itoa(int(req.ElectionType))}))
	case len(ev.Partitions) > partitionsMax:
		return ready(refuseElection(req, tooManyItems))
	}
	return background(ctx, adminTimeout(req.TimeoutMillis), func(ctx context.Context) kmsg.Response {
		if mode := recoverMode(req); ev.Unclean && mode != 0 {
			return s.recoverLeaders(ctx, call, req, mode)
		}
		results, err := decide[[]metadata.ElectionResult](ctx, s, call, ev)
		if err != nil {
			return refuseElection(req, refusal{s.code(err, "elect leaders"), err.Error()})
		}
		return elected(req, results)
	})
}

// elected groups the results, which come topic by topic, as the request or the Image has them.
func elected(req *kmsg.ElectLeadersRequest, results []metadata.ElectionResult) kmsg.Response {
	resp := reply[*kmsg.ElectLeadersResponse](req)
	for i := range results {
		r := &results[i]
		if n := len(resp.Topics); n == 0 || resp.Topics[n-1].Topic != r.Topic {
			t := kmsg.NewElectLeadersResponseTopic()
			t.Topic = r.Topic
			resp.Topics = append(resp.Topics, t)
		}
		p := kmsg.NewElectLeadersResponseTopicPartition()
		p.Partition, p.ErrorCode, p.ErrorMessage = r.Partition, int16(r.Code), text(r.Message)
		t := &resp.Topics[len(resp.Topics)-1]
		t.Partitions = append(t.Partitions, p)
	}
	return resp
}

// refuseElection answers the request as a whole and, for versions that cannot, each partition that it names.
func refuseElection(req *kmsg.ElectLeadersRequest, no refusal) kmsg.Response {
	resp := reply[*kmsg.ElectLeadersResponse](req)
	resp.ErrorCode = int16(no.code)
	for i := range req.Topics {
		t := kmsg.NewElectLeadersResponseTopic()
		t.Topic = req.Topics[i].Topic
		for _, n := range req.Topics[i].Partitions {
			p := kmsg.NewElectLeadersResponseTopicPartition()
			p.Partition, p.ErrorCode, p.ErrorMessage = n, int16(no.code), text(no.message)
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}
