package server

import (
	"encoding/binary"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/wire"
)

// headerOf builds the start of a request frame without its size: key, version, correlation id 0 and an empty client id.
func headerOf(key, version int16) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	return append(b, 0, 0, 0, 0, 0, 0)
}

func framed(body []byte) []byte { return append(sizeFrame(int32(len(body))), body...) }

// Frames that end the connection: closed without an answer, one log line naming the reason, nothing allocated, other clients unaffected.
func TestK1toK18_FramesThatClose(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	good := b.dial()
	good.create("safe", 1)
	for _, one := range []struct {
		name   string
		bytes  []byte
		reason string
	}{
		{"K1 size 0", sizeFrame(0), "frame_size"},
		{"K2 size -1", sizeFrame(-1), "frame_size"},
		{"K3 size max", sizeFrame(math.MaxInt32), "frame_size"},
		{"K6 HTTP", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "http"},
		{"K7 TLS", []byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01}, "tls"},
		{"K11 client id longer than the frame", framed([]byte{0, 3, 0, 9, 0, 0, 0, 0, 0x7f, 0xff}), "malformed"},
		{"K11 client id length -2", framed([]byte{0, 3, 0, 9, 0, 0, 0, 0, 0xff, 0xfe, 0}), "malformed"},
		{"K13 body too short", framed(append(headerOf(wire.KeyMetadata, 4), 0, 0)), "malformed"},
		{"K14 trailing bytes", framed(append(headerOf(wire.KeyMetadata, 0), 0, 0, 0, 0, 'x')), "malformed"},
		{"K15 array length max", framed(append(headerOf(wire.KeyMetadata, 1), 0x7f, 0xff, 0xff, 0xff)), "malformed"},
		{"K18 overlong varint", framed(append(headerOf(wire.KeyMetadata, 9), 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0)), "malformed"},
		{"header cut short", framed([]byte{0, 3}), "malformed"},
	} {
		c := b.dial()
		c.write(one.bytes)
		c.closed()
		eventually(t, one.name+": the log says "+one.reason, func() bool { return strings.Contains(b.log.String(), "reason="+one.reason) })
	}
	if got := good.publish(newProduce("safe", 0, b.newBatch("still here"))); got.ErrorCode != 0 {
		t.Errorf("another client's publish: %v", kafka.ErrorCode(got.ErrorCode))
	}
	if log := b.log.String(); !strings.Contains(log, "http address of this node") || !strings.Contains(log, "security.protocol=PLAINTEXT") {
		t.Errorf("the log does not tell what to do about HTTP and TLS:\n%s", log)
	}
}

