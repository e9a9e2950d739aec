package load

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/test/chaos/check"
	"strandline.dev/test/chaos/raw"
)

const (
	// again paces the next try of a batch; tryMax bounds one try.
	again  = 20 * time.Millisecond
	tryMax = 2 * time.Second
)

// sequenced is an idempotent producer for one partition that knows nothing but its sequence: each batch is sent again, on whatever
// connection and to whatever leader, until it is confirmed.
func (l *Load) sequenced(k check.Key) {
	id, ok := l.producerID()
	if !ok {
		return
	}
	producer := int(id) + 1000 // apart from the numbers of the others
	n := &line{r: l.routes, k: k}
	defer n.drop()
	rng := l.random(uint64(producer))
	pace := time.Second * time.Duration(l.partitions()) / time.Duration(l.o.Rate)
	for sequence := int32(0); pause(l.writing, time.Duration(rng.Int64N(2*int64(pace)*3))); { // three records a batch on average
		values, begun := make([]uint64, 1+rng.IntN(5)), []int(nil)
		b := record.NewBuilder(record.None)
		for i := range values {
			values[i] = l.value()
			begun = append(begun, l.R.Begin(check.Send{Key: k, Value: values[i], Producer: producer, All: true}))
			b.Add(time.Now().UnixMilli(), nil, Value(values[i]), nil)
		}
		batch := b.Build()
		batch.SetProducer(id, 0, sequence, false)
		base, ok := l.untilConfirmed(n, batch)
		if !ok {
			return
		}
		for i, at := range begun {
			l.confirmed(at, k, base+int64(i))
		}
		sequence += int32(len(values))
	}
}

// untilConfirmed sends a batch until it is confirmed; false when the load ends, or when the answer is one that no repeat may get.
func (l *Load) untilConfirmed(n *line, batch record.Batch) (base int64, ok bool) {
	for l.ctx.Err() == nil {
		answer, err := n.produce(l.ctx, batch)
		switch {
		case err != nil:
			n.drop()
			n.r.refresh(l.ctx, n.k.Topic)
		case answer.ErrorCode == 0:
			return answer.BaseOffset, true
		case retriable(answer.ErrorCode):
			l.count("produce answered " + kerr.ErrorForCode(answer.ErrorCode).Error())
			n.r.learn(n.k, answer.CurrentLeader.LeaderID, answer.CurrentLeader.LeaderEpoch)
			n.r.refresh(l.ctx, n.k.Topic)
		default:
			l.problem("%s/%d: an idempotent repeat at sequence %d was refused: %v", n.k.Topic, n.k.Partition, batch.BaseSequence(), kerr.ErrorForCode(answer.ErrorCode))
			return 0, false
		}
		pause(l.ctx, again)
	}
	return 0, false
}

func retriable(code int16) bool {
	return kerr.IsRetriable(kerr.ErrorForCode(code))
}

// produce sends one batch once.
func (n *line) produce(ctx context.Context, batch record.Batch) (*kmsg.ProduceResponseTopicPartition, error) {
	ctx, cancel := context.WithTimeout(ctx, tryMax)
	defer cancel()
	conn, _ := n.open(ctx)
	if conn == nil {
		return nil, context.DeadlineExceeded
	}
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, int32(tryMax.Milliseconds())
	t := kmsg.NewProduceRequestTopic()
	t.Topic = n.k.Topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = n.k.Partition, batch
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	r, err := conn.Do(ctx, req)
	if err != nil {
		return nil, err
	}
	return &r.(*kmsg.ProduceResponse).Topics[0].Partitions[0], nil
}

// producerID asks for a producer id until it gets one.
func (l *Load) producerID() (kafka.ProducerID, bool) {
	for l.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(l.ctx, tryMax)
		r, err := raw.Ask(ctx, anyOf(l.o.Brokers), kmsg.NewPtrInitProducerIDRequest())
		cancel()
		if err == nil {
			if resp := r.(*kmsg.InitProducerIDResponse); resp.ErrorCode == 0 {
				return kafka.ProducerID(resp.ProducerID), true
			}
		}
		pause(l.ctx, again)
	}
	return 0, false
}
