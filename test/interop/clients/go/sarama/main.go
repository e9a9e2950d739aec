// Command sarama walks IBM/sarama through the steps.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"

	"strandline.dev/test/interop/steps"
)

type client struct {
	addr      []string
	admin     sarama.ClusterAdmin
	producers map[string]sarama.SyncProducer
}

func main() {
	sarama.Logger = log.New(os.Stderr, "sarama ", log.Ltime)
	c := &client{addr: steps.Brokers(), producers: map[string]sarama.SyncProducer{}}
	var err error
	if c.admin, err = sarama.NewClusterAdmin(c.addr, config()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	steps.Walk(&steps.Client{
		Version: steps.ModuleVersion("github.com/IBM/sarama"),
		Create:  c.create, Produce: c.produce, Read: c.read, Join: c.join, Committed: c.committed, OffsetAt: c.offsetAt, Seek: c.seek,
		Describe: c.describe, Reset: c.reset, DeleteGroup: c.deleteGroup, DeleteTopic: c.deleteTopic, Topics: c.topics,
	})
}

// config leaves sarama at its defaults where the walk allows it.
func config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.V2_8_0_0
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	if steps.Secure() {
		c.Net.TLS.Enable, c.Net.TLS.Config = true, steps.TLS()
		c.Net.SASL.Enable, c.Net.SASL.Mechanism = true, sarama.SASLTypeSCRAMSHA512
		c.Net.SASL.User, c.Net.SASL.Password = steps.User(), steps.Password()
		c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &login{} }
	}
	return c
}

// login is SCRAM, which sarama leaves to another package.
type login struct{ *scram.ClientConversation }

func (l *login) Begin(user, password, authzID string) error {
	c, err := scram.SHA512.NewClient(user, password, authzID)
	if err != nil {
		return err
	}
	l.ClientConversation = c.NewConversation()
	return nil
}

func (c *client) create(_ context.Context, topic string, partitions int) error {
	return c.admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: steps.Replicas()}, false)
}

func (c *client) producer(codec string) (sarama.SyncProducer, error) {
	if p := c.producers[codec]; p != nil {
		return p, nil
	}
	cfg := config()
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Return.Successes = true
	cfg.Producer.Idempotent = true
	cfg.Producer.Retry.Max = 50
	cfg.Net.MaxOpenRequests = 1
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	cfg.Producer.Compression = map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}[codec]
	p, err := sarama.NewSyncProducer(c.addr, cfg)
	c.producers[codec] = p
	return p, err
}

// encoder hands sarama the bytes; a null field needs a nil interface.
func encoder(b []byte) sarama.Encoder {
	if b == nil {
		return nil
	}
	return sarama.ByteEncoder(b)
}

func (c *client) produce(_ context.Context, topic, codec string, rs []steps.Record) error {
	p, err := c.producer(codec)
	if err != nil {
		return err
	}
	var out []*sarama.ProducerMessage
	for _, r := range rs {
		m := &sarama.ProducerMessage{Topic: topic, Partition: r.Partition, Key: encoder(r.Key), Value: encoder(r.Value), Timestamp: r.At}
		for _, h := range r.Headers {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
		}
		out = append(out, m)
	}
	return p.SendMessages(out)
}

func record(m *sarama.ConsumerMessage) steps.Record {
	r := steps.Record{Partition: m.Partition, Offset: m.Offset, Key: m.Key, Value: m.Value, At: m.Timestamp}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, steps.Header{Key: string(h.Key), Value: h.Value})
	}
	return r
}

func (c *client) read(ctx context.Context, topic string, partition int32, from int64, n int) ([]steps.Record, error) {
	k, err := sarama.NewConsumer(c.addr, config())
	if err != nil {
		return nil, err
	}
	defer func() { _ = k.Close() }()
	pc, err := k.ConsumePartition(topic, partition, from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = pc.Close() }()
	var out []steps.Record
	for len(out) < n {
		select {
		case m := <-pc.Messages():
			out = append(out, record(m))
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
	return out, nil
}

func (c *client) committed(_ context.Context, group, topic string) (map[int32]int64, error) {
	r, err := c.admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0, 1}})
	if err != nil {
		return nil, err
	}
	if r.Err != sarama.ErrNoError {
		return nil, r.Err
	}
	out := map[int32]int64{}
	for p := range int32(2) {
		b := r.GetBlock(topic, p)
		if b == nil || b.Err != sarama.ErrNoError {
			return nil, fmt.Errorf("partition %d: %+v", p, b)
		}
		out[p] = b.Offset
	}
	return out, nil
}

func (c *client) offsetAt(_ context.Context, topic string, partition int32, at time.Time) (int64, error) {
	r, err := c.admin.ListOffsets(map[string]map[int32]int64{topic: {partition: at.UnixMilli()}}, nil)
	if err != nil {
		return 0, err
	}
	o := r[topic][partition]
	if o.Err != nil && !errors.Is(o.Err, sarama.ErrNoError) {
		return 0, o.Err
	}
	return o.Offset, nil
}

// seek closes the partition consumer and opens another: that is how sarama moves.
func (c *client) seek(ctx context.Context, topic string, partition int32, to int64) (int64, error) {
	if _, err := c.read(ctx, topic, partition, 0, 1); err != nil {
		return 0, err
	}
	rs, err := c.read(ctx, topic, partition, to, 1)
	if err != nil {
		return 0, err
	}
	return rs[0].Offset, nil
}

func (c *client) describe(_ context.Context, group string) (string, int, error) {
	r, err := c.admin.DescribeConsumerGroups([]string{group})
	if errors.Is(err, io.EOF) {
		// The connection to the coordinator is of before its kill -9. Sarama finds that out when it uses it, and does not try again.
		r, err = c.admin.DescribeConsumerGroups([]string{group})
	}
	if err != nil {
		return "", 0, err
	}
	if r[0].Err != sarama.ErrNoError {
		return "", 0, r[0].Err
	}
	return r[0].State, len(r[0].Members), nil
}

func (c *client) reset(_ context.Context, group, topic string, to map[int32]int64) error {
	offsets := map[string]map[int32]sarama.OffsetAndMetadata{topic: {}}
	for p, o := range to {
		offsets[topic][p] = sarama.OffsetAndMetadata{Offset: o, LeaderEpoch: -1}
	}
	r, err := c.admin.AlterConsumerGroupOffsets(group, offsets, nil)
	if err != nil {
		return err
	}
	for p, code := range r.Errors[topic] {
		if code != sarama.ErrNoError {
			err = errors.Join(err, fmt.Errorf("partition %d: %w", p, code))
		}
	}
	return err
}

func (c *client) deleteGroup(_ context.Context, group string) error {
	return c.admin.DeleteConsumerGroup(group)
}

func (c *client) deleteTopic(_ context.Context, topic string) error {
	return c.admin.DeleteTopic(topic)
}

func (c *client) topics(context.Context) ([]string, error) {
	l, err := c.admin.ListTopics()
	if err != nil {
		return nil, err
	}
	var out []string
	for name := range l {
		out = append(out, name)
	}
	return out, nil
}