// C084: a tiny request with a giant array length is refused before anything is allocated.
func TestC084_GiantArrayLengthCostsNothing(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	b.dial().create("c084", 1)
	before := heap()
	for range 50 {
		c := b.dial()
		c.write(framed(append(headerOf(wire.KeyMetadata, 1), 0x7f, 0xff, 0xff, 0xff)))
		c.closed()
	}
	if grown := int64(heap()) - int64(before); grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

// C086: sockets that announce 100 MiB and send nothing hold no memory, and real clients are served.
func TestC086_AnnouncedBytesCostNothing(t *testing.T) {
	b := newTestBroker(t, testOptions{limits: Limits{Memory: 8 << 20}})
	c := b.dial()
	c.create("c086", 1)
	before := heap()
	for range 300 {
		b.dial().write(append(sizeFrame(99<<20), headerOf(wire.KeyProduce, 9)...))
	}
	if got := c.publish(newProduce("c086", 0, b.newBatch("served"))); got.ErrorCode != 0 {
		t.Errorf("a real client: %v", kafka.ErrorCode(got.ErrorCode))
	}
	if grown := int64(heap()) - int64(before); grown > 48<<20 {
		t.Errorf("the heap grew by %d MiB for 300 connections", grown>>20)
	}
	if used := b.server.budget.Used(); used > 8<<20 {
		t.Errorf("%d bytes of the budget are used", used)
	}
}

// C086: a peer that stops in the middle of a frame is closed.
func TestC086_StalledFrameIsClosed(t *testing.T) {
	b := newTestBroker(t, testOptions{limits: Limits{FrameStall: 50 * time.Millisecond}})
	c := b.dial()
	c.write(append(sizeFrame(1000), headerOf(wire.KeyProduce, 9)...))
	c.closed()
	eventually(t, "the log names the slow writer", func() bool { return strings.Contains(b.log.String(), "reason=slow_writer") })
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// K19, K20: names that are none, and the broker's own.
func TestK19K20_TopicNames(t *testing.T) {
	b := newTestBroker(t, testOptions{broker: map[string]string{"auto.create.topics.enable": "true"}})
	c := b.dial()
	c.create("a.b", 1)
	for _, name := range []string{"", ".", "..", "a/b", strings.Repeat("n", 250), "nul\x00", "cr\r\n", "bad\xff", strings.Repeat("k", 30_000)} {
		m := newMetadata(4, name)
		m.AllowAutoTopicCreation = true
		if got := kafka.ErrorCode(ask[*kmsg.MetadataResponse](c, m).Topics[0].ErrorCode); got != kafka.InvalidTopicException {
			t.Errorf("metadata of %.20q: %v, want INVALID_TOPIC_EXCEPTION", name, got)
		}
		if got := kafka.ErrorCode(ask[*kmsg.CreateTopicsResponse](c, newCreate(name, 1)).Topics[0].ErrorCode); got != kafka.InvalidTopicException {
			t.Errorf("create %.20q: %v, want INVALID_TOPIC_EXCEPTION", name, got)
		}
	}
	for _, name := range []string{"a_b", "__consumer_offsets"} {
		if got := kafka.ErrorCode(ask[*kmsg.CreateTopicsResponse](c, newCreate(name, 1)).Topics[0].ErrorCode); got != kafka.InvalidTopicException {
			t.Errorf("create %s: %v, want INVALID_TOPIC_EXCEPTION", name, got)
		}
	}
}

// mend recomputes the checksum after a field of the header was changed.
func mend(b record.Batch) record.Batch {
	binary.BigEndian.PutUint32(b[17:], b.ComputeCRC())
	return b
}

// K21-K34: what a publish may not say, and what it is told.
func TestK21toK34_BatchesThatAreRefused(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("strict", 1)
	batch := func(change func(record.Batch)) []byte {
		one := b.newBatch("a", "b")
		change(one)
		return one
	}
	put16 := func(at int, v int16) func(record.Batch) {
		return func(x record.Batch) { binary.BigEndian.PutUint16(x[at:], uint16(v)); mend(x) }
	}
	put32 := func(at int, v int32) func(record.Batch) {
		return func(x record.Batch) { binary.BigEndian.PutUint32(x[at:], uint32(v)); mend(x) }
	}
	for _, one := range []struct {
		name    string
		records []byte
		want    kafka.ErrorCode
	}{
		{"K21 magic 0", batch(func(x record.Batch) { x[16] = 0 }), kafka.InvalidRecord},
		{"K21 magic 1", batch(func(x record.Batch) { x[16] = 1 }), kafka.InvalidRecord},
		{"K21 magic 3", batch(func(x record.Batch) { x[16] = 3 }), kafka.InvalidRecord},
		{"K22 checksum", batch(func(x record.Batch) { x[len(x)-1] ^= 1 }), kafka.CorruptMessage},
		{"K23 length negative", batch(func(x record.Batch) { binary.BigEndian.PutUint32(x[8:], 1<<31) }), kafka.CorruptMessage},
		{"K23 length beyond the bytes", batch(func(x record.Batch) { binary.BigEndian.PutUint32(x[8:], 1<<20) }), kafka.CorruptMessage},
		{"K23 length below the header", batch(func(x record.Batch) { binary.BigEndian.PutUint32(x[8:], 10) }), kafka.CorruptMessage},
		{"K24 count 3 for 2", batch(put32(57, 3)), kafka.InvalidRecord},
		{"K24 count -1", batch(put32(57, -1)), kafka.InvalidRecord},
		{"K24 count max", batch(put32(57, math.MaxInt32)), kafka.InvalidRecord},
		{"K25 last offset delta", batch(put32(23, 5)), kafka.InvalidRecord},
		{"K26 two batches", append(b.newBatch("a"), b.newBatch("b")...), kafka.InvalidRecord},
		{"no batch", []byte{}, kafka.InvalidRecord},
		{"K28 codec 7", batch(put16(21, 7)), kafka.InvalidRecord},
		{"K28 control", batch(put16(21, 0x20)), kafka.InvalidRecord},
		{"K28 delete horizon", batch(put16(21, 0x40)), kafka.InvalidRecord},
		{"K32 transactional", batch(put16(21, 0x10)), kafka.InvalidRecord},
		{"LogAppendTime bit", batch(put16(21, 0x08)), kafka.InvalidTimestamp},
		{"K31 a year ahead", newBatchAt(b.wall.Now().AddDate(1, 0, 0).UnixMilli(), "x"), kafka.InvalidTimestamp},
		{"K31 timestamp -2", newBatchAt(-2, "x"), kafka.InvalidTimestamp},
	} {
		got := c.publish(newProduce("strict", 0, one.records))
		if kafka.ErrorCode(got.ErrorCode) != one.want {
			t.Errorf("%s: %v (%s), want %v", one.name, kafka.ErrorCode(got.ErrorCode), str(got.ErrorMessage), one.want)
		}
		if got.BaseOffset != -1 || got.ErrorMessage == nil {
			t.Errorf("%s: base offset %d, message %q: want -1 and a message", one.name, got.BaseOffset, str(got.ErrorMessage))
		}
	}
	for _, acks := range []int16{2, -7} {
		req := newProduce("strict", 0, b.newBatch("x"))
		req.Acks = acks
		if got := kafka.ErrorCode(c.publish(req).ErrorCode); got != kafka.InvalidRequiredAcks {
			t.Errorf("K34 acks %d: %v", acks, got)
		}
	}
	if end := b.status("strict", 0).End; end != 0 {
		t.Errorf("the log ends at %d after refused publishes only", end)
	}
}

// K36: a partition that is named twice is answered once, with INVALID_REQUEST, and the others are unaffected.
func TestK36_PartitionNamedTwice(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("twice", 3)
	req := newProduce("twice", 0, b.newBatch("a"))
	for _, p := range []int32{1, 0, 2} {
		rp := kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = p, b.newBatch("b")
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, rp)
	}
	resp := ask[*kmsg.ProduceResponse](c, req)
	if n := len(resp.Topics[0].Partitions); n != 3 {
		t.Fatalf("%d partitions answered, want each once", n)
	}
	for _, p := range resp.Topics[0].Partitions {
		want := kafka.None
		if p.Partition == 0 {
			want = kafka.InvalidRequest
		}
		if kafka.ErrorCode(p.ErrorCode) != want {
			t.Errorf("partition %d: %v, want %v", p.Partition, kafka.ErrorCode(p.ErrorCode), want)
		}
	}
	if end := b.status("twice", 0).End; end != 0 {
		t.Errorf("the repeated partition was appended to: end %d", end)
	}
	f := newFetch("twice", 1, 0)
	f.Topics[0].Partitions = append(f.Topics[0].Partitions, newFetchPartition(1, 0))
	if got := kafka.ErrorCode(ask[*kmsg.FetchResponse](c, f).ErrorCode); got != kafka.InvalidRequest {
		t.Errorf("fetch: %v, want INVALID_REQUEST", got)
	}
}

// K37: huge requests are bounded, and do not create topics.
func TestK37_HugeRequestsAreBounded(t *testing.T) {
	b := newTestBroker(t, testOptions{broker: map[string]string{"auto.create.topics.enable": "true"}})
	c := b.dial()
	names := make([]string, lookupsMax+10)
	for i := range names {
		names[i] = "t" + itoa(int16(i))
	}
	m := newMetadata(4, names...)
	m.AllowAutoTopicCreation = true
	resp := ask[*kmsg.MetadataResponse](c, m)
	if last := kafka.ErrorCode(resp.Topics[len(names)-1].ErrorCode); last != kafka.PolicyViolation {
		t.Errorf("the last topic: %v, want POLICY_VIOLATION", last)
	}
	if n := b.quorum.Image().TopicCount(); n != 0 {
		t.Errorf("%d topics were created", n)
	}
	req := newProduce("t1", 0, []byte{})
	for range partitionsMax {
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, kmsg.NewProduceRequestTopicPartition())
	}
	for i := range req.Topics[0].Partitions {
		req.Topics[0].Partitions[i].Partition = int32(i)
	}
	big := ask[*kmsg.ProduceResponse](c, req)
	if got := kafka.ErrorCode(big.Topics[0].Partitions[partitionsMax].ErrorCode); got != kafka.PolicyViolation {
		t.Errorf("publish to %d partitions: %v", partitionsMax+1, got)
	}
}

