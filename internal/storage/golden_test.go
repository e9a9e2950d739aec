package storage

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew; a change is a change of format")

func goldenIndex() []byte {
	x := newIndex(4096)
	x.add(100, 0, 1_700_000_000_000, 1_699_999_999_000)
	x.add(110, 2000, 1_700_000_000_500, 1_699_999_999_900) // inside the interval
	x.add(140, 5000, 1_700_000_001_000, 1_699_999_999_500)
	return encodeIndex(x, 100, 160, 7000)
}

func goldenProducers() []byte {
	p := newProducers()
	p.note(BatchHeader{Base: 10, End: 13, ProducerID: 1, ProducerEpoch: 2, BaseSequence: 5, MaxTimestamp: 7}, 1_700_000_000_000)
	p.note(BatchHeader{Base: 13, End: 14, ProducerID: 1, ProducerEpoch: 2, BaseSequence: 8, MaxTimestamp: 8, Attributes: attrAppendTime}, 1_700_000_000_001)
	p.note(BatchHeader{Base: 14, End: 15, ProducerID: 900, ProducerEpoch: 0, BaseSequence: 2147483647}, 1_700_000_000_002)
	p.note(BatchHeader{Base: 15, End: 16, ProducerID: 901, ProducerEpoch: 3, BaseSequence: -1, Attributes: attrControl}, 1_700_000_000_003)
	return encodeProducers(&p, 16)
}

func goldenEpochs() []byte { return encodeEpochs(epochs{{0, 0}, {3, 120}, {4, 500}}, 777) }

func goldenSyncPoint() []byte {
	return encodeSyncPoints(syncPoints{startNumber: 9, points: map[kafka.TopicPartition]point{
		testTP:                                  {start: 10, hw: 18, end: 20, segment: 15, pos: 4711, firstBase: 5, before: 999, firstAppendMs: 1_700_000_000_000, lastAppendMs: 1_700_000_000_500},
		{Topic: kafka.TopicID{9}, Partition: 0}: {policy: Replicated, damaged: true},
		kafka.MetadataPartition:                 {start: 1, hw: 1, end: 1, segment: 1, firstBase: 1},
	}})
}

func goldenSegmentMeta() []byte {
	return encodeSegmentMeta(segmentMeta{base: 100, end: 160, size: 7000, times: segmentTimes{1_700_000_000_000, 1_700_000_001_000, 1_699_999_999_900}})
}

func goldenClean() []byte {
	return encodeClean(cleanMarker{brokerEpoch: 42, startNumber: 9, bootID: "b3a1f2d4-0000-4000-8000-000000000001"})
}

func goldenStart() []byte {
	b := appendStartSlot(nil, startState{sequence: 8, number: 9, bootID: "b3a1f2d4-0000-4000-8000-000000000001"})
	b = append(b, make([]byte, startSlotStride-len(b))...)
	b = appendStartSlot(b, startState{sequence: 7, number: 9, bootID: ""})
	return append(b, make([]byte, startFileBytes-len(b))...)
}

func goldenIdentity() []byte {
	return encodeIdentity(Identity{ClusterID: "AAAAAAAAAAAAAAAAAAAAAQ", NodeID: 3, DirectoryID: kafka.DirectoryID{15: 7}, FormatVersion: 1})
}

func goldenDamage() []byte {
	return encodeDamage(&CorruptError{File: "/x/00000000000000000100.log", Pos: 4711, Why: "checksum 00000000, want 11111111"})
}

var goldenCleanState = cleanState{upTo: 500, tombstones: 3, purged: 120, marks: []cleanMark{{200, 1_700_000_000_000}, {500, 1_700_000_100_000}}}

func goldenCompacting() []byte {
	return encodeCompacting(segmentMeta{base: 100, end: 160, size: 700, times: segmentTimes{1_700_000_000_000, 1_700_000_001_000, 1_699_999_999_900}})
}

