package interop

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// differentialSteps is the length of the random request sequence; each step is a round trip to both brokers.
const differentialSteps = 400

// subject is one of the two brokers under comparison; topic ids and producer ids differ between them by nature.
type subject struct {
	c  *kgo.Client
	id [16]byte
	// pid is the broker's own number for the sequence's producer.
	pid   int64
	epoch int16
}

var interopSeed = flag.Uint64("interop.seed", 0, "seed of TestKfake_SameAnswers and TestChurn; 0 takes a random one")

// TestKfake_SameAnswers sends one random but seeded sequence of produces (good, repeated, out of order, malformed), fetches,
// offset queries and epoch queries to Strandline and to kfake, and compares every answer.
func TestKfake_SameAnswers(t *testing.T) {
	ours := startBroker(t)
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SleepOutOfOrder())
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	seed := *interopSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	a := newSubject(t, ours.addr)
	b := newSubject(t, fake.ListenAddrs()[0])
	rng := rand.New(rand.NewPCG(seed, 2))
	g := &generator{rng: rng}
	for i := range differentialSteps {
		step := g.next()
		x, y := step.run(deadline(t), a), step.run(deadline(t), b)
		if x != y {
			t.Fatalf("step %d %s:\nstrandline %s\nkfake      %s", i, step.name, x, y)
		}
	}
}

func newSubject(t *testing.T, addr string) *subject {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RequestRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ctx := deadline(t)
	create := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "d", 1, 1
	create.Topics = append(create.Topics, topic)
	cr, err := create.RequestWith(ctx, c)
	if err != nil || cr.Topics[0].ErrorCode != 0 {
		t.Fatal(err, cr)
	}
	init, err := kmsg.NewPtrInitProducerIDRequest().RequestWith(ctx, c)
	if err != nil || init.ErrorCode != 0 {
		t.Fatal(err, init)
	}
	return &subject{c: c, id: cr.Topics[0].TopicID, pid: init.ProducerID, epoch: init.ProducerEpoch}
}

// step is one request to be sent to both brokers; run returns the parts of the answer that must agree.
type step struct {
	name string
	run  func(context.Context, *subject) string
}

// generator makes the sequence; it keeps the idempotent producer's next sequence number and the log end.
type generator struct {
	rng  *rand.Rand
	seq  int32
	end  int64
	last []batchSpec
}

// batchSpec describes a batch independent of the producer id a broker handed out.
type batchSpec struct {
	idempotent bool
	seq, count int32
	firstMs    int64
	spoil      string
}

func (g *generator) next() step {
	switch n := g.rng.IntN(10); {
	case n < 4:
		return produceStep(g.batch())
	case n < 7:
		return fetchStep(g.rng.Int64N(g.end+3)-1, int32(g.rng.IntN(400)))
	case n < 9:
		times := []int64{-1, -2, -3, 0, g.rng.Int64N(g.end + 5), g.end + 100}
		return listStep(times[g.rng.IntN(len(times))])
	default:
		return epochStep(int32(g.rng.IntN(2)))
	}
}

func (g *generator) batch() batchSpec {
	s := batchSpec{idempotent: g.rng.IntN(3) > 0, count: 1 + int32(g.rng.IntN(4)), firstMs: g.end + 1}
	spoils := []string{"crc", "count", "magic", "delta"}
	switch n := g.rng.IntN(10); {
	case n == 0:
		s.spoil = spoils[g.rng.IntN(len(spoils))]
		s.idempotent = false
		return s
	case n == 1 && s.idempotent && g.seq > 0: // a producer without records may begin anywhere in Kafka; kfake wants 0
		s.seq = g.seq + 7 // out of order
		return s
	case n == 2 && len(g.last) > 0:
		return g.last[g.rng.IntN(len(g.last))] // a repeat of one of the last five
	}
	if s.idempotent {
		s.seq = g.seq
		g.seq += s.count
		g.last = append(g.last, s)
		if len(g.last) > 5 {
			g.last = g.last[1:]
		}
	}
	g.end += int64(s.count)
	return s
}

func produceStep(s batchSpec) step {
	return step{fmt.Sprintf("produce %+v", s), func(ctx context.Context, b *subject) string {
		req := kmsg.NewPtrProduceRequest()
		req.Acks, req.TimeoutMillis = -1, 5000
		topic := kmsg.NewProduceRequestTopic()
		topic.Topic, topic.TopicID = "d", b.id
		p := kmsg.NewProduceRequestTopicPartition()
		p.Records = encodeBatch(s, b)
		topic.Partitions = append(topic.Partitions, p)
		req.Topics = append(req.Topics, topic)
		r, err := req.RequestWith(ctx, b.c)
		if err != nil {
			return err.Error()
		}
		x := r.Topics[0].Partitions[0]
		if x.ErrorCode != 0 {
			return errorClass(x.ErrorCode)
		}
		return fmt.Sprintf("base %d", x.BaseOffset)
	}}
}

