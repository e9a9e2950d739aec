package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/config"
)

// clusterView is what one broker knows of the cluster: who is there, who decides, and where every replica stands.
type clusterView struct {
	ClusterID string `json:"clusterId"`
	// Controller leads the controllers in Term; -1: none is known.
	Controller  int32   `json:"controller"`
	Term        int32   `json:"term"`
	Controllers []int32 `json:"controllers"`
	// Unreached are the controllers that the asked node cannot reach.
	Unreached []int32 `json:"unreached,omitempty"`
	// Quorum is what the asked node says about the controllers when none leads.
	Quorum     string          `json:"quorum,omitempty"`
	Nodes      []viewNode      `json:"nodes"`
	Partitions []viewPartition `json:"-"`
}

// viewNode is a registered broker.
type viewNode struct {
	ID      int32  `json:"node"`
	Address string `json:"address"`
	Rack    string `json:"rack,omitempty"`
	Fenced  bool   `json:"fenced"`
	// Silent is why the node does not answer here, although the cluster counts on it.
	Silent   string `json:"silent,omitempty"`
	Draining bool   `json:"draining,omitempty"`
	// Refuses is why the node takes no records of user topics: its disk is full, or at its limit.
	Refuses  string `json:"refusesRecords,omitempty"`
	Replicas int    `json:"replicas"`
	Leaders  int    `json:"leaders"`
}

// viewPartition is one partition of a topic in service.
type viewPartition struct {
	Topic            string  `json:"topic"`
	Internal         bool    `json:"-"`
	Partition        int32   `json:"partition"`
	Leader           int32   `json:"leader"`
	Replicas         []int32 `json:"replicas"`
	ISR              []int32 `json:"isr"`
	ELR              []int32 `json:"elr,omitempty"`
	LastKnown        []int32 `json:"lastKnown,omitempty"`
	Adding, Removing []int32 `json:"-"`
}

func (p *viewPartition) name() string { return p.Topic + "-" + strconv.Itoa(int(p.Partition)) }

func (p *viewPartition) moving() bool { return len(p.Adding)+len(p.Removing) > 0 }

// node returns a node of the view, or nil.
func (v *clusterView) node(id int32) *viewNode {
	for i := range v.Nodes {
		if v.Nodes[i].ID == id {
			return &v.Nodes[i]
		}
	}
	return nil
}

// usable says whether a node can take replicas.
func (v *clusterView) usable(id int32) bool {
	n := v.node(id)
	return n != nil && !n.Fenced && !n.Draining
}

// view asks for everything a view has.
func (s *session) view(ctx context.Context) (*clusterView, error) {
	v := &clusterView{Controller: -1}
	for _, ask := range []func(context.Context, *clusterView) error{s.viewNodes, s.learnAddresses, s.viewDrains, s.viewQuorum, s.viewPartitions, s.viewMoves} {
		if err := ask(ctx, v); err != nil {
			if len(s.seeds) < len(s.brokers) {
				err = errors.Join(err, s.talkTo(s.brokers...)) // the next view asks all that were named
			}
			return nil, err
		}
	}
	for i := range v.Partitions {
		p := &v.Partitions[i]
		for _, r := range p.Replicas {
			if n := v.node(r); n != nil {
				n.Replicas++
				if p.Leader == r {
					n.Leaders++
				}
			}
		}
	}
	return v, nil
}

// learnAddresses has the client know all nodes, from the broker that has answered: else it asks any of the named ones, and perhaps one that does not,
// within the time that one node has to answer.
func (s *session) learnAddresses(ctx context.Context, _ *clusterView) error {
	if len(s.seeds) > 1 {
		if err := s.talkTo(s.seeds[s.spoke]); err != nil {
			return err
		}
	}
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	ctx, cancel := context.WithTimeout(ctx, firstAskMax)
	defer cancel()
	_, _ = req.RequestWith(ctx, s.client) // without them the nodes are asked all the same
	return nil
}

func (s *session) viewNodes(ctx context.Context, v *clusterView) error {
	req := kmsg.NewPtrDescribeClusterRequest()
	req.EndpointType, req.IncludeFencedBrokers = 1, true
	resp, err := req.RequestWith(ctx, s.named())
	if err == nil {
		err = answered(kerr.ErrorForCode(resp.ErrorCode), textOf(resp.ErrorMessage))
	}
	if err != nil {
		return err
	}
	v.ClusterID = resp.ClusterID
	for _, b := range resp.Brokers {
		v.Nodes = append(v.Nodes, viewNode{ID: b.NodeID, Address: fmt.Sprintf("%s:%d", b.Host, b.Port), Rack: textOf(b.Rack), Fenced: b.IsFenced})
	}
	slices.SortFunc(v.Nodes, func(a, b viewNode) int { return int(a.ID) - int(b.ID) })
	return nil
}

// viewDrains reads which nodes are being drained, and which take no records. All are asked at once: one that does not answer is named so, and holds up no other.
func (s *session) viewDrains(ctx context.Context, v *clusterView) error {
	var asked sync.WaitGroup
	for i := range v.Nodes {
		if n := &v.Nodes[i]; !n.Fenced {
			asked.Go(func() { s.viewDrain(ctx, n) })
		}
	}
	asked.Wait()
	return nil
}

