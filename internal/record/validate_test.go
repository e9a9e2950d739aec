package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"
)

// validation is one hostile or honest batch: edit changes a valid batch of three records, whose CRC is then made right again.
type validation struct {
	name  string
	codec Codec
	edit  func(b Batch) Batch
	rules func(r *Rules)
	kind  Kind // 0: accepted
	index int
}

func put16(pos int, v uint16) func(Batch) Batch {
	return func(b Batch) Batch { binary.BigEndian.PutUint16(b[pos:], v); return b }
}

func put32(pos int, v int32) func(Batch) Batch {
	return func(b Batch) Batch { binary.BigEndian.PutUint32(b[pos:], uint32(v)); return b }
}

func put64(pos int, v int64) func(Batch) Batch {
	return func(b Batch) Batch { binary.BigEndian.PutUint64(b[pos:], uint64(v)); return b }
}

func attributes(bits uint16) func(Batch) Batch {
	return func(b Batch) Batch { return put16(posAttributes, uint16(b.Attributes())|bits)(b) }
}

func producer(id int64, epoch int16, sequence int32) func(Batch) Batch {
	return func(b Batch) Batch {
		return put32(posBaseSequence, sequence)(put16(posProducerEpoch, uint16(epoch))(put64(posProducerID, id)(b)))
	}
}

// records replaces the payload, keeping the count.
func records(parts ...[]byte) func(Batch) Batch {
	return func(b Batch) Batch { return append(b[:HeaderSize:HeaderSize], bytes.Join(parts, nil)...) }
}

// rawRecord is a record with its length in front, from zigzag integers and byte strings.
func rawRecord(fields ...any) []byte {
	body := []byte{0}
	for _, f := range fields {
		switch f := f.(type) {
		case int:
			body = binary.AppendVarint(body, int64(f))
		case string:
			body = append(body, f...)
		case []byte:
			body = append(body, f...)
		}
	}
	return append(binary.AppendVarint(nil, int64(len(body))), body...)
}

func goodRecord(delta int) []byte { return rawRecord(0, delta, 1, "k", 1, "v", 0) }

