package server

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/storage"
)

// noCoordinator is the coordinator epoch of a producer without a transaction.
const noCoordinator = -1

// handleDescribeProducers lists the idempotent producers that the leader of a partition remembers.
func (s *Server) handleDescribeProducers(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.DescribeProducersRequest)
	resp := reply[*kmsg.DescribeProducersResponse](req)
	img := s.cfg.Image()
	room, asked := describedProducersMax, 0
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewDescribeProducersResponseTopic()
		out.Topic = t.Topic
		topic, code := s.findTopicFor(call, kmsg.ACLOperationRead, img, byName(t.Topic))
		for _, n := range t.Partitions {
			p := kmsg.NewDescribeProducersResponseTopicPartition()
			p.Partition = n
			asked++
			switch {
			case asked > partitionsMax || room <= 0:
				p.ErrorCode, p.ErrorMessage = int16(kafka.PolicyViolation), text("the answer would be too long: ask for fewer partitions")
			case topic == nil:
				p.ErrorCode, p.ErrorMessage = int16(code), text(absent(code))
			case n < 0 || int(n) >= len(topic.Partitions):
				p.ErrorCode, p.ErrorMessage = int16(kafka.UnknownTopicOrPartition), text("no such partition")
			default:
				s.describeProducers(kafka.TopicPartition{Topic: topic.ID, Partition: n}, &p)
				room -= len(p.ActiveProducers)
			}
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return ready(resp)
}

func (s *Server) describeProducers(tp kafka.TopicPartition, p *kmsg.DescribeProducersResponseTopicPartition) {
	entries, err := s.cfg.Logs.Producers(tp)
	if err != nil {
		p.ErrorCode, p.ErrorMessage = int16(s.partitionCode(err, tp, false, "describe producers")), text(err.Error())
		return
	}
	for i := range entries {
		p.ActiveProducers = append(p.ActiveProducers, activeProducer(&entries[i]))
	}
}

// activeProducer describes one producer. Its time is that of the broker's append, by which it expires.
func activeProducer(e *storage.ProducerEntry) kmsg.DescribeProducersResponseTopicPartitionActiveProducer {
	a := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
	a.ProducerID, a.ProducerEpoch, a.LastSequence = int64(e.ID), int32(e.Epoch), -1
	a.LastTimestamp, a.CoordinatorEpoch, a.CurrentTxnStartOffset = e.LastAppendMs, noCoordinator, int64(e.OpenTransaction)
	if n := len(e.Batches); n > 0 {
		a.LastSequence = e.Batches[n-1].LastSequence
	}
	return a
}
