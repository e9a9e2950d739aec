// Command franz walks franz-go through the steps.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"strandline.dev/test/interop/steps"
)

type client struct {
	admin *kadm.Client
	// producers: one per codec; kept, so that they live through the restart.
	producers map[string]*kgo.Client
}

func main() {
	c := &client{producers: map[string]*kgo.Client{}}
	k, err := c.open()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	c.admin = kadm.NewClient(k)
	steps.Walk(&steps.Client{
		Version: steps.ModuleVersion("github.com/twmb/franz-go"),
		Create:  c.create, Produce: c.produce, Read: c.read, Join: c.join, Committed: c.committed, OffsetAt: c.offsetAt, Seek: c.seek,
		Describe: c.describe, Reset: c.reset, DeleteGroup: c.deleteGroup, DeleteTopic: c.deleteTopic, Topics: c.topics,
	})
}

func (c *client) open(opts ...kgo.Opt) (*kgo.Client, error) {
	all := append([]kgo.Opt{kgo.SeedBrokers(steps.Brokers()...), kgo.MetadataMinAge(100 * time.Millisecond)}, opts...)
	if steps.Secure() {
		login := scram.Auth{User: steps.User(), Pass: steps.Password()}
		all = append(all, kgo.DialTLSConfig(steps.TLS()), kgo.SASL(login.AsSha512Mechanism()))
	}
	return kgo.NewClient(all...)
}

func (c *client) create(ctx context.Context, topic string, partitions int) error {
	r, err := c.admin.CreateTopic(ctx, int32(partitions), steps.Replicas(), nil, topic)
	if err != nil {
		return err
	}
	return r.Err
}

func (c *client) produce(ctx context.Context, topic, codec string, rs []steps.Record) error {
	p := c.producers[codec]
	if p == nil {
		var err error
		compressions := map[string]kgo.CompressionCodec{
			"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
			"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
		}
		if p, err = c.open(kgo.ProducerBatchCompression(compressions[codec]), kgo.RecordPartitioner(kgo.ManualPartitioner())); err != nil {
			return err
		}
		c.producers[codec] = p
	}
	var out []*kgo.Record
	for _, r := range rs {
		k := &kgo.Record{Topic: topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: r.At}
		for _, h := range r.Headers {
			k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		out = append(out, k)
	}
	return p.ProduceSync(ctx, out...).FirstErr()
}

func record(k *kgo.Record) steps.Record {
	r := steps.Record{Partition: k.Partition, Offset: k.Offset, Key: k.Key, Value: k.Value, At: k.Timestamp}
	for _, h := range k.Headers {
		r.Headers = append(r.Headers, steps.Header{Key: h.Key, Value: h.Value})
	}
	return r
}

func poll(ctx context.Context, k *kgo.Client) ([]steps.Record, error) {
	f := k.PollFetches(ctx)
	if err := f.Err(); err != nil {
		return nil, err
	}
	var out []steps.Record
	f.EachRecord(func(r *kgo.Record) { out = append(out, record(r)) })
	return out, nil
}

func (c *client) read(ctx context.Context, topic string, partition int32, from int64, n int) ([]steps.Record, error) {
	k, err := c.open(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().At(from)}}))
	if err != nil {
		return nil, err
	}
	defer k.Close()
	var out []steps.Record
	for len(out) < n {
		rs, err := poll(ctx, k)
		if err != nil {
			return out, err
		}
		out = append(out, rs...)
	}
	return out, nil
}

func (c *client) join(_ context.Context, group, topic string) (*steps.Member, error) {
	opts := []kgo.Opt{kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
	if isConsumerProtocol() {
		opts = append(opts, kgo.ServerSideBalancer())
	}
	k, err := c.open(opts...)
	if err != nil {
		return nil, err
	}
	return &steps.Member{
		Next: func(ctx context.Context) ([]steps.Record, error) { return poll(ctx, k) },
		Commit: func(ctx context.Context, offsets map[int32]int64) error {
			commit := map[string]map[int32]kgo.EpochOffset{topic: {}}
			for p, o := range offsets {
				commit[topic][p] = kgo.EpochOffset{Epoch: -1, Offset: o}
			}
			var failed error
			k.CommitOffsetsSync(ctx, commit, nil)
			for p, o := range offsets {
				if got := k.CommittedOffsets()[topic][p]; got.Offset != o {
					failed = fmt.Errorf("partition %d: committed %d, want %d", p, got.Offset, o)
				}
			}
			return failed
		},
		Close: func() error { k.Close(); return nil },
	}, nil
}

func (c *client) committed(ctx context.Context, group, topic string) (map[int32]int64, error) {
	r, err := c.admin.FetchOffsets(ctx, group)
	if err != nil {
		return nil, err
	}
	out := map[int32]int64{}
	r.Each(func(o kadm.OffsetResponse) {
		if o.Topic == topic && o.Err == nil {
			out[o.Partition] = o.At
		}
	})
	return out, nil
}

func (c *client) offsetAt(ctx context.Context, topic string, partition int32, at time.Time) (int64, error) {
	l, err := c.admin.ListOffsetsAfterMilli(ctx, at.UnixMilli(), topic)
	if err != nil {
		return 0, err
	}
	o, _ := l.Lookup(topic, partition)
	return o.Offset, o.Err
}

func (c *client) seek(ctx context.Context, topic string, partition int32, to int64) (int64, error) {
	k, err := c.open(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return 0, err
	}
	defer k.Close()
	if _, err := poll(ctx, k); err != nil {
		return 0, err
	}
	k.SetOffsets(map[string]map[int32]kgo.EpochOffset{topic: {partition: {Epoch: -1, Offset: to}}})
	rs, err := poll(ctx, k)
	if err != nil || len(rs) == 0 {
		return 0, fmt.Errorf("%d records after the seek: %w", len(rs), err)
	}
	return rs[0].Offset, nil
}

// isConsumerProtocol says whether members are to speak the consumer protocol (KIP-848).
func isConsumerProtocol() bool { return os.Getenv("GROUP_PROTOCOL") == "consumer" }

func (c *client) describe(ctx context.Context, group string) (string, int, error) {
	if isConsumerProtocol() {
		r, err := c.admin.DescribeConsumerGroups(ctx, group)
		if err != nil {
			return "", 0, err
		}
		return r[group].State, len(r[group].Members), r[group].Err
	}
	r, err := c.admin.DescribeGroups(ctx, group)
	if err != nil {
		return "", 0, err
	}
	return r[group].State, len(r[group].Members), r[group].Err
}

func (c *client) reset(ctx context.Context, group, topic string, to map[int32]int64) error {
	offsets := kadm.Offsets{}
	for p, o := range to {
		offsets.AddOffset(topic, p, o, -1)
	}
	return c.admin.CommitAllOffsets(ctx, group, offsets)
}

func (c *client) deleteGroup(ctx context.Context, group string) error {
	r, err := c.admin.DeleteGroup(ctx, group)
	if err != nil {
		return err
	}
	return r.Err
}

func (c *client) deleteTopic(ctx context.Context, topic string) error {
	r, err := c.admin.DeleteTopic(ctx, topic)
	if err != nil {
		return err
	}
	return r.Err
}

// topics asks a new client, since an old one answers from its cache.
func (c *client) topics(ctx context.Context) ([]string, error) {
	k, err := c.open()
	if err != nil {
		return nil, err
	}
	defer k.Close()
	l, err := kadm.NewClient(k).ListTopics(ctx)
	if err != nil {
		return nil, err
	}
	return l.Names(), nil
}
