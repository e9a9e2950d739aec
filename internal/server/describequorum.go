package server

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

const (
	// metadataTopic is the name by which clients ask about the metadata log, which has one partition and is no topic.
	metadataTopic = "__cluster_metadata"
	// clusterListener is the name under which a voter's cluster address is shown.
	clusterListener = "cluster"
)

// handleDescribeQuorum describes the metadata quorum as this node knows it: terms are leader epochs, indexes of the log are offsets. Where another
// node's log ends is not known here (-1); its last fetch is now if it can be reached from here, and unknown (-1) if not.
func (s *Server) handleDescribeQuorum(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.DescribeQuorumRequest)
	if s.cfg.Reach == nil {
		return ready(s.describedQuorum(req, nil))
	}
	return background(ctx, 2*reachMax, func(ctx context.Context) kmsg.Response { return s.describedQuorum(req, s.reached(ctx)) })
}

// reached dials all other voters at once and tells who is there.
func (s *Server) reached(ctx context.Context) map[kafka.NodeID]bool {
	ctx, cancel := context.WithTimeout(ctx, reachMax)
	defer cancel()
	var dialled sync.WaitGroup
	var mu sync.Mutex
	up := map[kafka.NodeID]bool{}
	for _, v := range s.cfg.Image().Voters() {
		if v.Node == s.cfg.Node {
			continue
		}
		dialled.Go(func() {
			if s.cfg.Reach(ctx, v.Node) == nil {
				mu.Lock()
				defer mu.Unlock()
				up[v.Node] = true
			}
		})
	}
	dialled.Wait()
	return up
}

func (s *Server) describedQuorum(req *kmsg.DescribeQuorumRequest, up map[kafka.NodeID]bool) kmsg.Response {
	resp := reply[*kmsg.DescribeQuorumResponse](req)
	img := s.cfg.Image()
	asked, described := 0, false
	for i := range req.Topics {
		t := kmsg.NewDescribeQuorumResponseTopic()
		t.Topic = req.Topics[i].Topic
		for _, n := range req.Topics[i].Partitions {
			p := kmsg.NewDescribeQuorumResponseTopicPartition()
			p.Partition, p.LeaderID, p.LeaderEpoch, p.HighWatermark = n.Partition, int32(kafka.NoNode), int32(kafka.NoEpoch), int64(kafka.NoOffset)
			switch asked++; {
			case asked > adminItemsMax:
				p.ErrorCode, p.ErrorMessage = int16(tooManyItems.code), text(tooManyItems.message)
			case t.Topic != metadataTopic || n.Partition != 0:
				p.ErrorCode, p.ErrorMessage = int16(kafka.UnknownTopicOrPartition), text("the quorum has one partition: "+metadataTopic+"-0")
			default:
				s.describeQuorum(img, &p, up)
				described = true
			}
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	if described {
		resp.Nodes = quorumNodes(img)
	}
	return resp
}

func (s *Server) describeQuorum(img *metadata.Image, p *kmsg.DescribeQuorumResponseTopicPartition, up map[kafka.NodeID]bool) {
	leads := s.cfg.Quorum.Leadership()
	p.LeaderID, p.LeaderEpoch = int32(leads.Leader), int32(leads.Term)
	if leads.Leader == kafka.NoNode { // I13
		why := "no leader of the quorum is known here"
		if s.cfg.Unanswered != nil {
			why = fmt.Sprintf("%s; no active controller has answered node %v for %v", why, s.cfg.Node, s.cfg.Unanswered().Round(100*time.Millisecond))
		}
		p.ErrorCode, p.ErrorMessage = int16(kafka.LeaderNotAvailable), text(why)
	}
	p.HighWatermark = int64(img.Version()) + 1 // an Image holds all entries up to its version, and those are committed
	now := s.cfg.Wall.Now().UnixMilli()
	for _, v := range img.Voters() {
		r := kmsg.NewDescribeQuorumResponseTopicPartitionReplicaState()
		r.ReplicaID, r.ReplicaDirectoryID, r.LogEndOffset = int32(v.Node), v.Directory, int64(kafka.NoOffset)
		r.LastFetchTimestamp, r.LastCaughtUpTimestamp = -1, -1
		if up[v.Node] {
			r.LastFetchTimestamp = now
		}
		if v.Node == s.cfg.Node {
			r.LogEndOffset, r.LastFetchTimestamp, r.LastCaughtUpTimestamp = int64(s.cfg.Quorum.LogEnd()), now, now
		}
		p.CurrentVoters = append(p.CurrentVoters, r)
	}
}

// quorumNodes names where each voter is reached by other nodes.
func quorumNodes(img *metadata.Image) []kmsg.DescribeQuorumResponseNode {
	var out []kmsg.DescribeQuorumResponseNode
	for _, v := range img.Voters() {
		n := kmsg.NewDescribeQuorumResponseNode()
		n.NodeID = int32(v.Node)
		if b := img.Broker(v.Node); b != nil {
			if host, port, err := net.SplitHostPort(b.ClusterAddress); err == nil {
				l := kmsg.NewDescribeQuorumResponseNodeListener()
				number, _ := strconv.ParseUint(port, 10, 16)
				l.Name, l.Host, l.Port = clusterListener, host, uint16(number)
				n.Listeners = append(n.Listeners, l)
			}
		}
		out = append(out, n)
	}
	return out
}
