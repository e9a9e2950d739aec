package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// benchFlags are the flags that the kinds of load share.
type benchFlags struct {
	topic       string
	partitions  int32
	replicas    int16
	configs     []string
	keep        bool
	records     int64
	size        int
	acks        string
	compression string
	linger      time.Duration
	fanout      int
	rate        int
	duration    time.Duration
	warmup      time.Duration
}

const benchLong = `Generate load and measure it. Every report says what the figures depend on: machine, acks, flush policy (as the broker reports it),
compression, partitions, record size, and fan-out (how many consumers read each record).

Without --topic a topic is made for the run and deleted afterwards. With --http URL (or STRANDLINE_HTTP) the broker's own CPU time and
memory are read from its /metrics. The load generator takes CPU time, too: on one machine it is usually the first limit.`

func newBenchCommand(a *app) *cobra.Command {
	return newGroupCommand("bench", "Measure throughput and latency", benchLong,
		newBenchProduceCommand(a), newBenchConsumeCommand(a), newBenchLatencyCommand(a))
}

// Bounds of what one run keeps in memory or asks of a machine (I14).
const (
	benchSizeMin    = 32
	benchSizeMax    = 16 << 20
	benchFanoutMax  = 256
	benchRateMax    = 1_000_000
	benchRecordsMax = 1_000_000_000
)

func (f *benchFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVarP(&f.topic, "topic", "t", "", "use this `TOPIC`, which must exist, instead of one made for the run")
	fl.Int32VarP(&f.partitions, "partitions", "p", 8, "partitions `N` of the topic made for the run")
	fl.Int16VarP(&f.replicas, "replicas", "r", -1, "replicas `N` of the topic made for the run (-1: the broker's default)")
	fl.StringArrayVarP(&f.configs, "config", "c", nil, "config `key=value` of the topic made for the run (repeatable)")
	fl.BoolVar(&f.keep, "keep", false, "keep the topic made for the run")
	fl.IntVar(&f.size, "size", 1024, "bytes of a record's value")
	fl.StringVar(&f.acks, "acks", "all", "`all|1|0`: when a record counts as stored")
	fl.StringVar(&f.compression, "compression", "none", "`none|gzip|snappy|lz4|zstd`: how batches are sent and stored")
}

func (f *benchFlags) check() error {
	switch {
	case f.size < benchSizeMin || f.size > benchSizeMax:
		return usagef("--size %d: want %d to %d bytes", f.size, benchSizeMin, benchSizeMax)
	case f.fanout < 0 || f.fanout > benchFanoutMax:
		return usagef("--fanout %d: want 0 to %d", f.fanout, benchFanoutMax)
	case f.rate < 0 || f.rate > benchRateMax:
		return usagef("--rate %d: want 1 to %d a second", f.rate, benchRateMax)
	case f.records < 0 || f.records > benchRecordsMax:
		return usagef("--records %d: want 1 to %d", f.records, benchRecordsMax)
	case f.topic != "" && len(f.configs) > 0:
		return usagef("-c is for the topic made for the run, and --topic names another")
	}
	return nil
}

// bench is one run.
type bench struct {
	benchFlags
	app     *app
	session *session
	payload *payload
	report  benchReport
	cleanUp func()
}

// begin checks the flags, connects, and makes or finds the topic.
func (a *app) beginBench(ctx context.Context, f benchFlags, kind string) (*bench, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if _, err := f.producerOptions(); err != nil {
		return nil, err
	}
	s, err := a.connect()
	if err != nil {
		return nil, err
	}
	b := &bench{benchFlags: f, app: a, session: s, payload: newPayload(f.size), cleanUp: s.close}
	if err := b.makeTopic(ctx); err != nil {
		b.cleanUp()
		return nil, err
	}
	b.report = benchReport{
		Kind: kind, Machine: readMachine(), Client: "franz-go " + moduleVersion("github.com/twmb/franz-go"),
		Brokers: strings.Join(s.brokers, ","), Topic: b.topic, Acks: f.acks, Compression: f.compression,
		RecordBytes: f.size, Fanout: f.fanout,
	}
	if err := b.readTopic(ctx); err != nil {
		b.cleanUp()
		return nil, err
	}
	return b, nil
}

// producerOptions are the options of a producing client, made from the flags.
func (f benchFlags) producerOptions() ([]kgo.Opt, error) {
	acks, err := parseAcks(f.acks)
	if err != nil {
		return nil, err
	}
	codec, err := parseCompression(f.compression)
	if err != nil {
		return nil, err
	}
	return append(acks, kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(f.linger),
		kgo.RecordPartitioner(kgo.UniformBytesPartitioner(64<<10, true, true, nil)), kgo.MaxBufferedRecords(50_000)), nil
}