var validations = []validation{
	{name: "accepted"},
	{name: "accepted gzip", codec: Gzip},
	{name: "accepted snappy", codec: Snappy},
	{name: "accepted lz4", codec: LZ4},
	{name: "accepted zstd", codec: Zstd},
	{name: "accepted idempotent", edit: producer(5, 0, 0)},
	{name: "accepted without producer as kafkajs sends it", edit: producer(-1, 0, 0)},
	{name: "accepted hand-made records", edit: records(goodRecord(0), goodRecord(1), goodRecord(2))},
	{name: "accepted control batch of a broker", edit: attributes(bitControl), rules: func(r *Rules) { r.AllowControl = true }},
	{name: "accepted transaction", edit: func(b Batch) Batch { return attributes(bitTransactional)(producer(5, 0, 0)(b)) },
		rules: func(r *Rules) { r.AllowTransactional = true }},

	{name: "K21 magic 0", edit: func(b Batch) Batch { b[posMagic] = 0; return b }, kind: InvalidRecord, index: -1},
	{name: "K21 magic 1", edit: func(b Batch) Batch { b[posMagic] = 1; return b }, kind: InvalidRecord, index: -1},
	{name: "K21 magic 3", edit: func(b Batch) Batch { b[posMagic] = 3; return b }, kind: InvalidRecord, index: -1},
	{name: "K21 magic 127", edit: func(b Batch) Batch { b[posMagic] = 127; return b }, kind: InvalidRecord, index: -1},

	{name: "K24 count 0", edit: put32(posCount, 0), kind: InvalidRecord, index: -1},
	{name: "K24 count -1", edit: put32(posCount, -1), kind: InvalidRecord, index: -1},
	{name: "K24 count MAX", edit: func(b Batch) Batch {
		return put32(posLastOffsetDelta, math.MaxInt32-1)(put32(posCount, math.MaxInt32)(b))
	}, kind: InvalidRecord, index: -1},
	{name: "K24 one more than there are", edit: func(b Batch) Batch {
		return put32(posLastOffsetDelta, 3)(put32(posCount, 4)(b))
	}, kind: InvalidRecord, index: 3},
	{name: "K24 one more than there are, compressed", codec: Zstd, edit: func(b Batch) Batch {
		return put32(posLastOffsetDelta, 3)(put32(posCount, 4)(b))
	}, kind: InvalidRecord, index: 3},
	{name: "K24 one less than there are", edit: func(b Batch) Batch {
		return put32(posLastOffsetDelta, 1)(put32(posCount, 2)(b))
	}, kind: InvalidRecord, index: -1},
	{name: "K24 one less than there are, compressed", codec: Gzip, edit: func(b Batch) Batch {
		return put32(posLastOffsetDelta, 1)(put32(posCount, 2)(b))
	}, kind: InvalidRecord, index: -1},
	{name: "K25 last offset delta too large", edit: put32(posLastOffsetDelta, 3), kind: InvalidRecord, index: -1},
	{name: "K25 last offset delta too small", edit: put32(posLastOffsetDelta, 1), kind: InvalidRecord, index: -1},
	{name: "K25 last offset delta negative", edit: put32(posLastOffsetDelta, -1), kind: InvalidRecord, index: -1},

	{name: "K27 record length beyond batch", edit: records(goodRecord(0), goodRecord(1), []byte{0x7e, 0, 0, 0, 0, 0, 0, 0}), kind: InvalidRecord, index: 2},
	{name: "K27 record length negative", edit: records(goodRecord(0), []byte{1}, goodRecord(1), goodRecord(2)), kind: InvalidRecord, index: 1},
	{name: "K27 record length below content", edit: records(goodRecord(0), goodRecord(1), append([]byte{12}, goodRecord(2)[1:]...)), kind: InvalidRecord, index: 2},
	{name: "K27 bytes behind the content of a record", edit: records(goodRecord(0), goodRecord(1), rawRecord(0, 2, -1, -1, 0, "x")), kind: InvalidRecord, index: 2},
	{name: "K27 headers count -1", edit: records(goodRecord(0), goodRecord(1), rawRecord(0, 2, -1, -1, -1)), kind: InvalidRecord, index: 2},
	{name: "K27 headers count 2^31", edit: records(goodRecord(0), goodRecord(1), rawRecord(0, 2, -1, -1, 1<<31)), kind: InvalidRecord, index: 2},
	{name: "K27 headers count MAX", edit: records(goodRecord(0), goodRecord(1), rawRecord(0, 2, -1, -1, math.MaxInt32)), kind: InvalidRecord, index: 2},
	{name: "K27 key length -5", edit: records(goodRecord(0), goodRecord(1), rawRecord(0, 2, -5, -1, 0)), kind: InvalidRecord, index: 2},
	{name: "K27 key beyond record", edit: records(rawRecord(0, 0, 9, "k", -1, 0), goodRecord(1), goodRecord(2)), kind: InvalidRecord, index: 0},
	{name: "K27 value length -2", edit: records(goodRecord(0), goodRecord(1), rawRecord(0, 2, -1, -2, 0)), kind: InvalidRecord, index: 2},
	{name: "K27 value length MAX", edit: records(goodRecord(0), goodRecord(1), rawRecord(0, 2, -1, math.MaxInt32, 0)), kind: InvalidRecord, index: 2},
	{name: "K27 null header key", edit: records(goodRecord(0), goodRecord(1), rawRecord(0, 2, -1, -1, 1, -1, -1)), kind: InvalidRecord, index: 2},
	{name: "K27 header value length -2", edit: records(goodRecord(0), goodRecord(1), rawRecord(0, 2, -1, -1, 1, 1, "h", -2)), kind: InvalidRecord, index: 2},
	{name: "K18 overlong varint", edit: records(goodRecord(0), goodRecord(1), rawRecord(bytes.Repeat([]byte{0x80}, 11))), kind: InvalidRecord, index: 2},
	{name: "K18 33-bit offset delta", edit: records(goodRecord(0), goodRecord(1), rawRecord(0, 1<<33, -1, -1, 0)), kind: InvalidRecord, index: 2},
	{name: "offset delta out of place", edit: records(goodRecord(0), goodRecord(2), goodRecord(1)), kind: InvalidRecord, index: 1},
	{name: "bytes behind the last record", edit: records(goodRecord(0), goodRecord(1), goodRecord(2), []byte{0}), kind: InvalidRecord, index: -1},

	{name: "K28 codec 5", edit: put16(posAttributes, 5), kind: InvalidRecord, index: -1},
	{name: "K28 codec 7", edit: put16(posAttributes, 7), kind: InvalidRecord, index: -1},
	{name: "K28 control bit", edit: attributes(bitControl), kind: InvalidRecord, index: -1},
	{name: "K28 delete horizon bit", edit: attributes(bitDeleteHorizon), kind: InvalidRecord, index: -1},
	{name: "K28 unknown bits", edit: attributes(0x80), kind: InvalidRecord, index: -1},
	{name: "zstd below version 7", codec: Zstd, rules: func(r *Rules) { r.ZstdAllowed = false }, kind: UnsupportedCompression, index: -1},
	{name: "log append time by client", edit: attributes(bitAppendTime), kind: InvalidTimestamp, index: -1},

	{name: "K31 timestamp -1 is none", edit: func(b Batch) Batch {
		return records(goodRecord(0), goodRecord(1), goodRecord(2))(put64(posBaseTimestamp, -1)(b))
	}, rules: func(r *Rules) { r.TimestampBefore = time.Hour }},
	{name: "K31 timestamp -2", edit: put64(posBaseTimestamp, -2), kind: InvalidTimestamp, index: 0},
	{name: "K31 timestamp MIN", edit: put64(posBaseTimestamp, math.MinInt64), kind: InvalidTimestamp, index: 0},
	{name: "K31 timestamp MAX", edit: put64(posBaseTimestamp, math.MaxInt64), kind: InvalidTimestamp, index: 0},
	{name: "K31 sum overflows", edit: func(b Batch) Batch {
		return records(rawRecord(1, 0, -1, -1, 0), goodRecord(1), goodRecord(2))(put64(posBaseTimestamp, math.MaxInt64)(b))
	}, kind: InvalidTimestamp, index: 0},
	{name: "K31 sum underflows", edit: func(b Batch) Batch {
		return records(rawRecord(-1, 0, -1, -1, 0), goodRecord(1), goodRecord(2))(put64(posBaseTimestamp, math.MinInt64)(b))
	}, kind: InvalidTimestamp, index: 0},
	{name: "K31 a year ahead", edit: put64(posBaseTimestamp, testNow+365*24*3600*1000), kind: InvalidTimestamp, index: 0},
	{name: "K31 a year ahead is the leader's to stamp", edit: put64(posBaseTimestamp, testNow+365*24*3600*1000),
		rules: func(r *Rules) { r.LogAppendTime = true }},
	{name: "third record too old", edit: records(goodRecord(0), goodRecord(1), rawRecord(-7_200_000, 2, -1, -1, 0)),
		rules: func(r *Rules) { r.TimestampBefore = time.Hour }, kind: InvalidTimestamp, index: 2},

	{name: "K32 producer epoch -1", edit: producer(5, -1, 0), kind: InvalidRecord, index: -1},
	{name: "K32 sequence -5", edit: producer(5, 0, -5), kind: InvalidRecord, index: -1},
	{name: "K32 sequence -1", edit: producer(5, 0, -1), kind: InvalidRecord, index: -1},
	{name: "K32 producer id -2", edit: producer(-2, 0, 0), kind: InvalidRecord, index: -1},
	{name: "K32 transaction without id", edit: attributes(bitTransactional),
		rules: func(r *Rules) { r.AllowTransactional = true }, kind: InvalidRecord, index: -1},
	{name: "K32 transaction where there are none", edit: func(b Batch) Batch { return attributes(bitTransactional)(producer(5, 0, 0)(b)) },
		kind: InvalidRecord, index: -1},

	{name: "batch too large", rules: func(r *Rules) { r.MaxBatchBytes = 100 }, kind: BatchTooLarge, index: -1},
	{name: "record too large", rules: func(r *Rules) { r.MaxRecordBytes = 106 }, kind: RecordTooLarge, index: 0},
	{name: "record too large, compressed", codec: Zstd, rules: func(r *Rules) { r.MaxRecordBytes = 106 }, kind: RecordTooLarge, index: 0},
	{name: "record just fits", rules: func(r *Rules) { r.MaxRecordBytes = 107 }},
	{name: "key required and there", rules: func(r *Rules) { r.RequireKey = true }},
	{name: "key required", edit: records(goodRecord(0), rawRecord(0, 1, -1, 1, "v", 0), goodRecord(2)),
		rules: func(r *Rules) { r.RequireKey = true }, kind: InvalidRecord, index: 1},
	{name: "empty key is a key", edit: records(goodRecord(0), rawRecord(0, 1, 0, 1, "v", 0), goodRecord(2)),
		rules: func(r *Rules) { r.RequireKey = true }},
}

