package rest

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
)

type nodePath struct {
	Node int32 `path:"node" minimum:"0"`
}

type describedNode struct {
	Node     int32  `json:"node"`
	Address  string `json:"address" doc:"where Kafka clients reach it"`
	Rack     string `json:"rack"`
	State    string `json:"state" enum:"up,down,silent,draining,drained" doc:"down: the controller does not hear it; silent: it does not answer here"`
	Why      string `json:"why,omitempty" doc:"why it is silent"`
	Replicas int    `json:"replicas"`
	Leaders  int    `json:"leaders"`

	draining bool
}

type partitionCounts struct {
	Total           int `json:"total"`
	Offline         int `json:"offline" doc:"without a leader"`
	UnderReplicated int `json:"underReplicated" doc:"with a replica that is not in sync"`
}

type describedCluster struct {
	Body struct {
		ClusterID   string          `json:"clusterId"`
		Controller  int32           `json:"controller" doc:"the controller that leads; -1: none is known"`
		Term        int32           `json:"term"`
		Controllers []int32         `json:"controllers"`
		Unreached   []int32         `json:"unreached" doc:"controllers that this node cannot reach"`
		Nodes       []describedNode `json:"nodes"`
		Partitions  partitionCounts `json:"partitions"`
		Healthy     bool            `json:"healthy" doc:"a controller leads, every node is up, and every partition has all its replicas in sync"`
	}
}

type listedNodes struct {
	Body struct {
		Nodes []describedNode `json:"nodes"`
	}
}

type drainedNode struct {
	Body struct {
		Node     int32 `json:"node"`
		Draining bool  `json:"draining"`
	}
}

// describeCluster registers the routes of the cluster and its nodes.
func (d *door) describeCluster(api huma.API) {
	tags := []string{"cluster"}
	huma.Register(api, huma.Operation{
		OperationID: "describeCluster", Method: http.MethodGet, Path: "/v1/cluster", Tags: tags,
		Summary: "The cluster's id, controllers and nodes, and how its partitions are",
	}, d.showCluster)
	huma.Register(api, huma.Operation{
		OperationID: "listNodes", Method: http.MethodGet, Path: "/v1/nodes", Tags: tags, Summary: "The nodes, whether they are up, and what they hold",
	}, d.listNodes)
	huma.Register(api, huma.Operation{
		OperationID: "drainNode", Method: http.MethodPut, Path: "/v1/nodes/{node}/drain", Tags: tags,
		Summary: "Begin to move every leadership and replica off a node; it is drained when its state says so",
	}, func(ctx context.Context, in *nodePath) (*drainedNode, error) { return d.drain(ctx, in.Node, true) })
	huma.Register(api, huma.Operation{
		OperationID: "undrainNode", Method: http.MethodDelete, Path: "/v1/nodes/{node}/drain", Tags: tags, Summary: "Put a node back into service",
	}, func(ctx context.Context, in *nodePath) (*drainedNode, error) { return d.drain(ctx, in.Node, false) })
	huma.Register(api, huma.Operation{
		OperationID: "removeNode", Method: http.MethodDelete, Path: "/v1/nodes/{node}", Tags: tags, DefaultStatus: http.StatusNoContent,
		Summary: "Forget a node that holds nothing, is stopped, and is no controller",
	}, d.removeNode)
}

// nodes are the registered brokers, also those that are down.
func (d *door) nodes(ctx context.Context) ([]kmsg.DescribeClusterResponseBroker, error) {
	resp, err := d.describedCluster(ctx)
	if err != nil {
		return nil, err
	}
	return resp.Brokers, nil
}

func (d *door) describedCluster(ctx context.Context) (*kmsg.DescribeClusterResponse, error) {
	req := kmsg.NewPtrDescribeClusterRequest()
	req.EndpointType, req.IncludeFencedBrokers = 1, true
	resp, err := askHere[*kmsg.DescribeClusterResponse](ctx, d, req)
	if err != nil {
		return nil, err
	}
	if resp.ErrorCode != 0 {
		return nil, failed(kafka.ErrorCode(resp.ErrorCode), resp.ErrorMessage)
	}
	slices.SortFunc(resp.Brokers, func(a, b kmsg.DescribeClusterResponseBroker) int { return cmp.Compare(a.NodeID, b.NodeID) })
	return resp, nil
}