// makeTopic makes a topic for the run unless one was named.
func (b *bench) makeTopic(ctx context.Context) error {
	if b.topic != "" {
		return nil
	}
	configs, err := parseConfigs(b.configs)
	if err != nil {
		return err
	}
	var suffix [4]byte
	_, _ = rand.Read(suffix[:]) // never fails
	name := "strandline-bench-" + hex.EncodeToString(suffix[:])
	ctx, cancel := b.session.bounded(ctx)
	defer cancel()
	responses, err := b.session.createTopics(ctx, []string{name}, topicCreateFlags{partitions: b.partitions, replication: b.replicas}, configs)
	if err == nil {
		err = answered(responses[name].Err, responses[name].ErrMessage)
	}
	if err != nil {
		return b.session.explain(err, "cannot create topic %s", name)
	}
	b.topic = name
	if b.keep {
		return nil
	}
	b.cleanUp = func() {
		// Also after an interrupt, when the caller's context is over.
		ctx, cancel := b.session.bounded(context.Background())
		defer cancel()
		if r, err := b.session.admin.DeleteTopic(ctx, name); err != nil || r.Err != nil {
			fmt.Fprintf(b.app.stderr, "strandline: topic %s is left behind; delete it with `strandline topic delete %s`\n", name, name)
		}
		b.session.close()
	}
	return nil
}

// readTopic reads what the figures depend on from the broker.
func (b *bench) readTopic(ctx context.Context) error {
	ctx, cancel := b.session.bounded(ctx)
	defer cancel()
	details, err := b.session.admin.ListTopicsWithInternal(ctx, b.topic)
	if err != nil {
		return b.session.explain(err, "cannot read topic %s", b.topic)
	}
	t, ok := details[b.topic]
	if !ok || t.Err != nil {
		return b.session.explain(orUnknown(t.Err), "cannot use topic %s", b.topic)
	}
	b.report.Partitions, b.report.Replicas = len(t.Partitions), listTopic(t).ReplicationFactor
	configs, err := b.session.topicConfigs(ctx, b.topic)
	if err != nil {
		return b.session.explain(err, "cannot read the configs of %s", b.topic)
	}
	b.report.Flush = configValue(configs, "strandline.flush", "unknown (the broker does not say)")
	b.report.MinISR = configValue(configs, "min.insync.replicas", "unknown")
	return nil
}

func orUnknown(err error) error {
	if err == nil {
		return kerr.UnknownTopicOrPartition
	}
	return err
}

func configValue(configs []kadm.Config, key, fallback string) string {
	if c, ok := findConfig(configs, key); ok && c.Value != nil {
		return *c.Value
	}
	return fallback
}

// client makes a further client with the session's settings.
func (b *bench) client(more ...kgo.Opt) (*kgo.Client, error) {
	s, err := openSession(b.session.settings, more...)
	if err != nil {
		return nil, err
	}
	return s.client, nil
}

// readEnds asks for the end of every partition.
func (b *bench) readEnds(ctx context.Context) (map[int32]int64, error) {
	ctx, cancel := b.session.bounded(ctx)
	defer cancel()
	listed, err := b.session.admin.ListEndOffsets(ctx, b.topic)
	if err != nil {
		return nil, b.session.explain(err, "cannot read the offsets of %s", b.topic)
	}
	return offsetsOf(listed, b.topic)
}

func offsetsOf(listed kadm.ListedOffsets, topic string) (map[int32]int64, error) {
	offsets := make(map[int32]int64, len(listed[topic]))
	for p, o := range listed[topic] {
		if o.Err != nil {
			return nil, failf(o.Err, "cannot read the offsets of partition %d of %s", p, topic)
		}
		offsets[p] = o.Offset
	}
	return offsets, nil
}

// payload makes values that compress about as far as JSON events do: half of each value is random, half is text.
type payload struct{ random, text []byte }

func newPayload(size int) *payload {
	p := &payload{random: make([]byte, 1<<20), text: slices.Repeat([]byte(`{"order":42,"status":"paid"}`), size/28+1)[:size]}
	_, _ = rand.Read(p.random) // never fails
	return p
}

// fill returns the n-th value.
func (p *payload) fill(n int64) []byte {
	v := slices.Clone(p.text)
	at := int(n*37) % (len(p.random) / 2)
	copy(v[:len(v)/2], p.random[at:])
	return v
}
