package canary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/record"
	"strandline.dev/internal/server"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/wire"
)

// Asker has a request carried out by a node. *server.Server is the implementation; tests have one that answers what it is told to.
type Asker interface {
	// Read is for all requests: what the answer points into is good until release.
	Read(ctx context.Context, node kafka.NodeID, call *server.Call) (resp kmsg.Response, release func(), err error)
}

// Controller takes the creation of the topic to the active controller.
type Controller interface {
	Submit(ctx context.Context, ev metadata.Event) (reply any, version uint64, err error)
}

// Config is what a Canary is built from. All fields but Dev are required.
type Config struct {
	Node     kafka.NodeID
	Interval time.Duration
	Image    func() *metadata.Image
	// Broker is the door to this node and, by it, to others.
	Broker     Asker
	Controller Controller
	// Dev creates the topic with what brokers there are.
	Dev     bool
	Wall    sys.Wall
	Log     *slog.Logger
	Metrics *metrics.Canary
}

// Canary measures publishes.
type Canary struct {
	cfg     Config
	turn    int    // of the partitions
	number  uint64 // of the record
	failing bool   // the last measurement failed
}

// New makes a Canary; it starts nothing.
func New(c Config) *Canary { return &Canary{cfg: c, turn: int(c.Node)} }

var (
	// errNotYet: this node does not know yet what the controller has decided.
	errNotYet = errors.New("the topic is being made")
	// errNoLeader: nobody leads the partition.
	errNoLeader = errors.New("the partition has no leader")
	// errElsewhere: something else is where an acknowledged record should be.
	errElsewhere = errors.New("another record is at its offset")
)

// Run measures at every interval until ctx ends.
func (c *Canary) Run(ctx context.Context) {
	tick := time.NewTicker(c.cfg.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		why, err := c.measure(ctx)
		if ctx.Err() != nil {
			return
		}
		c.judge(why, err)
	}
}

// judge counts a measurement, and says when they begin to fail or no longer do.
func (c *Canary) judge(why metrics.CanaryFailure, err error) {
	if err != nil {
		c.cfg.Metrics.Failed(why)
	}
	switch {
	case why == metrics.CanaryLost && err != nil:
		c.cfg.Log.Error("a record that was acknowledged is not there", "topic", metadata.CanaryTopic, "error", err)
	case err != nil && !c.failing:
		c.cfg.Log.Warn("a record of this node's own was not published and read in time", "topic", metadata.CanaryTopic, "what", why, "error", err)
	case err == nil && c.failing:
		c.cfg.Log.Info("records of this node's own are published and read again", "topic", metadata.CanaryTopic)
	}
	c.failing = err != nil
}

// measure publishes one record and reads it back.
func (c *Canary) measure(ctx context.Context) (metrics.CanaryFailure, error) {
	began := time.Now()
	c.turn, c.number = c.turn+1, c.number+1
	value := fmt.Appendf(nil, "node %v, number %d, %d", c.cfg.Node, c.number, c.cfg.Wall.Now().UnixNano())
	var at place
	err := c.again(ctx, func(ctx context.Context) (err error) { at, err = c.publish(ctx, value); return err })
	if err != nil {
		return metrics.CanaryUnpublished, err
	}
	c.cfg.Metrics.EndToEnd.Observe(time.Since(began).Seconds())
	err = c.again(ctx, func(ctx context.Context) error { return c.read(ctx, at, value) })
	if errors.Is(err, errElsewhere) {
		return metrics.CanaryLost, fmt.Errorf("partition %d, offset %d: %w", at.partition, at.offset, err)
	}
	return metrics.CanaryUnread, err
}

// again repeats an attempt until it succeeds, giveUp is over or ctx ends; the error is that of the last one.
func (c *Canary) again(ctx context.Context, attempt func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, giveUp)
	defer cancel()
	for {
		once, done := context.WithTimeout(bounded, attemptMax)
		err := attempt(once)
		done()
		if err == nil || errors.Is(err, errElsewhere) {
			return err
		}
		select {
		case <-bounded.Done():
			return err
		case <-time.After(retryEvery):
		}
	}
}

// place is where a record was stored.
type place struct {
	topic     kafka.TopicID
	partition int32
	offset    int64
}

