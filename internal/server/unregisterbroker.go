package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// handleUnregisterBroker forgets a broker that holds nothing and runs no more.
func (s *Server) handleUnregisterBroker(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.UnregisterBrokerRequest)
	return background(ctx, adminWaitDefault, func(ctx context.Context) kmsg.Response {
		resp := reply[*kmsg.UnregisterBrokerResponse](req)
		r, err := decide[metadata.BrokerRemoved](ctx, s, call, metadata.RemoveBroker{Principal: call.Principal, Node: kafka.NodeID(req.BrokerID)})
		if err != nil {
			resp.ErrorCode, resp.ErrorMessage = int16(s.code(err, "unregister a broker")), text(err.Error())
			return resp
		}
		resp.ErrorCode, resp.ErrorMessage = int16(r.Code), text(r.Message)
		return resp
	})
}
