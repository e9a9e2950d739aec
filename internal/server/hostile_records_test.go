package server

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

// hostileRecords are names and batches that must not get into a log.
var hostileRecords = []hostileCase{
	{name: "K19_topic_names_of_strange_bytes", attack: k19},
	{name: "K20_topic_names_that_are_refused", attack: k20, today: "there is no authorisation: writing to the broker's own topics is INVALID_TOPIC_EXCEPTION for everybody"},
	{name: "K21_magic", attack: func(a *attack) {
		for _, magic := range []byte{0, 1, 3, 127, 255} {
			a.refused(fmt.Sprint("magic ", magic), a.batch(func(x record.Batch) { x[16] = magic }), kafka.InvalidRecord)
		}
	}},
	{name: "K22_checksum", attack: func(a *attack) {
		a.refused("flipped bit", a.batch(func(x record.Batch) { x[len(x)-1] ^= 1 }), kafka.CorruptMessage)
		a.refused("checksum 0", a.batch(func(x record.Batch) { clear(x[17:21]) }), kafka.CorruptMessage)
	}},
	{name: "K23_batch_length", attack: func(a *attack) {
		for _, length := range []int32{-1, math.MinInt32, 0, 10, 48, 1 << 20, math.MaxInt32} {
			a.refused(fmt.Sprint("length ", length), a.batch(put32(8, length, false)), kafka.CorruptMessage)
		}
		a.refused("shorter than a header", make([]byte, 20), kafka.CorruptMessage)
	}},
	{name: "K24_record_count", attack: func(a *attack) {
		for _, count := range []int32{3, 1, 0, -1, math.MaxInt32, math.MinInt32} {
			a.refused(fmt.Sprint("count ", count), a.batch(put32(57, count, true)), kafka.InvalidRecord)
			a.refused(fmt.Sprint("count and last delta ", count), a.batch(func(x record.Batch) {
				put32(23, count-1, false)(x)
				put32(57, count, true)(x)
			}), kafka.InvalidRecord)
		}
	}},
	{name: "K25_last_offset_delta", attack: func(a *attack) {
		for _, delta := range []int32{0, 5, -1, math.MaxInt32, math.MinInt32} {
			a.refused(fmt.Sprint("delta ", delta), a.batch(put32(23, delta, true)), kafka.InvalidRecord)
		}
	}},
	{name: "K26_two_batches", attack: func(a *attack) {
		a.refused("two batches", append(a.b.newBatch("a"), a.b.newBatch("b")...), kafka.InvalidRecord)
		a.refused("no batch", []byte{}, kafka.InvalidRecord)
		a.refused("null", nil, kafka.InvalidRecord)
	}},
	{name: "K27_lengths_inside_a_record", attack: k27},
	{name: "K28_attributes", attack: func(a *attack) {
		for name, bits := range map[string]int16{
			"codec 5": 5, "codec 7": 7, "control": 0x20, "delete horizon": 0x40, "unknown bit": 0x80, "all bits": -1,
		} {
			a.refused(name, a.batch(put16(21, bits)), kafka.InvalidRecord)
		}
		a.refused("append time", a.batch(put16(21, 0x08)), kafka.InvalidTimestamp)
	}},
	{name: "K30_codec_frames", attack: k30},
	{name: "K31_timestamps", attack: func(a *attack) {
		for _, ms := range []int64{-2, math.MinInt64, math.MaxInt64, a.b.wall.Now().AddDate(1, 0, 0).UnixMilli()} {
			a.refused(fmt.Sprint("timestamp ", ms), newBatchAt(ms, "x"), kafka.InvalidTimestamp)
		}
		late := record.NewBuilder(record.None)
		late.Add(math.MaxInt64-1, nil, nil, nil)
		late.Add(math.MinInt64+1, nil, nil, nil)
		a.refused("a delta that overflows", late.Build(), kafka.InvalidTimestamp)
	}},
	{name: "K32_producer_fields", attack: k32, today: "there are no transactions: the transactional bit is INVALID_RECORD with and without a producer id"},
	{name: "K34_acks", attack: func(a *attack) {
		for _, acks := range []int16{2, -2, -7, math.MaxInt16, math.MinInt16} {
			req := newProduce("target", 0, a.b.newBatch("x"))
			req.Acks = acks
			a.code(fmt.Sprint("acks ", acks), a.dial().publish(req).ErrorCode, kafka.InvalidRequiredAcks)
		}
		a.nothingStored()
	}},
	{name: "K35_acks_0_with_an_error", attack: func(a *attack) {
		for _, topic := range []string{"target", "missing", "bad\xff"} {
			req := newProduce(topic, 9, a.b.newBatch("x"))
			req.Acks = 0
			c := a.dial()
			c.send(req)
			c.closed()
			a.line(topic, c, reasonAcksNone)
		}
	}},
}

