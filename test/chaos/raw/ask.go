package raw

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Partition is what a node's metadata says of a partition.
type Partition struct {
	Leader, Epoch int32
	Replicas, ISR []int32
}

// Topic asks a node for one topic: its partitions by number, and its id.
func Topic(ctx context.Context, address, name string) ([]Partition, [16]byte, error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &name
	req.Topics = append(req.Topics, t)
	r, err := Ask(ctx, address, req)
	if err != nil {
		return nil, [16]byte{}, err
	}
	resp := r.(*kmsg.MetadataResponse)
	if len(resp.Topics) != 1 {
		return nil, [16]byte{}, fmt.Errorf("%d topics in the answer", len(resp.Topics))
	}
	shown := &resp.Topics[0]
	if err := kerr.ErrorForCode(shown.ErrorCode); err != nil {
		return nil, shown.TopicID, fmt.Errorf("topic %s: %w", name, err)
	}
	out := make([]Partition, len(shown.Partitions))
	for _, p := range shown.Partitions {
		if int(p.Partition) >= len(out) || p.Partition < 0 {
			return nil, shown.TopicID, fmt.Errorf("partition %d of %d", p.Partition, len(out))
		}
		out[p.Partition] = Partition{Leader: p.Leader, Epoch: p.LeaderEpoch, Replicas: p.Replicas, ISR: p.ISR}
	}
	if len(out) == 0 {
		return nil, shown.TopicID, errors.New("no partitions in the answer")
	}
	return out, shown.TopicID, nil
}

// QuorumLeader asks a node which controller is active.
func QuorumLeader(ctx context.Context, address string) (int32, error) {
	req := kmsg.NewPtrDescribeQuorumRequest()
	t := kmsg.NewDescribeQuorumRequestTopic()
	t.Topic = "__cluster_metadata"
	t.Partitions = append(t.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	req.Topics = append(req.Topics, t)
	r, err := Ask(ctx, address, req)
	if err != nil {
		return -1, err
	}
	resp := r.(*kmsg.DescribeQuorumResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return -1, err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return -1, err
			}
			if p.LeaderID > 0 {
				return p.LeaderID, nil
			}
		}
	}
	return -1, errors.New("no leader is named")
}

// ElectPreferred makes the preferred replicas lead, as far as they are in sync.
func ElectPreferred(ctx context.Context, address string) error {
	req := kmsg.NewPtrElectLeadersRequest()
	req.TimeoutMillis = 10_000
	r, err := Ask(ctx, address, req)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(r.(*kmsg.ElectLeadersResponse).ErrorCode)
}
