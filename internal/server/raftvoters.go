package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/quorum"
)

// Voters changes who votes about the metadata. *quorum.Quorum is the implementation; it is a part of its own because a node without a cluster
// listener has no other nodes to vote with.
type Voters interface {
	AddVoter(ctx context.Context, node kafka.NodeID) error
	RemoveVoter(ctx context.Context, node kafka.NodeID) error
}

// handleAddRaftVoter makes a registered node a controller. Its address is the one it registered.
func (s *Server) handleAddRaftVoter(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.AddRaftVoterRequest)
	return background(ctx, adminTimeout(req.TimeoutMillis), func(ctx context.Context) kmsg.Response {
		resp := reply[*kmsg.AddRaftVoterResponse](req)
		node := kafka.NodeID(req.VoterID)
		no := s.voterRefusal(req.ClusterID, node, req.VoterDirectoryID)
		if no.code == kafka.None {
			no = s.changeVoters(ctx, call, "AddRaftVoter", node, s.cfg.Voters.AddVoter)
		}
		resp.ErrorCode, resp.ErrorMessage = int16(no.code), text(no.message)
		return resp
	})
}

// handleRemoveRaftVoter makes a controller a node that only follows.
func (s *Server) handleRemoveRaftVoter(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.RemoveRaftVoterRequest)
	return background(ctx, adminWaitDefault, func(ctx context.Context) kmsg.Response {
		resp := reply[*kmsg.RemoveRaftVoterResponse](req)
		node := kafka.NodeID(req.VoterID)
		no := s.voterRefusal(req.ClusterID, node, kafka.DirectoryID{})
		if no.code == kafka.None {
			no = s.changeVoters(ctx, call, "RemoveRaftVoter", node, s.cfg.Voters.RemoveVoter)
		}
		resp.ErrorCode, resp.ErrorMessage = int16(no.code), text(no.message)
		return resp
	})
}

// changeVoters writes a change of the voters down, and makes it.
func (s *Server) changeVoters(ctx context.Context, call *Call, api string, node kafka.NodeID, change func(context.Context, kafka.NodeID) error) refusal {
	var before list
	for _, v := range s.cfg.Image().Voters() {
		before.add("%v", v.Node)
	}
	done, err := s.begin(ctx, call, auth.Event{API: api, Resource: "Broker:" + node.String(), Before: "controllers " + before.String()})
	if err != nil {
		return refusal{s.code(err, "change the voters"), err.Error()}
	}
	no := s.voterOutcome(change(ctx, node))
	done(no.message)
	return no
}

// voterRefusal says why a change of the voters is not even tried.
func (s *Server) voterRefusal(cluster *string, node kafka.NodeID, directory kafka.DirectoryID) refusal {
	img := s.cfg.Image()
	b := img.Broker(node)
	switch {
	case s.cfg.Voters == nil:
		return refusal{kafka.UnsupportedVersion, "this node has no cluster listener, so it is the only controller there can be"}
	case cluster != nil && *cluster != img.ClusterID():
		return refusal{kafka.InconsistentClusterID, fmt.Sprintf("this is cluster %s", img.ClusterID())}
	case !directory.IsZero() && b != nil && b.Directory != directory:
		return refusal{kafka.InvalidRequest, fmt.Sprintf("node %v is registered with directory %s", node, b.Directory)}
	}
	return refusal{}
}

// voterOutcome turns the quorum's answer into the protocol's.
func (s *Server) voterOutcome(err error) refusal {
	switch {
	case err == nil:
		return refusal{}
	case errors.Is(err, quorum.ErrMembership):
		return refusal{kafka.InvalidRequest, err.Error()}
	case errors.Is(err, quorum.ErrNoLeader):
		return refusal{kafka.RequestTimedOut, err.Error()}
	}
	return refusal{s.code(err, "change the voters"), err.Error()}
}