// batch is two records, changed.
func (a *attack) batch(change func(record.Batch)) []byte {
	one := a.b.newBatch("a", "b")
	change(one)
	return one
}

func put16(at int, v int16) func(record.Batch) {
	return func(x record.Batch) { binary.BigEndian.PutUint16(x[at:], uint16(v)); mend(x) }
}

func put32(at int, v int32, sealed bool) func(record.Batch) {
	return func(x record.Batch) {
		binary.BigEndian.PutUint32(x[at:], uint32(v))
		if sealed {
			mend(x)
		}
	}
}

// mend recomputes the checksum after a field of the header was changed.
func mend(b record.Batch) record.Batch {
	binary.BigEndian.PutUint32(b[17:], b.ComputeCRC())
	return b
}

// refused publishes records that must be answered with want and a message, and not be stored.
func (a *attack) refused(what string, records []byte, want kafka.ErrorCode) {
	a.Helper()
	got := a.dial().publish(newProduce("target", 0, records))
	a.code(what+": "+str(got.ErrorMessage), got.ErrorCode, want)
	if got.BaseOffset != -1 || got.ErrorMessage == nil {
		a.Errorf("%s: base offset %d, message %q: want -1 and a message", what, got.BaseOffset, str(got.ErrorMessage))
	}
	a.nothingStored()
}

func (a *attack) nothingStored() {
	a.Helper()
	if end := a.b.status("target", 0).End; end != 0 {
		a.Errorf("the log ends at %d after refused publishes only", end)
	}
}

// wrapped is a batch with this codec and count around any payload.
func (a *attack) wrapped(codec record.Codec, count int32, payload []byte) []byte {
	x := append(a.b.newBatch("x")[:record.HeaderSize:record.HeaderSize], payload...)
	binary.BigEndian.PutUint32(x[8:], uint32(len(x)-12))
	binary.BigEndian.PutUint16(x[21:], uint16(codec))
	binary.BigEndian.PutUint32(x[23:], uint32(count-1))
	binary.BigEndian.PutUint32(x[57:], uint32(count))
	return mend(x)
}

// k19: every API that takes a topic's name takes any bytes for one.
func k19(a *attack) {
	long := strings.Repeat("k", 64<<10)
	for _, name := range []string{"bad\xff\xfe", "nul\x00", "cr\r\nlevel=ERROR msg=forged", "esc\x1b[31m", "\u202e", long} {
		what, c := fmt.Sprintf("%.20q", name), a.dial()
		for _, version := range []int16{4, 12} {
			if version < 9 && len(name) > math.MaxInt16 {
				continue // its length field has 16 bits
			}
			m := newMetadata(version, name)
			m.AllowAutoTopicCreation = true
			a.code("Metadata of "+what, ask[*kmsg.MetadataResponse](c, m).Topics[0].ErrorCode, kafka.InvalidTopicException)
		}
		a.code("CreateTopics of "+what, ask[*kmsg.CreateTopicsResponse](c, newCreate(name, 1)).Topics[0].ErrorCode, kafka.InvalidTopicException)
		a.code("Produce to "+what, c.publish(newProduce(name, 0, a.b.newBatch("x"))).ErrorCode, kafka.UnknownTopicOrPartition)
		a.code("Fetch of "+what, ask[*kmsg.FetchResponse](c, newFetch(name, 0, 0)).Topics[0].Partitions[0].ErrorCode, kafka.UnknownTopicOrPartition)
		for _, api := range served() { // whatever it says, it lives and answers
			req := request(api.Key, name, kafka.TopicID{}, a.b.newBatch("x"))
			if req.SetVersion(api.Max); api.Flexible > api.Max && len(name) > math.MaxInt16 {
				continue
			}
			ask[kmsg.Response](c, req)
		}
	}
}