// leader finds the topic and who leads the partition whose turn it is.
func (c *Canary) leader(ctx context.Context, at *place) (kafka.NodeID, error) {
	t, err := c.ensure(ctx)
	if err != nil {
		return kafka.NoNode, err
	}
	if t.State != metadata.StateReady || len(t.Partitions) == 0 {
		return kafka.NoNode, errNotYet
	}
	at.topic, at.partition = t.ID, int32(c.turn%len(t.Partitions))
	if leader := t.Partitions[at.partition].Leader; leader != kafka.NoNode {
		return leader, nil
	}
	return kafka.NoNode, errNoLeader
}

// ask has a node answer a request. The answer is good until release.
func ask[R kmsg.Response](ctx context.Context, c *Canary, node kafka.NodeID, req kmsg.Request) (answer R, release func(), err error) {
	api, _ := wire.Lookup(req.Key())
	req.SetVersion(api.Max)
	resp, release, err := c.cfg.Broker.Read(ctx, node, &server.Call{Principal: c.self(), Request: req, ClientID: "canary", Received: time.Now()})
	if err != nil {
		return answer, release, err
	}
	answer, ok := resp.(R)
	if !ok {
		return answer, release, fmt.Errorf("the answer to %T is %T", req, resp)
	}
	return answer, release, nil
}

// refusedError is an answer that refuses.
func refusedError(code int16, message *string) error {
	if code == 0 {
		return nil
	}
	if message != nil {
		return fmt.Errorf("%v: %s", kafka.ErrorCode(code), *message)
	}
	return errors.New(kafka.ErrorCode(code).String())
}

// publish makes one attempt.
func (c *Canary) publish(ctx context.Context, value []byte) (at place, err error) {
	leader, err := c.leader(ctx, &at)
	if err != nil {
		return at, err
	}
	batch := record.NewBuilder(record.None)
	batch.Add(c.cfg.Wall.Now().UnixMilli(), nil, value, nil)
	one := kmsg.NewProduceRequestTopicPartition()
	one.Partition, one.Records = at.partition, batch.Build()
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID, topic.Partitions = metadata.CanaryTopic, at.topic, append(topic.Partitions, one)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.Topics = -1, int32(attemptMax/time.Millisecond), append(req.Topics, topic)
	resp, release, err := ask[*kmsg.ProduceResponse](ctx, c, leader, req)
	defer release()
	if err != nil {
		return at, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return at, fmt.Errorf("the answer is about %d topics", len(resp.Topics))
	}
	answer := &resp.Topics[0].Partitions[0]
	at.offset = answer.BaseOffset
	return at, refusedError(answer.ErrorCode, answer.ErrorMessage)
}

// read makes one attempt to read what was acknowledged.
func (c *Canary) read(ctx context.Context, at place, value []byte) error {
	var now place
	leader, err := c.leader(ctx, &now)
	if err != nil {
		return err
	}
	if now.topic != at.topic {
		return nil // somebody has deleted the topic meanwhile
	}
	one := kmsg.NewFetchRequestTopicPartition()
	one.Partition, one.FetchOffset, one.PartitionMaxBytes = at.partition, at.offset, recordBytesMax
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID, topic.Partitions = metadata.CanaryTopic, at.topic, append(topic.Partitions, one)
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.SessionEpoch, req.MinBytes, req.MaxBytes = -1, -1, 1, recordBytesMax
	req.MaxWaitMillis, req.Topics = int32(attemptMax/time.Millisecond)/2, append(req.Topics, topic)
	resp, release, err := ask[*kmsg.FetchResponse](ctx, c, leader, req)
	defer release()
	if err != nil {
		return err
	}
	if err := refusedError(resp.ErrorCode, nil); err != nil {
		return err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return fmt.Errorf("the answer is about %d topics", len(resp.Topics))
	}
	answer := &resp.Topics[0].Partitions[0]
	if err := refusedError(answer.ErrorCode, nil); err != nil {
		return err
	}
	return holds(answer.RecordBatches, at.offset, value)
}

// holds looks for the record at an offset.
func holds(batches []byte, offset int64, value []byte) error {
	for len(batches) > 0 {
		b, rest, err := record.Split(batches)
		if err != nil {
			return err
		}
		batches = rest
		for r, err := range b.Records(recordBytesMax) {
			if err != nil {
				return err
			}
			if int64(b.BaseOffset())+int64(r.OffsetDelta) != offset {
				continue
			}
			if !bytes.Equal(r.Value, value) {
				return errElsewhere
			}
			return nil
		}
	}
	return fmt.Errorf("no record at offset %d yet", offset)
}
