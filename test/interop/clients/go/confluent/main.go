// Command confluent walks confluent-kafka-go, and the librdkafka in it, through the steps.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"strandline.dev/test/interop/steps"
)

type client struct {
	addr      string
	admin     *kafka.AdminClient
	producers map[string]*kafka.Producer
}

func main() {
	c := &client{addr: os.Args[1], producers: map[string]*kafka.Producer{}}
	var err error
	if c.admin, err = kafka.NewAdminClient(config(kafka.ConfigMap{"bootstrap.servers": c.addr})); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	const binding = "the Go binding hands out null and empty alike"
	steps.Walk(&steps.Client{
		Version: steps.ModuleVersion("github.com/confluentinc/confluent-kafka-go/v2"),
		Lacks:   map[string]string{"keys": binding, "values": binding, "null-headers": binding},
		Create:  c.create, Produce: c.produce, Read: c.read, Join: c.join, Committed: c.committed, OffsetAt: c.offsetAt, Seek: c.seek,
		Describe: c.describe, Reset: c.reset, DeleteGroup: c.deleteGroup, DeleteTopic: c.deleteTopic, Topics: c.topics,
	})
}

// config is these settings, with those of a secured broker.
func config(settings kafka.ConfigMap) *kafka.ConfigMap {
	if steps.Secure() {
		settings["security.protocol"], settings["sasl.mechanism"], settings["ssl.ca.location"] = "SASL_SSL", "SCRAM-SHA-512", steps.CAFile()
		settings["sasl.username"], settings["sasl.password"] = steps.User(), steps.Password()
	}
	return &settings
}

// failure is nil for the error value that says "no error".
func failure(e kafka.Error) error {
	if e.Code() == kafka.ErrNoError {
		return nil
	}
	return e
}

func (c *client) create(ctx context.Context, topic string, partitions int) error {
	r, err := c.admin.CreateTopics(ctx, []kafka.TopicSpecification{{Topic: topic, NumPartitions: partitions, ReplicationFactor: int(steps.Replicas())}})
	if err != nil {
		return err
	}
	return failure(r[0].Error)
}