func TestValidate(t *testing.T) {
	for _, v := range validations {
		t.Run(v.name, func(t *testing.T) {
			b := newTestBatch(t, v.codec, 3)
			if v.edit != nil {
				b = v.edit(b)
			}
			b.seal()
			r := testRules()
			if v.rules != nil {
				v.rules(&r)
			}
			checkInvalid(t, validate(b, r), v.kind, v.index)
		})
	}
}

// validate is Validate for who wants the error alone.
func validate(b Batch, r Rules) error {
	_, err := Validate(b, r)
	return err
}

// TestValidateTellsOfHeaders: of any record's, in any codec.
func TestValidateTellsOfHeaders(t *testing.T) {
	for _, codec := range []Codec{None, Gzip, Snappy, LZ4, Zstd} {
		for with := range 4 { // the record that has one; the last has none
			bu := NewBuilder(codec)
			for i := range 3 {
				var headers []Header
				if i == with {
					headers = []Header{{Key: "k"}}
				}
				bu.Add(1, []byte("a"), []byte("b"), headers)
			}
			if facts, err := Validate(bu.Build(), Rules{ZstdAllowed: true}); err != nil || facts.HasHeaders != (with < 3) {
				t.Errorf("%v, record %d: %+v %v", codec, with, facts, err)
			}
		}
	}
}

