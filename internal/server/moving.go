package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// sentAway counts an answer that sends a client to another leader.
func (s *Server) sentAway(code kafka.ErrorCode) {
	if code == kafka.NotLeaderOrFollower {
		s.sent.Add(1)
	}
}

// SentAway counts the answers that have sent a client to another leader: while it grows, clients are on their way.
func (s *Server) SentAway() uint64 { return s.sent.Load() }

// judged answers metadata once the controller has judged the brokers whose connections have just ended, or after verdictMax. A client that lost its
// leader asks at once; told that the dead one still leads, it would try that again and wait its own pause, many times as long.
func (s *Server) judged(ctx context.Context, settle func(context.Context), req *kmsg.MetadataRequest, call *Call) Reply {
	return background(ctx, verdictMax, func(ctx context.Context) kmsg.Response {
		settle(ctx)
		return s.metadata(s.cfg.Image(), req, call, nil)
	})
}
