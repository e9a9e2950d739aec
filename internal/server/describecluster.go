package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// The endpoint types of DescribeCluster v1+.
const (
	endpointBrokers     = 1
	endpointControllers = 2
)

// handleDescribeCluster names the cluster and its brokers as this listener's clients reach them.
func (s *Server) handleDescribeCluster(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.DescribeClusterRequest)
	resp := reply[*kmsg.DescribeClusterResponse](req)
	if req.Version >= 1 && req.EndpointType != endpointBrokers {
		no := refusal{kafka.UnsupportedEndpointType, "unknown endpoint type"}
		if req.EndpointType == endpointControllers {
			no = refusal{kafka.MismatchedEndpointType, "this is a broker's listener; controllers are not reached by clients"}
		}
		resp.ErrorCode, resp.ErrorMessage = int16(no.code), text(no.message)
		return ready(resp)
	}
	img := s.cfg.Image()
	resp.ClusterID, resp.ControllerID = img.ClusterID(), int32(s.controllerID(img))
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = s.clusterBits(call)
	}
	for b := range img.Brokers() {
		at, ok := s.endpointOf(b, call)
		if !ok || (b.Fenced && !req.IncludeFencedBrokers) {
			continue
		}
		r := kmsg.NewDescribeClusterResponseBroker()
		r.NodeID, r.Host, r.Port, r.Rack, r.IsFenced = int32(b.ID), at.Host, at.Port, rackOf(b), b.Fenced
		resp.Brokers = append(resp.Brokers, r)
	}
	return ready(resp)
}