func checkInvalid(t *testing.T, err error, kind Kind, index int) {
	t.Helper()
	if kind == 0 {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	var e *InvalidError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want kind %v", err, kind)
	}
	if e.Kind != kind || e.RecordIndex != index || e.Why == "" {
		t.Errorf("got kind %v index %d (%v), want %v %d", e.Kind, e.RecordIndex, err, kind, index)
	}
}

func TestK22_WrongChecksum(t *testing.T) {
	b := newTestBatch(t, None, 3)
	b[len(b)-1]++
	checkInvalid(t, validate(b, testRules()), Corrupt, -1)
}

func TestK23_K26_Single(t *testing.T) {
	good := newTestBatch(t, None, 2)
	for _, c := range []struct {
		name  string
		bytes []byte
		kind  Kind
	}{
		{"one batch", good, 0},
		{"no batch", nil, InvalidRecord},
		{"K26 two batches", append(clone(good), good...), InvalidRecord},
		{"K26 a second batch of magic 1", append(clone(good), func() []byte { b := clone(good); b[posMagic] = 1; return b }()...), InvalidRecord},
		{"bytes behind", append(clone(good), 1, 2, 3), Corrupt},
		{"K23 negative length", put32(posLength, -1)(clone(good)), Corrupt},
		{"K23 length above payload", put32(posLength, int32(len(good)))(clone(good)), Corrupt},
		{"K23 length below header", put32(posLength, 10)(clone(good)), Corrupt},
		{"K23 cut short", good[:len(good)-1], Corrupt},
		{"K21 magic 1", func() []byte { b := clone(good); b[posMagic] = 1; return b }(), InvalidRecord},
	} {
		b, err := Single(c.bytes)
		t.Run(c.name, func(t *testing.T) { checkInvalid(t, err, c.kind, -1) })
		if (err == nil) != (b != nil) {
			t.Errorf("%s: batch %v with error %v", c.name, b != nil, err)
		}
	}
}

func TestRecordTooLargeNamesRecordSizeAndLimit(t *testing.T) {
	bu := NewBuilder(LZ4)
	bu.Add(testNow, nil, []byte("small"), nil)
	bu.Add(testNow, []byte("key"), bytes.Repeat([]byte("v"), 500), []Header{{"name", []byte("value")}})
	r := testRules()
	r.MaxRecordBytes = 400
	var e *InvalidError
	if !errors.As(validate(bu.Build(), r), &e) {
		t.Fatal("accepted")
	}
	want := InvalidError{RecordTooLarge, 1, "the record is larger than the topic allows", 3 + 500 + 4 + 5, 400}
	if *e != want {
		t.Errorf("got %+v, want %+v", *e, want)
	}
	if got := e.Error(); got != "record too large: record 1: the record is larger than the topic allows (512 bytes, limit 400)" {
		t.Error(got)
	}
}

func TestValidateCorrectsMaxTimestamp(t *testing.T) {
	for _, codec := range allCodecs {
		b := newTestBatch(t, codec, 3)
		want := clone(b)
		binary.BigEndian.PutUint64(b[posMaxTimestamp:], 1)
		b.seal()
		if err := validate(b, testRules()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b, want) {
			t.Errorf("%v: max timestamp %d, CRC %v", codec, b.MaxTimestamp(), b.VerifyCRC())
		}
	}
}

func TestValidateChangesNothingElse(t *testing.T) {
	for _, codec := range allCodecs {
		b := newTestBatch(t, codec, 100)
		want := clone(b)
		if err := validate(b, testRules()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b, want) {
			t.Errorf("%v: the batch changed", codec)
		}
	}
}

// Plain batches cost no allocation; compressed ones at most those of a stream that the pool did not have (the race detector makes it
// forget some), never one per record.
func TestValidateAllocatesNothingPerRecord(t *testing.T) {
	const records = 1000
	for _, codec := range allCodecs {
		b := newTestBatch(t, codec, records)
		r := testRules()
		most := float64(records / 10)
		if codec == None {
			most = 0
		}
		if n := testing.AllocsPerRun(50, func() {
			if err := validate(b, r); err != nil {
				t.Fatal(err)
			}
		}); n > most {
			t.Errorf("%v: %.0f allocations for %d records", codec, n, records)
		}
	}
}

func TestInvalidErrorNamesEveryKind(t *testing.T) {
	for k := Corrupt; k <= UnsupportedCompression; k++ {
		if s := k.String(); s == "" || s[:min(4, len(s))] == "kind" {
			t.Errorf("kind %d is %q", k, s)
		}
	}
}