func (c *client) produce(ctx context.Context, topic, codec string, rs []steps.Record) error {
	p := c.producers[codec]
	if p == nil {
		var err error
		if p, err = kafka.NewProducer(config(kafka.ConfigMap{"bootstrap.servers": c.addr, "compression.type": codec, "enable.idempotence": true, "linger.ms": 20})); err != nil {
			return err
		}
		c.producers[codec] = p
	}
	delivered := make(chan kafka.Event, len(rs))
	for _, r := range rs {
		m := &kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: r.Partition}, Key: r.Key, Value: r.Value, Timestamp: r.At}
		for _, h := range r.Headers {
			m.Headers = append(m.Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		if err := p.Produce(m, delivered); err != nil {
			return err
		}
	}
	for range rs {
		select {
		case e := <-delivered:
			if err := e.(*kafka.Message).TopicPartition.Error; err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (c *client) consumer(group string) (*kafka.Consumer, error) {
	settings := kafka.ConfigMap{"bootstrap.servers": c.addr, "group.id": group, "enable.auto.commit": false, "auto.offset.reset": "earliest"}
	if protocol := os.Getenv("GROUP_PROTOCOL"); protocol != "" {
		settings["group.protocol"] = protocol
	} else {
		// A short session: a member closed while its coordinator connection is down does not say that it leaves.
		settings["session.timeout.ms"], settings["heartbeat.interval.ms"] = 6000, 1000
	}
	return kafka.NewConsumer(config(settings))
}

// poll returns the next record or, after a short while or a passing error, nothing.
func poll(k *kafka.Consumer) []steps.Record {
	m, err := k.ReadMessage(200 * time.Millisecond)
	if err != nil {
		if e, ok := err.(kafka.Error); !ok || !e.IsTimeout() {
			fmt.Fprintln(os.Stderr, "poll:", err)
		}
		return nil
	}
	r := steps.Record{Partition: m.TopicPartition.Partition, Offset: int64(m.TopicPartition.Offset), Key: m.Key, Value: m.Value, At: m.Timestamp}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, steps.Header{Key: h.Key, Value: h.Value})
	}
	return []steps.Record{r}
}

func readFrom(ctx context.Context, k *kafka.Consumer, n int) ([]steps.Record, error) {
	var out []steps.Record
	for len(out) < n {
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		out = append(out, poll(k)...)
	}
	return out, nil
}

func (c *client) read(ctx context.Context, topic string, partition int32, from int64, n int) ([]steps.Record, error) {
	k, err := c.consumer("unused")
	if err != nil {
		return nil, err
	}
	defer func() { _ = k.Close() }()
	if err := k.Assign([]kafka.TopicPartition{{Topic: &topic, Partition: partition, Offset: kafka.Offset(from)}}); err != nil {
		return nil, err
	}
	return readFrom(ctx, k, n)
}

func (c *client) join(_ context.Context, group, topic string) (*steps.Member, error) {
	k, err := c.consumer(group)
	if err != nil {
		return nil, err
	}
	if err := k.Subscribe(topic, nil); err != nil {
		return nil, err
	}
	return &steps.Member{
		Next: func(context.Context) ([]steps.Record, error) { return poll(k), nil },
		Commit: func(_ context.Context, offsets map[int32]int64) error {
			_, err := k.CommitOffsets(partitions(topic, offsets))
			return err
		},
		Close: k.Close,
	}, nil
}

func partitions(topic string, offsets map[int32]int64) []kafka.TopicPartition {
	var out []kafka.TopicPartition
	for p, o := range offsets {
		out = append(out, kafka.TopicPartition{Topic: &topic, Partition: p, Offset: kafka.Offset(o)})
	}
	return out
}

func (c *client) committed(ctx context.Context, group, topic string) (map[int32]int64, error) {
	r, err := c.admin.ListConsumerGroupOffsets(ctx, []kafka.ConsumerGroupTopicPartitions{{Group: group, Partitions: partitions(topic, map[int32]int64{0: 0, 1: 0})}})
	if err != nil {
		return nil, err
	}
	out := map[int32]int64{}
	for _, p := range r.ConsumerGroupsTopicPartitions[0].Partitions {
		if p.Error != nil {
			return nil, p.Error
		}
		out[p.Partition] = int64(p.Offset)
	}
	return out, nil
}

func (c *client) offsetAt(ctx context.Context, topic string, partition int32, at time.Time) (int64, error) {
	tp := kafka.TopicPartition{Topic: &topic, Partition: partition}
	for {
		r, err := c.admin.ListOffsets(ctx, map[kafka.TopicPartition]kafka.OffsetSpec{tp: kafka.OffsetSpec(at.UnixMilli())})
		if err != nil {
			return 0, err
		}
		for _, o := range r.ResultInfos { // keyed by a pointer to the topic's name, so not to be looked up
			if o.Error.Code() != kafka.ErrFencedLeaderEpoch {
				return int64(o.Offset), failure(o.Error)
			}
		}
		// The leader has a new epoch since the restart; librdkafka's admin client goes on with the old one until asked to look.
		if _, err := c.admin.GetMetadata(&topic, false, 10_000); err != nil {
			return 0, err
		}
	}
}

func (c *client) seek(ctx context.Context, topic string, partition int32, to int64) (int64, error) {
	k, err := c.consumer("unused")
	if err != nil {
		return 0, err
	}
	defer func() { _ = k.Close() }()
	if err := k.Assign([]kafka.TopicPartition{{Topic: &topic, Partition: partition, Offset: kafka.OffsetBeginning}}); err != nil {
		return 0, err
	}
	if _, err := readFrom(ctx, k, 1); err != nil {
		return 0, err
	}
	if err := k.Seek(kafka.TopicPartition{Topic: &topic, Partition: partition, Offset: kafka.Offset(to)}, 5000); err != nil {
		return 0, err
	}
	rs, err := readFrom(ctx, k, 1)
	if err != nil {
		return 0, err
	}
	return rs[0].Offset, nil
}

func (c *client) describe(ctx context.Context, group string) (string, int, error) {
	r, err := c.admin.DescribeConsumerGroups(ctx, []string{group})
	if err != nil {
		return "", 0, err
	}
	d := r.ConsumerGroupDescriptions[0]
	return d.State.String(), len(d.Members), failure(d.Error)
}

func (c *client) reset(ctx context.Context, group, topic string, to map[int32]int64) error {
	r, err := c.admin.AlterConsumerGroupOffsets(ctx, []kafka.ConsumerGroupTopicPartitions{{Group: group, Partitions: partitions(topic, to)}})
	if err != nil {
		return err
	}
	for _, p := range r.ConsumerGroupsTopicPartitions[0].Partitions {
		if p.Error != nil {
			return p.Error
		}
	}
	return nil
}

func (c *client) deleteGroup(ctx context.Context, group string) error {
	r, err := c.admin.DeleteConsumerGroups(ctx, []string{group})
	if err != nil {
		return err
	}
	return failure(r.ConsumerGroupResults[0].Error)
}

func (c *client) deleteTopic(ctx context.Context, topic string) error {
	r, err := c.admin.DeleteTopics(ctx, []string{topic})
	if err != nil {
		return err
	}
	return failure(r[0].Error)
}

func (c *client) topics(context.Context) ([]string, error) {
	m, err := c.admin.GetMetadata(nil, true, 10_000)
	if err != nil {
		return nil, err
	}
	var out []string
	for name := range m.Topics {
		out = append(out, name)
	}
	return out, nil
}