func (d *door) showCluster(ctx context.Context, _ *struct{}) (*describedCluster, error) {
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	out := &describedCluster{}
	b := &out.Body
	resp, err := d.describedCluster(ctx)
	if err != nil {
		return nil, err
	}
	b.ClusterID, b.Controller, b.Controllers, b.Unreached = resp.ClusterID, int32(kafka.NoNode), []int32{}, []int32{}
	if err := d.fillQuorum(ctx, out); err != nil {
		return nil, err
	}
	if b.Nodes, b.Partitions, err = d.nodesAndPartitions(ctx, resp.Brokers); err != nil {
		return nil, err
	}
	b.Healthy = b.Controller >= 0 && len(b.Unreached) == 0 && b.Partitions.Offline+b.Partitions.UnderReplicated == 0
	for i := range b.Nodes {
		b.Healthy = b.Healthy && b.Nodes[i].State != "down" && b.Nodes[i].State != "silent"
	}
	return out, nil
}

func (d *door) fillQuorum(ctx context.Context, out *describedCluster) error {
	req := kmsg.NewPtrDescribeQuorumRequest()
	t := kmsg.NewDescribeQuorumRequestTopic()
	t.Topic = "__cluster_metadata"
	t.Partitions = append(t.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	req.Topics = append(req.Topics, t)
	resp, err := askHere[*kmsg.DescribeQuorumResponse](ctx, d, req)
	if err != nil {
		return err
	}
	if code := kafka.ErrorCode(resp.ErrorCode); code != kafka.None {
		return failed(code, resp.ErrorMessage)
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			p := &resp.Topics[i].Partitions[j]
			out.Body.Controller, out.Body.Term = p.LeaderID, p.LeaderEpoch
			for _, v := range p.CurrentVoters {
				out.Body.Controllers = append(out.Body.Controllers, v.ReplicaID)
				if v.LastFetchTimestamp < 0 {
					out.Body.Unreached = append(out.Body.Unreached, v.ReplicaID)
				}
			}
		}
	}
	slices.Sort(out.Body.Controllers)
	slices.Sort(out.Body.Unreached)
	return nil
}

func (d *door) listNodes(ctx context.Context, _ *struct{}) (*listedNodes, error) {
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	brokers, err := d.nodes(ctx)
	if err != nil {
		return nil, err
	}
	out := &listedNodes{}
	out.Body.Nodes, _, err = d.nodesAndPartitions(ctx, brokers)
	return out, err
}

// nodesAndPartitions says how nodes are and what they hold, of the topics that the caller may describe.
func (d *door) nodesAndPartitions(ctx context.Context, brokers []kmsg.DescribeClusterResponseBroker) ([]describedNode, partitionCounts, error) {
	out := make([]describedNode, len(brokers))
	at := map[int32]*describedNode{}
	var asked sync.WaitGroup
	for i, b := range brokers {
		n := &out[i]
		n.Node, n.Address, n.State, at[b.NodeID] = b.NodeID, net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))), "up", n
		if b.Rack != nil {
			n.Rack = *b.Rack
		}
		if n.State = "down"; !b.IsFenced {
			n.State = "up"
			asked.Go(func() { d.readDrain(ctx, n) })
		}
	}
	asked.Wait()
	counts, err := d.countPartitions(ctx, at)
	for i := range out {
		switch n := &out[i]; {
		case n.State != "up" || !n.draining:
		case n.Replicas == 0:
			n.State = "drained"
		default:
			n.State = "draining"
		}
	}
	return out, counts, err
}