// K38-K41: a fetch's numbers are brought within bounds, offsets outside are said so, and nobody poses as a replica or another client.
func TestK38toK41_FetchNumbers(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("nums", 1)
	c.publish(newProduce("nums", 0, b.newBatch("a")))
	for _, n := range []int32{-1, 0, math.MaxInt32} {
		f := newFetch("nums", 0, 0)
		f.MaxBytes, f.MinBytes, f.MaxWaitMillis = n, 1, 100
		f.Topics[0].Partitions[0].PartitionMaxBytes = n
		if got := values(t, ask[*kmsg.FetchResponse](c, f).Topics[0].Partitions[0].RecordBatches); len(got) != 1 {
			t.Errorf("K38 max bytes %d: %v, want the one record", n, got)
		}
	}
	for _, off := range []int64{-5, 2, math.MaxInt64, math.MinInt64} {
		p := ask[*kmsg.FetchResponse](c, newFetch("nums", 0, off)).Topics[0].Partitions[0]
		if kafka.ErrorCode(p.ErrorCode) != kafka.OffsetOutOfRange || p.HighWatermark != -1 || p.LogStartOffset != -1 {
			t.Errorf("K39 offset %d: %v, watermark %d", off, kafka.ErrorCode(p.ErrorCode), p.HighWatermark)
		}
	}
	f := newFetch("nums", 0, 0)
	f.ReplicaID = 1
	if got := kafka.ErrorCode(ask[*kmsg.FetchResponse](c, f).ErrorCode); got != kafka.ClusterAuthorizationFailed {
		t.Errorf("K40: %v", got)
	}
	f = newFetch("nums", 0, 0)
	f.SessionID, f.SessionEpoch = 12345, 1
	if got := kafka.ErrorCode(ask[*kmsg.FetchResponse](c, f).ErrorCode); got != kafka.FetchSessionIDNotFound {
		t.Errorf("K41 random id: %v", got)
	}
	f = newFetch("nums", 0, 0)
	f.SessionEpoch = 0
	id := ask[*kmsg.FetchResponse](c, f).SessionID
	thief := b.dial()
	thief.id = "thief"
	steal := kmsg.NewPtrFetchRequest()
	steal.Version, steal.MaxBytes, steal.SessionID, steal.SessionEpoch = 12, 1000, id, 1
	if got := kafka.ErrorCode(ask[*kmsg.FetchResponse](thief, steal).ErrorCode); got != kafka.FetchSessionIDNotFound {
		t.Errorf("K41 another client's id: %v", got)
	}
	steal.SessionEpoch = 9
	if got := kafka.ErrorCode(ask[*kmsg.FetchResponse](c, steal).ErrorCode); got != kafka.InvalidFetchSessionEpoch {
		t.Errorf("K41 wrong epoch: %v", got)
	}
}

