package record

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var rewrite = flag.Bool("rewrite", false, "write testdata instead of comparing with it")

// TestGoldenBatch holds the bytes of docs/formats/record-batch.md.
func TestGoldenBatch(t *testing.T) {
	bu := NewBuilder(None)
	bu.Add(testNow, []byte("k"), []byte("value"), []Header{{"h1", []byte("x")}, {"h2", nil}})
	bu.Add(testNow+5, nil, []byte{}, nil)
	b := bu.Build()
	b.SetProducer(7, 3, 41, true)
	b.SetBaseOffset(1000)
	b.SetLeaderEpoch(9)
	file := filepath.Join("testdata", "batch.hex")
	got := strings.TrimSpace(hex.Dump(b)) + "\n"
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("batch bytes changed:\n%s\nwant\n%s", got, want)
	}
}

func TestAccessorsAgreeWithKmsg(t *testing.T) {
	b := newTestBatch(t, Gzip, 10)
	b.SetBaseOffset(123)
	b.SetLeaderEpoch(4)
	b.SetProducer(55, 6, 77, true)
	var k kmsg.RecordBatch
	if err := k.ReadFrom(b); err != nil {
		t.Fatal(err)
	}
	type view struct {
		base, baseTS, maxTS, pid                   int64
		length, epoch, crc, delta, sequence, count int32
		attributes, pepoch                         int16
		magic                                      int8
	}
	got := view{int64(b.BaseOffset()), b.BaseTimestamp(), b.MaxTimestamp(), int64(b.ProducerID()), int32(b.Size() - lengthOverhead),
		int32(b.LeaderEpoch()), int32(b.CRC()), b.LastOffsetDelta(), b.BaseSequence(), b.Count(), b.Attributes(),
		int16(b.ProducerEpoch()), b.Magic()}
	want := view{k.FirstOffset, k.FirstTimestamp, k.MaxTimestamp, k.ProducerID, k.Length, k.PartitionLeaderEpoch, k.CRC,
		k.LastOffsetDelta, k.FirstSequence, k.NumRecords, k.Attributes, k.ProducerEpoch, k.Magic}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !bytes.Equal(k.AppendTo(nil), b) {
		t.Error("kmsg encodes another batch")
	}
	if b.LastOffset() != 132 || b.NextOffset() != 133 || b.Codec() != Gzip || !b.IsTransactional() || b.IsControl() || b.HasDeleteHorizon() {
		t.Error("derived accessors are wrong")
	}
}

func TestI11_OffsetAndEpochAreOutsideTheChecksum(t *testing.T) {
	b := newTestBatch(t, None, 3)
	b.SetBaseOffset(1 << 40)
	b.SetLeaderEpoch(77)
	if err := b.VerifyCRC(); err != nil {
		t.Error(err)
	}
	for i := posAttributes; i < len(b); i++ {
		b[i] ^= 0x10
		if b.VerifyCRC() != ErrChecksum {
			t.Errorf("flipped bit in byte %d was not noticed", i)
		}
		b[i] ^= 0x10
	}
}

func TestSetAppendTime(t *testing.T) {
	b := newTestBatch(t, Snappy, 3)
	b.SetAppendTime(42)
	if b.TimestampType() != LogAppendTime || b.MaxTimestamp() != 42 || b.VerifyCRC() != nil || b.Codec() != Snappy {
		t.Error("append time was not set")
	}
	for r, err := range b.Records(0) {
		if err != nil || b.Timestamp(&r) != 42 {
			t.Errorf("record's time is %d, %v", b.Timestamp(&r), err)
		}
	}
}

func TestLastSequenceWraps(t *testing.T) {
	for _, c := range []struct{ base, want int32 }{
		{0, 4}, {math.MaxInt32 - 4, math.MaxInt32}, {math.MaxInt32 - 3, 0}, {math.MaxInt32, 3}, {-1, -1},
	} {
		b := newTestBatch(t, None, 5)
		b.SetProducer(1, 0, c.base, false)
		if got := b.LastSequence(); got != c.want {
			t.Errorf("base %d: last sequence %d, want %d", c.base, got, c.want)
		}
	}
}

func TestSplit(t *testing.T) {
	one, two := newTestBatch(t, None, 1), newTestBatch(t, LZ4, 5)
	both := append(clone(one), two...)
	first, rest, err := Split(both)
	if err != nil || !bytes.Equal(first, one) || !bytes.Equal(rest, two) || cap(first) != len(first) {
		t.Fatalf("split: %v", err)
	}
	for n := range len(one) {
		if _, _, err := Split(one[:n]); !errors.Is(err, ErrTruncated) {
			t.Fatalf("first %d bytes: %v", n, err)
		}
	}
	for name, c := range map[string]struct {
		pos   int
		bytes []byte
		want  error
	}{
		"negative length":           {posLength, []byte{0xff, 0xff, 0xff, 0xff}, ErrMalformed},
		"length below header":       {posLength, []byte{0, 0, 0, 48}, ErrMalformed},
		"length 0":                  {posLength, []byte{0, 0, 0, 0}, ErrMalformed},
		"length above bytes":        {posLength, []byte{0x7f, 0xff, 0xff, 0xff}, ErrTruncated},
		"magic 0":                   {posMagic, []byte{0}, ErrMagic},
		"magic 1":                   {posMagic, []byte{1}, ErrMagic},
		"magic 3":                   {posMagic, []byte{3}, ErrMagic},
		"magic 1 with short length": {posLength, []byte{0, 0, 0, 22, 0, 0, 0, 0, 1}, ErrMagic},
	} {
		b := clone(one)
		copy(b[c.pos:], c.bytes)
		if _, rest, err := Split(b); !errors.Is(err, c.want) || len(rest) != len(b) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
