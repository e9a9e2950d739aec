// Command kafkago walks segmentio/kafka-go through the steps.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/scram"

	"strandline.dev/test/interop/steps"
)

type client struct {
	addr    []string
	admin   *kafka.Client
	writers map[string]*kafka.Writer
	// dialer and transport are those of a secured broker; nil for an open one.
	dialer    *kafka.Dialer
	transport *kafka.Transport
}

func main() {
	c := &client{addr: steps.Brokers(), writers: map[string]*kafka.Writer{}}
	if steps.Secure() {
		login, err := scram.Mechanism(scram.SHA512, steps.User(), steps.Password())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		c.dialer = &kafka.Dialer{Timeout: 10 * time.Second, DualStack: true, TLS: steps.TLS(), SASLMechanism: login}
		c.transport = &kafka.Transport{TLS: steps.TLS(), SASL: login}
	}
	c.admin = &kafka.Client{Addr: kafka.TCP(c.addr...), Timeout: 20 * time.Second, Transport: c.roads()}
	const binding = "Reader hands out null and empty alike"
	steps.Walk(&steps.Client{
		Lacks:   map[string]string{"keys": binding, "values": binding, "null-headers": binding},
		Version: steps.ModuleVersion("github.com/segmentio/kafka-go"),
		Create:  c.create, Produce: c.produce, Read: c.read, Join: c.join, Committed: c.committed, OffsetAt: c.offsetAt, Seek: c.seek,
		Describe: c.describe, Reset: c.reset, DeleteGroup: c.deleteGroup, DeleteTopic: c.deleteTopic, Topics: c.topics,
	})
}

// roads is nil, which is the library's default, for an open broker.
func (c *client) roads() kafka.RoundTripper {
	if c.transport == nil {
		return nil
	}
	return c.transport
}

func (c *client) create(ctx context.Context, topic string, partitions int) error {
	r, err := c.admin.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: partitions, ReplicationFactor: int(steps.Replicas())}}})
	if err != nil {
		return err
	}
	return r.Errors[topic]
}

func (c *client) produce(ctx context.Context, topic, codec string, rs []steps.Record) error {
	w := c.writers[codec]
	if w == nil {
		w = &kafka.Writer{
			Addr: kafka.TCP(c.addr...), Transport: c.roads(), RequiredAcks: kafka.RequireAll, BatchTimeout: 10 * time.Millisecond, MaxAttempts: 50,
			Balancer: kafka.BalancerFunc(func(m kafka.Message, _ ...int) int { return int(m.WriterData.(int32)) }),
			Compression: map[string]kafka.Compression{
				"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
			}[codec],
		}
		c.writers[codec] = w
	}
	var out []kafka.Message
	for _, r := range rs {
		m := kafka.Message{Topic: topic, WriterData: r.Partition, Key: r.Key, Value: r.Value, Time: r.At}
		for _, h := range r.Headers {
			m.Headers = append(m.Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		out = append(out, m)
	}
	return w.WriteMessages(ctx, out...)
}

func record(m kafka.Message) steps.Record {
	r := steps.Record{Partition: int32(m.Partition), Offset: m.Offset, Key: m.Key, Value: m.Value, At: m.Time}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, steps.Header{Key: h.Key, Value: h.Value})
	}
	return r
}

func (c *client) reader(topic string, partition int32) *kafka.Reader {
	return kafka.NewReader(kafka.ReaderConfig{Brokers: c.addr, Dialer: c.dialer, Topic: topic, Partition: int(partition), MaxWait: 200 * time.Millisecond})
}

func (c *client) read(ctx context.Context, topic string, partition int32, from int64, n int) ([]steps.Record, error) {
	r := c.reader(topic, partition)
	defer func() { _ = r.Close() }()
	if err := r.SetOffset(from); err != nil {
		return nil, err
	}
	var out []steps.Record
	for len(out) < n {
		m, err := r.FetchMessage(ctx)
		if err != nil {
			return out, err
		}
		out = append(out, record(m))
	}
	return out, nil
}