// K53: creations that are wrong get an error for each, and nothing is made.
func TestK53_WrongCreations(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	change := func(f func(*kmsg.CreateTopicsRequestTopic)) *kmsg.CreateTopicsRequest {
		r := newCreate("k53", 1)
		f(&r.Topics[0])
		return r
	}
	assigned := func(nodes ...int32) func(*kmsg.CreateTopicsRequestTopic) {
		return func(t *kmsg.CreateTopicsRequestTopic) {
			a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
			a.Replicas = nodes
			t.NumPartitions, t.ReplicationFactor = -1, -1
			t.ReplicaAssignment = append(t.ReplicaAssignment, a)
		}
	}
	for _, one := range []struct {
		name string
		req  *kmsg.CreateTopicsRequest
		want kafka.ErrorCode
	}{
		{"partitions 0", change(func(t *kmsg.CreateTopicsRequestTopic) { t.NumPartitions = 0 }), kafka.InvalidPartitions},
		{"partitions -5", change(func(t *kmsg.CreateTopicsRequestTopic) { t.NumPartitions = -5 }), kafka.InvalidPartitions},
		{"partitions 10^7", change(func(t *kmsg.CreateTopicsRequestTopic) { t.NumPartitions = 10_000_000 }), kafka.InvalidPartitions},
		{"RF 0", change(func(t *kmsg.CreateTopicsRequestTopic) { t.ReplicationFactor = 0 }), kafka.InvalidReplicationFactor},
		{"RF 32767", change(func(t *kmsg.CreateTopicsRequestTopic) { t.ReplicationFactor = 32767 }), kafka.InvalidReplicationFactor},
		{"bad config", newCreate("k53", 1, "retention.ms", "abc"), kafka.InvalidConfig},
		{"unknown config", newCreate("k53", 1, "retention.sm", "1"), kafka.InvalidConfig},
		{"config twice", newCreate("k53", 1, "retention.ms", "1", "retention.ms", "2"), kafka.InvalidRequest},
		{"repeated replica", change(assigned(1, 1)), kafka.InvalidReplicaAssignment},
		{"unknown replica", change(assigned(99)), kafka.InvalidReplicaAssignment},
		{"assignment and counts", change(func(t *kmsg.CreateTopicsRequestTopic) { assigned(1)(t); t.NumPartitions = 1 }), kafka.InvalidRequest},
		{"name twice", func() *kmsg.CreateTopicsRequest {
			r := newCreate("k53", 1)
			r.Topics = append(r.Topics, r.Topics[0])
			return r
		}(), kafka.InvalidRequest},
	} {
		resp := ask[*kmsg.CreateTopicsResponse](c, one.req)
		if len(resp.Topics) != 1 || kafka.ErrorCode(resp.Topics[0].ErrorCode) != one.want || resp.Topics[0].ErrorMessage == nil {
			t.Errorf("%s: %d answers, %v %q, want %v and a message", one.name, len(resp.Topics), kafka.ErrorCode(resp.Topics[0].ErrorCode), str(resp.Topics[0].ErrorMessage), one.want)
		}
	}
	if n := b.quorum.Image().TopicCount(); n != 0 {
		t.Errorf("%d topics were made", n)
	}
}