// readDrain asks a node whether it is being drained: a node tells only its own configs. One that does not answer is silent.
func (d *door) readDrain(ctx context.Context, n *describedNode) {
	ctx, cancel := context.WithTimeout(ctx, adminWait/4)
	defer cancel()
	req := kmsg.NewPtrDescribeConfigsRequest()
	one := kmsg.NewDescribeConfigsRequestResource()
	one.ResourceType, one.ResourceName, one.ConfigNames = kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(n.Node)), []string{config.DrainKey}
	req.Resources = append(req.Resources, one)
	resp, err := ask[*kmsg.DescribeConfigsResponse](ctx, d, kafka.NodeID(n.Node), req)
	if err != nil {
		n.State, n.Why = "silent", asProblem(err).Detail
		return
	}
	for i := range resp.Resources {
		for _, c := range resp.Resources[i].Configs {
			n.draining = n.draining || c.Name == config.DrainKey && c.Value != nil && strings.EqualFold(*c.Value, "true")
		}
	}
}

// countPartitions reads every partition, page by page.
func (d *door) countPartitions(ctx context.Context, at map[int32]*describedNode) (counts partitionCounts, err error) {
	var cursor *kmsg.DescribeTopicPartitionsRequestCursor
	for {
		req := kmsg.NewPtrDescribeTopicPartitionsRequest()
		req.Cursor = cursor
		resp, err := askHere[*kmsg.DescribeTopicPartitionsResponse](ctx, d, req)
		if err != nil {
			return counts, err
		}
		for i := range resp.Topics {
			for j := range resp.Topics[i].Partitions {
				counts.add(&resp.Topics[i].Partitions[j], at)
			}
		}
		next := resp.NextCursor
		if next == nil || cursor != nil && next.Topic == cursor.Topic && next.Partition <= cursor.Partition {
			return counts, nil
		}
		c := kmsg.NewDescribeTopicPartitionsRequestCursor()
		c.Topic, c.Partition = next.Topic, next.Partition
		cursor = &c
	}
}

func (c *partitionCounts) add(p *kmsg.DescribeTopicPartitionsResponseTopicPartition, at map[int32]*describedNode) {
	c.Total++
	if p.LeaderID < 0 {
		c.Offline++
	}
	if len(p.ISR) < len(p.Replicas) {
		c.UnderReplicated++
	}
	for _, r := range p.Replicas {
		if n := at[r]; n != nil {
			n.Replicas++
			if r == p.LeaderID {
				n.Leaders++
			}
		}
	}
}

// drain begins or ends the drain of a node.
func (d *door) drain(ctx context.Context, node int32, on bool) (*drainedNode, error) {
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	one := kmsg.NewIncrementalAlterConfigsRequestResource()
	one.ResourceType, one.ResourceName = kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(node))
	c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	c.Name, c.Op = config.DrainKey, kmsg.IncrementalAlterConfigOpDelete
	if on {
		c.Op, c.Value = kmsg.IncrementalAlterConfigOpSet, kmsg.StringPtr("true")
	}
	one.Configs = append(one.Configs, c)
	req.Resources = append(req.Resources, one)
	resp, err := askHere[*kmsg.IncrementalAlterConfigsResponse](ctx, d, req)
	if err != nil {
		return nil, err
	}
	if len(resp.Resources) != 1 {
		return nil, failed(kafka.UnknownServerError, nil)
	}
	if r := &resp.Resources[0]; r.ErrorCode != 0 {
		return nil, failed(kafka.ErrorCode(r.ErrorCode), r.ErrorMessage)
	}
	out := &drainedNode{}
	out.Body.Node, out.Body.Draining = node, on
	return out, nil
}

func (d *door) removeNode(ctx context.Context, in *nodePath) (*struct{}, error) {
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	req := kmsg.NewPtrUnregisterBrokerRequest()
	req.BrokerID = in.Node
	resp, err := askHere[*kmsg.UnregisterBrokerResponse](ctx, d, req)
	if err == nil && resp.ErrorCode != 0 {
		err = failed(kafka.ErrorCode(resp.ErrorCode), resp.ErrorMessage)
	}
	return nil, err
}