func (c *client) join(_ context.Context, group, topic string) (*steps.Member, error) {
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: c.addr, Dialer: c.dialer, GroupID: group, Topic: topic, StartOffset: kafka.FirstOffset, MaxWait: 200 * time.Millisecond,
		ErrorLogger: kafka.LoggerFunc(func(f string, a ...any) { fmt.Fprintf(os.Stderr, f+"\n", a...) }),
	})
	return &steps.Member{
		Next: func(ctx context.Context) ([]steps.Record, error) {
			m, err := r.FetchMessage(ctx)
			if err != nil {
				return nil, err
			}
			return []steps.Record{record(m)}, nil
		},
		Commit: func(ctx context.Context, offsets map[int32]int64) error {
			var done []kafka.Message
			for p, o := range offsets {
				done = append(done, kafka.Message{Topic: topic, Partition: int(p), Offset: o - 1})
			}
			return r.CommitMessages(ctx, done...)
		},
		Close: r.Close,
	}, nil
}

func (c *client) committed(ctx context.Context, group, topic string) (map[int32]int64, error) {
	req := &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: {0, 1}}}
	r, err := again(func() (*kafka.OffsetFetchResponse, error) { return c.admin.OffsetFetch(ctx, req) })
	if err != nil {
		return nil, err
	}
	out, failed := map[int32]int64{}, r.Error
	for _, p := range r.Topics[topic] {
		out[int32(p.Partition)] = p.CommittedOffset
		failed = errors.Join(failed, p.Error)
	}
	return out, failed
}

func (c *client) offsetAt(ctx context.Context, topic string, partition int32, at time.Time) (int64, error) {
	r, err := c.admin.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {kafka.TimeOffsetOf(int(partition), at)}}})
	if err != nil {
		return 0, err
	}
	p := r.Topics[topic][0]
	for o := range p.Offsets {
		return o, p.Error
	}
	return 0, fmt.Errorf("no offset: %w", p.Error)
}

func (c *client) seek(ctx context.Context, topic string, partition int32, to int64) (int64, error) {
	r := c.reader(topic, partition)
	defer func() { _ = r.Close() }()
	if _, err := r.FetchMessage(ctx); err != nil {
		return 0, err
	}
	if err := r.SetOffset(to); err != nil {
		return 0, err
	}
	m, err := r.FetchMessage(ctx)
	return m.Offset, err
}

// again repeats a call whose connection the restart broke: kafka-go's Client keeps dead ones in its pool and does not retry.
func again[T any](call func() (T, error)) (T, error) {
	r, err := call()
	for range 3 {
		if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			break
		}
		r, err = call()
	}
	return r, err
}

func (c *client) describe(ctx context.Context, group string) (string, int, error) {
	r, err := again(func() (*kafka.DescribeGroupsResponse, error) {
		return c.admin.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	})
	if err != nil {
		return "", 0, err
	}
	return r.Groups[0].GroupState, len(r.Groups[0].Members), r.Groups[0].Error
}

func (c *client) reset(ctx context.Context, group, topic string, to map[int32]int64) error {
	req := &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{}}
	for p, o := range to {
		req.Topics[topic] = append(req.Topics[topic], kafka.OffsetCommit{Partition: int(p), Offset: o})
	}
	r, err := again(func() (*kafka.OffsetCommitResponse, error) { return c.admin.OffsetCommit(ctx, req) })
	if err != nil {
		return err
	}
	for _, p := range r.Topics[topic] {
		err = errors.Join(err, p.Error)
	}
	return err
}

func (c *client) deleteGroup(ctx context.Context, group string) error {
	r, err := c.admin.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return err
	}
	return r.Errors[group]
}

func (c *client) deleteTopic(ctx context.Context, topic string) error {
	r, err := c.admin.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	return r.Errors[topic]
}

func (c *client) topics(ctx context.Context) ([]string, error) {
	fresh := &kafka.Transport{}
	if c.transport != nil {
		fresh = &kafka.Transport{TLS: c.transport.TLS, SASL: c.transport.SASL}
	}
	r, err := (&kafka.Client{Addr: c.admin.Addr, Transport: fresh}).Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, t := range r.Topics {
		out = append(out, t.Name)
	}
	return out, nil
}
