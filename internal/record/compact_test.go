package record

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// TestCompacted_AClientReadsOverWhatIsGone: franz-go takes fillers, emptied batches and batches with fewer records, alone and together, and
// goes on behind them.
func TestCompacted_AClientReadsOverWhatIsGone(t *testing.T) {
	for _, codec := range allCodecs {
		bu := NewBuilder(codec)
		for i := range 6 {
			bu.Add(testNow+int64(i), fmt.Appendf(nil, "k%d", i), []byte("value"), []Header{{"h", []byte("v")}})
		}
		b := bu.Build()
		b.SetBaseOffset(100)
		b.SetLeaderEpoch(3)
		kept, n, err := Retain(b, 0, func(r *Record) bool { return r.OffsetDelta == 2 || r.OffsetDelta == 4 })
		if err != nil || n != 2 || kept.NextOffset() != 106 || kept.Count() != 2 || kept.MaxTimestamp() != testNow+4 {
			t.Fatalf("%v: %d, %v", codec, n, err)
		}
		producer := bu.Build()
		producer.SetBaseOffset(106)
		producer.SetProducer(7, 1, 40, false)
		emptied := Emptied(producer)
		if emptied.LastSequence() != 45 || emptied.NextOffset() != 112 || emptied.IsFiller() || len(emptied) != HeaderSize {
			t.Fatalf("%v: %x", codec, emptied)
		}
		filler := Filler(112, 112+FillerSpanMax, 3)
		for _, c := range []struct {
			batches [][]byte
			offset  int64
			want    string
			next    kafka.Offset
		}{
			{[][]byte{Filler(0, 100, 3)}, 0, "", 100},
			{[][]byte{Filler(0, 100, 3)}, 57, "", 100},
			{[][]byte{Filler(0, 100, 3), kept}, 0, " 102=k2 104=k4", 106},
			{[][]byte{kept, emptied}, 103, " 104=k4", 112},
			{[][]byte{emptied}, 106, "", 112},
			{[][]byte{kept, emptied, filler}, 100, " 102=k2 104=k4", 112 + FillerSpanMax},
		} {
			rp := kmsg.NewFetchResponseTopicPartition()
			for _, b := range c.batches {
				if err := Batch(b).VerifyCRC(); err != nil {
					t.Fatal(err)
				}
				rp.RecordBatches = append(rp.RecordBatches, b...)
			}
			fp, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Offset: c.offset}, &rp, kgo.DefaultDecompressor(), nil)
			got := ""
			for _, r := range fp.Records {
				got += fmt.Sprintf(" %d=%s", r.Offset, r.Key)
			}
			if fp.Err != nil || got != c.want || kafka.Offset(next) != c.next {
				t.Errorf("%v from %d: %q, next %d, %v; want %q, %d", codec, c.offset, got, next, fp.Err, c.want, c.next)
			}
		}
	}
}

// TestRetain_AllOrNothing: the batch itself, or none.
func TestRetain_AllOrNothing(t *testing.T) {
	bu := NewBuilder(Zstd)
	bu.Add(testNow, []byte("k"), nil, nil)
	b := bu.Build()
	if kept, n, err := Retain(b, 0, func(*Record) bool { return true }); err != nil || n != 1 || &kept[0] != &b[0] {
		t.Errorf("all: %d, %v", n, err)
	}
	if kept, n, err := Retain(b, 0, func(*Record) bool { return false }); err != nil || n != 0 || kept != nil {
		t.Errorf("none: %d, %v", n, err)
	}
	broken := newTestPayload(t, None, 2, []byte{1, 2, 3})
	if _, _, err := Retain(broken, 0, func(*Record) bool { return true }); err == nil {
		t.Error("unreadable records pass")
	}
}