// goldenCompactedSegment is what compaction leaves: a filler, a batch that its producer may repeat, one with a record less.
func goldenCompactedSegment() []byte {
	var out []byte
	out = append(out, record.Filler(0, 100, 3)...)
	b, _, _ := record.Split(goldenSegment())
	out = append(out, record.Emptied(b)...)
	bu := record.NewBuilder(record.None)
	bu.Add(1_700_000_000_000, []byte("gone"), []byte("a"), nil)
	bu.Add(1_700_000_000_005, []byte("stays"), []byte("b"), nil)
	bu.Add(1_700_000_000_009, []byte("gone"), nil, nil)
	two := bu.Build()
	two.SetBaseOffset(101)
	two.SetLeaderEpoch(3)
	kept, _, err := record.Retain(two, 0, func(r *record.Record) bool { return string(r.Key) == "stays" })
	if err != nil {
		panic(err)
	}
	return append(out, kept...)
}

func goldenSegment() []byte {
	var out []byte
	for i := range 2 {
		bu := record.NewBuilder(record.None)
		bu.Add(1_700_000_000_000+int64(i), []byte("key"), fmt.Appendf(nil, "value %d", i), []record.Header{{Key: "h", Value: []byte("v")}})
		b := bu.Build()
		b.SetProducer(1, 2, int32(i), false)
		b.SetBaseOffset(100 + kafka.Offset(i))
		b.SetLeaderEpoch(3)
		out = append(out, b...)
	}
	return out
}

// TestGolden_EveryFormat: the bytes of every file are those of the golden files, and read back. A difference is a change of format:
// it needs a new version and a reader for the old one.
func TestGolden_EveryFormat(t *testing.T) {
	for name, content := range map[string][]byte{
		"segment.log": goldenSegment(), "segment.meta": goldenSegmentMeta(), "segment.index": goldenIndex(), "snapshot.producers": goldenProducers(),
		"epochs": goldenEpochs(), "sync-point": goldenSyncPoint(), "start": goldenStart(), "clean-shutdown": goldenClean(),
		"meta.json": goldenIdentity(), "damaged": goldenDamage(), "resetting": encodeResetting(77),
		"compacted": encodeCleanState(goldenCleanState), "compacting": goldenCompacting(), "compacted.log": goldenCompactedSegment(),
	} {
		path := filepath.Join("testdata", name)
		if *rewrite {
			if err := os.WriteFile(path, content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(content, want) {
			t.Errorf("%s: wrote\n%x\nwant\n%x", name, content, want)
		}
	}
}

// TestGolden_FilesReadBack: what the golden files say is what was put in.
func TestGolden_FilesReadBack(t *testing.T) {
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if p, at, err := decodeProducers(read("snapshot.producers")); err != nil || at != 16 || len(p.byID) != 3 || p.byID[1].count != 2 || p.byID[1].batches[1].TimestampMs != 8 {
		t.Errorf("producers: %+v at %d, %v", p, at, err)
	}
	if s, err := decodeSyncPoints(read("sync-point")); err != nil || s.startNumber != 9 || s.points[testTP].pos != 4711 || len(s.points) != 3 {
		t.Errorf("sync-point: %+v, %v", s, err)
	}
	if s, slot, ok := decodeStart(read("start")); !ok || slot != 0 || s.number != 9 || s.sequence != 8 {
		t.Errorf("start: %+v in slot %d, %t", s, slot, ok)
	}
	if x, ext, err := decodeIndex(read("segment.index")); err != nil || len(x.entries) != 2 || ext.size != 7000 || x.entries[0].maxTimestamp != 1_699_999_999_900 {
		t.Errorf("index: %+v, %+v, %v", x, ext, err)
	}
	if c, err := decodeCleanState(read("compacted")); err != nil || fmt.Sprint(c) != fmt.Sprint(goldenCleanState) {
		t.Errorf("compaction state: %+v, %v", c, err)
	}
	if bs := splitAll(read("compacted.log")); len(bs) != 3 || !bs[0].IsFiller() || bs[1].IsFiller() || bs[1].LastSequence() != 0 || bs[2].NextOffset() != 104 ||
		len(recordsOf(bs)) != 1 || recordsOf(bs)[0].ts != 1_700_000_000_005 {
		t.Errorf("compacted segment: %+v", recordsOf(bs))
	}
	if id, err := decodeIdentity(read("meta.json")); err != nil || id.NodeID != 3 {
		t.Errorf("identity: %+v, %v", id, err)
	}
}