// viewDrain asks a node whether it is being drained, and whether it takes records: a node tells only its own configs and disk.
func (s *session) viewDrain(ctx context.Context, n *viewNode) {
	ctx, cancel := context.WithTimeout(ctx, min(dialTimeoutMax, s.timeout/2))
	defer cancel()
	res := kmsg.NewDescribeConfigsRequestResource()
	res.ResourceType, res.ResourceName, res.ConfigNames = kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(n.ID)), []string{config.DrainKey}
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Resources = append(req.Resources, res)
	answer, err := s.client.Broker(int(n.ID)).Request(ctx, req)
	if err != nil { // it has gone since, or cannot be reached from here; what else is known is still true
		n.Silent = reason(err)
		return
	}
	for _, r := range answer.(*kmsg.DescribeConfigsResponse).Resources {
		for _, c := range r.Configs {
			n.Draining = n.Draining || c.Name == config.DrainKey && strings.EqualFold(textOf(c.Value), "true")
		}
	}
	logs := kmsg.NewPtrDescribeLogDirsRequest()
	logs.Topics = []kmsg.DescribeLogDirsRequestTopic{} // of no partition
	if answer, err = s.client.Broker(int(n.ID)).Request(ctx, logs); err != nil {
		n.Silent = reason(err)
		return
	}
	dirs := answer.(*kmsg.DescribeLogDirsResponse).Dirs
	for i := range dirs {
		n.Refuses = roomOf(&dirs[i]).refusal
	}
}

// quorumRequest asks about the metadata quorum.
func quorumRequest() *kmsg.DescribeQuorumRequest {
	req := kmsg.NewPtrDescribeQuorumRequest()
	t := kmsg.NewDescribeQuorumRequestTopic()
	t.Topic = "__cluster_metadata"
	t.Partitions = append(t.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	req.Topics = append(req.Topics, t)
	return req
}

func (s *session) viewQuorum(ctx context.Context, v *clusterView) error {
	req := quorumRequest()
	resp, err := req.RequestWith(ctx, s.named())
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			v.Controller, v.Term, v.Quorum = p.LeaderID, p.LeaderEpoch, textOf(p.ErrorMessage)
			for _, r := range p.CurrentVoters {
				v.Controllers = append(v.Controllers, r.ReplicaID)
				if r.LastFetchTimestamp < 0 {
					v.Unreached = append(v.Unreached, r.ReplicaID)
				}
			}
		}
	}
	slices.Sort(v.Controllers)
	slices.Sort(v.Unreached)
	return nil
}

// viewPartitions reads every partition, page by page.
func (s *session) viewPartitions(ctx context.Context, v *clusterView) error {
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = describePage
	for {
		resp, err := req.RequestWith(ctx, s.named())
		if err != nil {
			return err
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				v.Partitions = append(v.Partitions, viewPartition{
					Topic: textOf(t.Topic), Internal: t.IsInternal, Partition: p.Partition, Leader: p.LeaderID, Replicas: p.Replicas, ISR: p.ISR,
					ELR: p.EligibleLeaderReplicas, LastKnown: p.LastKnownELR,
				})
			}
		}
		at := resp.NextCursor
		if at == nil || req.Cursor != nil && at.Topic == req.Cursor.Topic && at.Partition <= req.Cursor.Partition {
			return nil
		}
		cursor := kmsg.NewDescribeTopicPartitionsRequestCursor()
		cursor.Topic, cursor.Partition = at.Topic, at.Partition
		req.Cursor = &cursor
	}
}

func (s *session) viewMoves(ctx context.Context, v *clusterView) error {
	req := kmsg.NewPtrListPartitionReassignmentsRequest()
	req.TimeoutMillis = s.serverMillis()
	resp, err := req.RequestWith(ctx, s.named())
	if err == nil {
		err = answered(kerr.ErrorForCode(resp.ErrorCode), textOf(resp.ErrorMessage))
	}
	if err != nil {
		return err
	}
	moves := map[string]kmsg.ListPartitionReassignmentsResponseTopicPartition{}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			moves[(&viewPartition{Topic: t.Topic, Partition: p.Partition}).name()] = p
		}
	}
	for i := range v.Partitions {
		p := &v.Partitions[i]
		if m, ok := moves[p.name()]; ok {
			p.Replicas, p.Adding, p.Removing = m.Replicas, m.AddingReplicas, m.RemovingReplicas
		}
	}
	return nil
}

// textOf is an optional text of the protocol, "" when it is null.
func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// sizes are the bytes of each replica, by partition and node.
type sizes map[string]map[int32]int64

// replicaSizes asks the nodes that hold the partitions how large their replicas are. A node that does not answer is left out.
func (s *session) replicaSizes(ctx context.Context, partitions []*viewPartition) sizes {
	out := sizes{}
	wanted := map[int32]map[string][]int32{}
	for _, p := range partitions {
		out[p.name()] = map[int32]int64{}
		for _, n := range p.Replicas {
			if wanted[n] == nil {
				wanted[n] = map[string][]int32{}
			}
			wanted[n][p.Topic] = append(wanted[n][p.Topic], p.Partition)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(wanted)) {
		req := kmsg.NewPtrDescribeLogDirsRequest()
		for _, topic := range slices.Sorted(maps.Keys(wanted[n])) {
			t := kmsg.NewDescribeLogDirsRequestTopic()
			t.Topic, t.Partitions = topic, wanted[n][topic]
			req.Topics = append(req.Topics, t)
		}
		answer, err := s.client.Broker(int(n)).RetriableRequest(ctx, req)
		if err != nil {
			continue
		}
		for _, d := range answer.(*kmsg.DescribeLogDirsResponse).Dirs {
			for _, t := range d.Topics {
				for _, p := range t.Partitions {
					if of := out[(&viewPartition{Topic: t.Topic, Partition: p.Partition}).name()]; of != nil {
						of[n] = p.Size
					}
				}
			}
		}
	}
	return out
}
