package interop

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/test/interop/steps"
)

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func franz(t *testing.T, brokers string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(strings.Split(brokers, ",")...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func fromFranz(r *kgo.Record) steps.Record {
	s := steps.Record{Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		s.Headers = append(s.Headers, steps.Header{Key: h.Key, Value: h.Value})
	}
	return s
}

func readFranz(t *testing.T, brokers, topic string, n int, opts ...kgo.Opt) []*kgo.Record {
	t.Helper()
	c := franz(t, brokers, append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))...)
	ctx := deadline(t)
	var out []*kgo.Record
	for len(out) < n {
		f := c.PollFetches(ctx)
		if err := f.Err(); err != nil {
			t.Fatalf("read %d of %d: %v", len(out), n, err)
		}
		out = append(out, f.Records()...)
	}
	return out
}

// TestFranz_EveryCodecAndShapeThroughKill9 produces every sample with every codec, kills the broker, and reads all back.
func TestFranz_EveryCodecAndShapeThroughKill9(t *testing.T) {
	b := startBroker(t)
	ctx := deadline(t)
	for name, codec := range codecs {
		adm := kadm.NewClient(franz(t, b.addr))
		if r, err := adm.CreateTopic(ctx, 1, 1, nil, "t-"+name); err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		c := franz(t, b.addr, kgo.ProducerBatchCompression(codec), kgo.DefaultProduceTopic("t-"+name))
		for i, s := range steps.Samples() {
			r := &kgo.Record{Key: s.Key, Value: s.Value}
			for _, h := range s.Headers {
				r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
			}
			if err := c.ProduceSync(ctx, r).FirstErr(); err != nil {
				t.Fatalf("%s, record %d: %v", name, i, err)
			}
		}
	}
	b.restart()
	for name := range codecs {
		for i, r := range readFranz(t, b.addr, "t-"+name, len(steps.Samples())) {
			compare(t, steps.Samples()[i], fromFranz(r), steps.Lenience{})
			if r.Offset != int64(i) {
				t.Errorf("%s: offset %d, want %d", name, r.Offset, i)
			}
		}
	}
}

// TestFranz_AdminAndOffsets walks create, describe, configs, partitions, offsets by time and delete.
func TestFranz_AdminAndOffsets(t *testing.T) {
	b := startBroker(t)
	ctx := deadline(t)
	c := franz(t, b.addr, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	adm := kadm.NewClient(c)
	if r, err := adm.CreateTopic(ctx, 2, 1, map[string]*string{"retention.ms": kadm.StringPtr("3600000")}, "orders"); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	if r, err := adm.CreateTopic(ctx, 1, 1, nil, "orders"); !errors.Is(r.Err, kerr.TopicAlreadyExists) && !errors.Is(err, kerr.TopicAlreadyExists) {
		t.Errorf("second create: %v %v", err, r.Err)
	}
	if r, err := adm.CreatePartitions(ctx, 1, "orders"); err != nil || r["orders"].Err != nil {
		t.Fatal(err, r)
	}
	base := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	for i := range 4 {
		r := &kgo.Record{Topic: "orders", Partition: 2, Value: []byte("v"), Timestamp: base.Add(time.Duration(2*(i+1)) * time.Millisecond)}
		if err := c.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []struct{ after, want int64 }{{2, 0}, {3, 1}, {5, 2}, {7, 3}, {9, 4}} { // kadm turns "none" into the end
		l, err := adm.ListOffsetsAfterMilli(ctx, base.UnixMilli()+q.after, "orders")
		if err != nil {
			t.Fatal(err)
		}
		if o, _ := l.Lookup("orders", 2); o.Err != nil || o.Offset != q.want {
			t.Errorf("offset at +%d ms: %d %v, want %d", q.after, o.Offset, o.Err, q.want)
		}
	}
	configs, err := adm.DescribeTopicConfigs(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	rc, err := configs.On("orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, k := range rc.Configs {
		if k.Key == "retention.ms" && k.MaybeValue() == "3600000" {
			found = true
		}
	}
	if !found {
		t.Error("retention.ms=3600000 is not described")
	}
	if r, err := adm.DeleteTopic(ctx, "orders"); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	list, err := kadm.NewClient(franz(t, b.addr)).ListTopics(ctx, "orders") // a new client: kadm answers from its cache otherwise
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(list["orders"].Err, kerr.UnknownTopicOrPartition) {
		t.Errorf("a deleted topic is described: %v", list["orders"].Err)
	}
}
