package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// markOffline says of partitions that have a problem whether their log is damaged. Metadata cannot: there such a partition has no leader, as
// one in the middle of an election. Only the nodes that hold it know, so each of them is asked; one that does not answer leaves what is
// known as it is.
func (s *session) markOffline(ctx context.Context, topic string, partitions []describedPartition) {
	holders := map[int32]bool{}
	for _, p := range partitions {
		for _, r := range p.Replicas {
			holders[r] = holders[r] || p.Error != ""
		}
	}
	on := map[int32][]int32{}
	for node, ask := range holders {
		if ask {
			for _, p := range s.damagedOn(ctx, node, topic) {
				on[p] = append(on[p], node)
			}
		}
	}
	for i := range partitions {
		p := &partitions[i]
		nodes := on[p.Partition]
		if p.Error == "" || len(nodes) == 0 {
			continue
		}
		slices.Sort(nodes)
		p.Error = fmt.Sprintf("OFFLINE: damaged, or not readable, on node %s; the messages of that node name file and byte", strings.Trim(fmt.Sprint(nodes), "[]"))
		for _, n := range nodes {
			if !slices.Contains(p.Offline, n) {
				p.Offline = append(p.Offline, n)
			}
		}
	}
}

// damagedOn asks one node for the partitions of a topic that are offline there, page by page.
func (s *session) damagedOn(ctx context.Context, node int32, topic string) (partitions []int32) {
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	rt := kmsg.NewDescribeTopicPartitionsRequestTopic()
	rt.Topic = topic
	req.Topics, req.ResponsePartitionLimit = append(req.Topics, rt), describePage
	for {
		answer, err := s.client.Broker(int(node)).Request(ctx, req)
		if err != nil {
			return partitions
		}
		resp := answer.(*kmsg.DescribeTopicPartitionsResponse)
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode == kerr.KafkaStorageError.Code {
					partitions = append(partitions, p.Partition)
				}
			}
		}
		if resp.NextCursor == nil {
			return partitions
		}
		cursor := kmsg.NewDescribeTopicPartitionsRequestCursor()
		cursor.Topic, cursor.Partition = resp.NextCursor.Topic, resp.NextCursor.Partition
		if at := req.Cursor; at != nil && cursor.Topic == at.Topic && cursor.Partition <= at.Partition {
			return partitions // a broker that does not move on
		}
		req.Cursor = &cursor
	}
}