func k20(a *attack) {
	c := a.dial()
	c.create("a.b", 1)
	for _, name := range []string{"", ".", "..", "a/b", `a\b`, strings.Repeat("n", 250), "a_b", "__consumer_offsets"} {
		a.code("create "+name, ask[*kmsg.CreateTopicsResponse](c, newCreate(name, 1)).Topics[0].ErrorCode, kafka.InvalidTopicException)
	}
	for _, name := range []string{"", ".", "..", "a/b", strings.Repeat("n", 250)} {
		m := newMetadata(12, name)
		m.AllowAutoTopicCreation = true
		a.code("metadata of "+name, ask[*kmsg.MetadataResponse](c, m).Topics[0].ErrorCode, kafka.InvalidTopicException)
	}
	c.id = "__admin_client" // Kafka lets this one
	a.code("publish", c.publish(newProduce("__consumer_offsets", 0, a.b.newBatch("x"))).ErrorCode, kafka.InvalidTopicException)
	del := kmsg.NewPtrDeleteTopicsRequest()
	del.Version, del.TopicNames = 5, []string{"a.b"}
	a.code("delete", ask[*kmsg.DeleteTopicsResponse](c, del).Topics[0].ErrorCode, kafka.None)
}

// k27: the fields of a record, in their order: length, attributes, timestamp delta, offset delta, key, value, headers.
func k27(a *attack) {
	varint := func(v int64) []byte { return binary.AppendVarint(nil, v) }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	one := func(fields ...[]byte) []byte {
		body := join(fields...)
		return append(varint(int64(len(body))), body...)
	}
	zero, null := varint(0), varint(-1)
	for name, payload := range map[string][]byte{
		"length beyond the batch":      append(varint(1000), make([]byte, 20)...),
		"length -1":                    append(varint(-1), make([]byte, 20)...),
		"length max":                   append(varint(maxInt32), make([]byte, 20)...),
		"length of 64 bits":            append(varint(math.MaxInt64), make([]byte, 20)...),
		"length shorter than fields":   append(varint(3), make([]byte, 20)...),
		"key length -5":                one(zero, zero, zero, varint(-5), null, zero),
		"key length max":               one(zero, zero, zero, varint(maxInt32), null, zero),
		"value length -2":              one(zero, zero, zero, null, varint(-2), zero),
		"value length 64 bits":         one(zero, zero, zero, null, varint(math.MaxInt64), zero),
		"headers -1":                   one(zero, zero, zero, null, null, varint(-1)),
		"headers 2^31":                 one(zero, zero, zero, null, null, varint(1<<31)),
		"headers max without bytes":    one(zero, zero, zero, null, null, varint(maxInt32)),
		"header key null":              one(zero, zero, zero, null, null, varint(1), varint(-1), null),
		"header key beyond the record": one(zero, zero, zero, null, null, varint(1), varint(100), null),
		"overlong varint":              one(zero, zero, bytes.Repeat([]byte{0x80}, 12), null, null, zero),
		"bytes behind the last record": append(one(zero, zero, zero, null, null, zero), 1, 2, 3),
	} {
		a.refused(name, a.wrapped(record.None, 1, payload), kafka.InvalidRecord)
	}
}

// k30: compressed records are one whole frame of their codec.
func k30(a *attack) {
	whole := a.b.newBatch(strings.Repeat("some text ", 500))
	for _, codec := range []record.Codec{record.Gzip, record.Snappy, record.LZ4, record.Zstd} {
		frame, err := record.Compress(codec, nil, whole.Payload())
		must(a, err)
		for name, payload := range map[string][]byte{
			"nothing": {}, "cut": frame[:len(frame)-1], "half": frame[:len(frame)/2], "twice": append(bytes.Clone(frame), frame...),
			"trailing garbage": append(bytes.Clone(frame), "garbage"...), "not a frame": []byte("not a frame"), "zeros": make([]byte, 100),
		} {
			a.refused(codec.String()+": "+name, a.wrapped(codec, 1, payload), kafka.CorruptMessage)
		}
	}
}

func k32(a *attack) {
	with := func(id kafka.ProducerID, epoch kafka.ProducerEpoch, sequence int32, transactional bool) []byte {
		x := a.b.newBatch("x")
		x.SetProducer(id, epoch, sequence, transactional)
		return x
	}
	a.refused("epoch -1", with(5, -1, 0, false), kafka.InvalidRecord)
	a.refused("sequence -5", with(5, 0, -5, false), kafka.InvalidRecord)
	a.refused("producer id -2", with(-2, 0, 0, false), kafka.InvalidRecord)
	a.refused("smallest producer id", with(math.MinInt64, 0, 0, false), kafka.InvalidRecord)
	a.refused("transactional without an id", with(-1, -1, -1, true), kafka.InvalidRecord)
	a.refused("transactional", with(5, 0, 0, true), kafka.InvalidRecord)
}