// errorClass folds codes that Kafka's releases themselves have used for the same fault.
func errorClass(code int16) string {
	switch code {
	case kerr.CorruptMessage.Code, kerr.InvalidRecord.Code, kerr.UnsupportedForMessageFormat.Code:
		return "refused as malformed"
	}
	return codeName(code)
}

// codeName is the protocol's name of a code, or "no error".
func codeName(code int16) string {
	if e := kerr.TypedErrorForCode(code); e != nil {
		return e.Message
	}
	return "no error"
}

func fetchStep(offset int64, maxBytes int32) step {
	return step{fmt.Sprintf("fetch at %d, %d bytes", offset, maxBytes), func(ctx context.Context, b *subject) string {
		req := kmsg.NewPtrFetchRequest()
		req.MaxBytes, req.MinBytes, req.MaxWaitMillis = 1<<20, 0, 0
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic, topic.TopicID = "d", b.id
		p := kmsg.NewFetchRequestTopicPartition()
		p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = offset, maxBytes, -1
		topic.Partitions = append(topic.Partitions, p)
		req.Topics = append(req.Topics, topic)
		r, err := req.RequestWith(ctx, b.c)
		if err != nil {
			return err.Error()
		}
		x := r.Topics[0].Partitions[0]
		if x.ErrorCode != 0 {
			return errorClass(x.ErrorCode)
		}
		first := int64(-1)
		if len(x.RecordBatches) >= 8 {
			first = int64(binary.BigEndian.Uint64(x.RecordBatches))
		}
		return fmt.Sprintf("hw %d first batch %d", x.HighWatermark, first)
	}}
}

func listStep(at int64) step {
	return step{fmt.Sprintf("list offsets at %d", at), func(ctx context.Context, b *subject) string {
		req := kmsg.NewPtrListOffsetsRequest()
		topic := kmsg.NewListOffsetsRequestTopic()
		topic.Topic = "d"
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Timestamp, p.CurrentLeaderEpoch = at, -1
		topic.Partitions = append(topic.Partitions, p)
		req.Topics = append(req.Topics, topic)
		r, err := req.RequestWith(ctx, b.c)
		if err != nil {
			return err.Error()
		}
		x := r.Topics[0].Partitions[0]
		return fmt.Sprintf("%s offset %d time %d", codeName(x.ErrorCode), x.Offset, x.Timestamp)
	}}
}

func epochStep(ahead int32) step {
	return step{fmt.Sprintf("end of the current epoch +%d", ahead), func(ctx context.Context, b *subject) string {
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		topic := kmsg.NewOffsetForLeaderEpochRequestTopic()
		topic.Topic = "d"
		p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		p.CurrentLeaderEpoch, p.LeaderEpoch = -1, 1000+ahead // above any epoch either broker has used
		topic.Partitions = append(topic.Partitions, p)
		req.Topics = append(req.Topics, topic)
		r, err := req.RequestWith(ctx, b.c)
		if err != nil {
			return err.Error()
		}
		x := r.Topics[0].Partitions[0]
		return fmt.Sprintf("code %d end %d", x.ErrorCode, x.EndOffset)
	}}
}

// encodeBatch builds a record batch v2 by hand, and spoils it as asked.
func encodeBatch(s batchSpec, b *subject) []byte {
	records := []byte{}
	for i := range s.count {
		rec := kmsg.Record{TimestampDelta64: int64(i), OffsetDelta: i, Key: []byte("k"), Value: []byte("value")}
		body := rec.AppendTo(nil)[1:] // without the length varint, which is 0 here and one byte long
		rec.Length = int32(len(body))
		records = rec.AppendTo(records)
	}
	batch := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, LastOffsetDelta: s.count - 1, FirstTimestamp: s.firstMs, MaxTimestamp: s.firstMs + int64(s.count) - 1,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: s.count, Records: records,
	}
	if s.idempotent {
		batch.ProducerID, batch.ProducerEpoch, batch.FirstSequence = b.pid, b.epoch, s.seq
	}
	switch s.spoil {
	case "count":
		batch.NumRecords++
	case "magic":
		batch.Magic = 1
	case "delta":
		batch.LastOffsetDelta++
	}
	raw := batch.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	crc := crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli))
	if s.spoil == "crc" {
		crc++
	}
	binary.BigEndian.PutUint32(raw[17:], crc)
	return raw
}
