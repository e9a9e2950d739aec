package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/wire"
)

// describedReplica is what one replica says of itself (R105): its log may be ahead of the high watermark, and behind the leader's.
type describedReplica struct {
	Node          int32 `json:"node"`
	LogStart      int64 `json:"logStart"`
	HighWatermark int64 `json:"highWatermark"` // as this replica knows it
	LogEnd        int64 `json:"logEnd"`
	Lag           int64 `json:"lag"` // behind the end of the leader's log; -1: the leader does not answer
	recordIDs     int64
}

// markReplicas asks every node that holds one what its replicas hold. A node that does not answer leaves its replicas unknown.
func (s *session) markReplicas(ctx context.Context, topic string, partitions []describedPartition) {
	held := map[int32][]int32{}
	for _, p := range partitions {
		for _, node := range p.Replicas {
			held[node] = append(held[node], p.Partition)
		}
	}
	type answer struct {
		node int32
		told map[int32]describedReplica
	}
	answers := make(chan answer, len(held))
	for node, numbers := range held {
		go func() {
			told, err := s.replicasOn(ctx, node, topic, numbers)
			if err != nil {
				told = nil
			}
			answers <- answer{node, told}
		}()
	}
	byNode := map[int32]map[int32]describedReplica{}
	for range held {
		a := <-answers
		byNode[a.node] = a.told
	}
	for i := range partitions {
		partitions[i].takeReplicas(byNode)
	}
}

func (p *describedPartition) takeReplicas(byNode map[int32]map[int32]describedReplica) {
	end := int64(-1)
	if leader, ok := byNode[p.Leader][p.Partition]; ok {
		end, p.RecordIDs = leader.LogEnd, &leader.recordIDs
	}
	for _, node := range p.Replicas {
		r, ok := byNode[node][p.Partition]
		if !ok {
			continue
		}
		r.Lag = -1
		if end >= 0 {
			r.Lag = max(end-r.LogEnd, 0) // the leader was asked at another moment
		}
		p.ReplicaEnds = append(p.ReplicaEnds, r)
	}
}

// replicasOn is what the replicas of one node hold, by partition.
func (s *session) replicasOn(ctx context.Context, node int32, topic string, partitions []int32) (map[int32]describedReplica, error) {
	req := kmsg.NewPtrDescribeLogDirsRequest()
	rt := kmsg.NewDescribeLogDirsRequestTopic()
	rt.Topic, rt.Partitions = topic, partitions
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(ctx, s.client.Broker(int(node)))
	if err != nil {
		return nil, err
	}
	told := map[int32]describedReplica{}
	for _, d := range resp.Dirs {
		for _, t := range d.Topics {
			for _, p := range t.Partitions {
				if r, ok := readReplica(node, p.UnknownTags); ok {
					told[p.Partition] = r
				}
			}
		}
	}
	return told, nil
}

func readReplica(node int32, tags kmsg.Tags) (r describedReplica, ok bool) {
	r.Node = node
	at := func(b []byte, i int) int64 { return int64(binary.BigEndian.Uint64(b[8*i:])) }
	tags.Each(func(tag uint32, value []byte) {
		switch {
		case tag == wire.TagRecordIDs && len(value) == 8:
			r.recordIDs = at(value, 0)
		case tag == wire.TagReplicaEnds && len(value) == 24:
			r.LogStart, r.HighWatermark, r.LogEnd, ok = at(value, 0), at(value, 1), at(value, 2), true
		}
	})
	return r, ok
}

// replicaEnds shows the log ends of replicas: 1:120 3:118(-2), where 3 is two records behind the leader.
func replicaEnds(replicas []describedReplica) string {
	var out []string
	for _, r := range replicas {
		text := fmt.Sprintf("%d:%d", r.Node, r.LogEnd)
		if r.Lag > 0 {
			text += fmt.Sprintf("(-%d)", r.Lag)
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return "-"
	}
	return strings.Join(out, " ")
}
