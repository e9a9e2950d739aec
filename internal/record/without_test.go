package record

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestEachWith: the last header of the name counts, null and empty values are none, and no other header is taken for it.
func TestEachWith(t *testing.T) {
	for _, codec := range allCodecs {
		bu := NewBuilder(codec)
		id := func(v string) Header { return Header{"record-id", []byte(v)} }
		bu.Add(testNow, []byte("k0"), []byte("v0"), []Header{{"a", []byte("x")}, id("one"), id("two"), {"record-i", []byte("y")}})
		bu.Add(testNow, nil, []byte("v1"), []Header{{"record-id2", []byte("x")}})
		bu.Add(testNow, nil, []byte("v2"), []Header{{"record-id", nil}})
		bu.Add(testNow, nil, []byte("v3"), []Header{{"record-id", []byte{}}})
		bu.Add(testNow, []byte("k4"), nil, []Header{id("four")})
		bu.Add(testNow, nil, nil, nil)
		var got []string
		err := bu.Build().EachWith("record-id", 0, func(r *Record, value []byte) {
			got = append(got, fmt.Sprintf("%d %s %s %s %v", r.OffsetDelta, value, r.Key, r.Value, r.Value == nil))
		})
		if want := []string{"0 two k0 v0 false", "4 four k4  true"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: %q, %v; want %q", codec, got, err, want)
		}
	}
	broken := newTestPayload(t, None, 2, []byte{1, 2, 3})
	if err := broken.EachWith("h", 0, func(*Record, []byte) {}); err == nil {
		t.Error("unreadable records pass")
	}
}

// TestWithout: what stays keeps its bytes and its offset, the batch its place and its producer, whatever the codec.
func TestWithout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawRecords(t)
		bu := NewBuilder(rapid.SampledFrom(allCodecs).Draw(t, "codec"))
		var cut []int32
		want := map[int32]added{}
		latest := int64(-1)
		for i, a := range list {
			bu.Add(a.ts, a.key, a.value, a.headers)
			if rapid.Bool().Draw(t, "cut") {
				cut = append(cut, int32(i))
				continue
			}
			want[int32(i)] = a
			latest = max(latest, a.ts)
		}
		b := bu.Build()
		b.SetProducer(7, 3, 41, false)
		b.SetBaseOffset(1000)
		b.SetLeaderEpoch(9)
		before := clone(b)
		got, err := Without(b, cut, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(b, before) {
			t.Fatal("the batch was changed in place")
		}
		if err := got.VerifyCRC(); err != nil || got.Size() != len(got) || int(got.Count()) != len(want) || got.MaxTimestamp() != latest {
			t.Fatalf("%v: size %d of %d, %d records of %d, max timestamp %d of %d", err, got.Size(), len(got), got.Count(), len(want), got.MaxTimestamp(), latest)
		}
		if got.BaseOffset() != 1000 || got.LastOffset() != b.LastOffset() || got.LeaderEpoch() != 9 || got.ProducerID() != 7 ||
			got.ProducerEpoch() != 3 || got.BaseSequence() != 41 || got.LastSequence() != b.LastSequence() {
			t.Fatal("the batch lost its place")
		}
		for r, err := range got.Records(0) {
			w, ok := want[r.OffsetDelta]
			if err != nil || !ok || got.Timestamp(&r) != w.ts || !sameBytes(r.Key, w.key) || !sameBytes(r.Value, w.value) || len(r.Headers) != len(w.headers) {
				t.Fatalf("%+v (%v), want %+v", r, err, w)
			}
			delete(want, r.OffsetDelta)
		}
		if len(want) != 0 {
			t.Fatalf("missing: %v", want)
		}
	})
}

// TestWithout_EmptyKeepsTheProducer: of a batch without records the header stays, without codec; the leader's stamp too, where there is one.
func TestWithout_EmptyKeepsTheProducer(t *testing.T) {
	for _, codec := range allCodecs {
		b := newTestBatch(t, codec, 3)
		b.SetProducer(7, 3, 41, false)
		b.SetAppendTime(testNow)
		got, err := Without(b, []int32{0, 1, 2}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != HeaderSize || got.Count() != 0 || got.LastOffsetDelta() != 2 || got.LastSequence() != 43 || got.Codec() != None ||
			got.TimestampType() != LogAppendTime || got.MaxTimestamp() != testNow || got.BaseTimestamp() != -1 || got.VerifyCRC() != nil {
			t.Errorf("%v: %x", codec, []byte(got))
		}
		for range got.Records(0) {
			t.Error("a record in an empty batch")
		}
	}
}

func BenchmarkEachWith(b *testing.B) {
	for _, codec := range []Codec{None, LZ4, Zstd} {
		b.Run(codec.String(), func(b *testing.B) {
			bu := NewBuilder(codec)
			for i := range 1000 {
				bu.Add(testNow, nil, make([]byte, 1024), []Header{{"record-id", fmt.Appendf(nil, "order-%d/%d", i, i)}})
			}
			batch, n := bu.Build(), 0
			b.ReportAllocs()
			for b.Loop() {
				if err := batch.EachWith("record-id", 0, func(*Record, []byte) { n++ }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
