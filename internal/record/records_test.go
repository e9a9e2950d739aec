package record

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

type added struct {
	ts         int64
	key, value []byte
	headers    []Header
}

func nullableBytes(t *rapid.T, name string) []byte {
	if rapid.Bool().Draw(t, name+" null") {
		return nil
	}
	return append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, name)...)
}

func drawRecords(t *rapid.T) []added {
	n := rapid.IntRange(1, 40).Draw(t, "records")
	list := make([]added, n)
	for i := range list {
		a := added{ts: rapid.Int64Range(-1, 1<<42).Draw(t, "ts"), key: nullableBytes(t, "key"), value: nullableBytes(t, "value")}
		for range rapid.IntRange(0, 3).Draw(t, "headers") {
			a.headers = append(a.headers, Header{rapid.StringN(0, 10, 40).Draw(t, "hk"), nullableBytes(t, "hv")})
		}
		list[i] = a
	}
	return list
}

func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func checkRecords(t *rapid.T, b Batch, want []added) {
	i := 0
	for r, err := range b.Records(0) {
		if err != nil {
			t.Fatal(err)
		}
		w := want[i]
		if int(r.OffsetDelta) != i || b.Timestamp(&r) != w.ts || !sameBytes(r.Key, w.key) || !sameBytes(r.Value, w.value) ||
			len(r.Headers) != len(w.headers) {
			t.Fatalf("record %d: %+v, want %+v", i, r, w)
		}
		for j, h := range r.Headers {
			if h.Key != w.headers[j].Key || !sameBytes(h.Value, w.headers[j].Value) {
				t.Fatalf("record %d header %d: %+v, want %+v", i, j, h, w.headers[j])
			}
		}
		i++
	}
	if i != len(want) {
		t.Fatalf("%d records, want %d", i, len(want))
	}
}

// What the builder writes is valid and is read back the same, whatever codecs it goes through.
func TestBuildValidateRecompressRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawRecords(t)
		codec := rapid.SampledFrom(allCodecs).Draw(t, "codec")
		bu := NewBuilder(codec)
		maxTS := int64(-1)
		for _, w := range want {
			bu.Add(w.ts, w.key, w.value, w.headers)
			maxTS = max(maxTS, w.ts)
		}
		b := bu.Build()
		if codec == None && len(b) != bu.Size() {
			t.Fatalf("size %d, batch %d", bu.Size(), len(b))
		}
		if b.MaxTimestamp() != maxTS || int(b.Count()) != len(want) || b.Codec() != codec {
			t.Fatal("header is wrong")
		}
		if err := validate(b, Rules{ZstdAllowed: true}); err != nil {
			t.Fatal(err)
		}
		checkRecords(t, b, want)
		for _, to := range allCodecs {
			nb, err := Recompress(b, to, 0)
			if err != nil || nb.Codec() != to || nb.MaxTimestamp() != maxTS {
				t.Fatalf("to %v: %v", to, err)
			}
			if err := validate(nb, Rules{ZstdAllowed: true}); err != nil {
				t.Fatal(err)
			}
			checkRecords(t, nb, want)
		}
	})
}

func TestFirstAt(t *testing.T) {
	for _, codec := range allCodecs {
		bu := NewBuilder(codec)
		for _, ts := range []int64{100, 50, 300, 200} {
			bu.Add(ts, nil, nil, nil)
		}
		b := bu.Build()
		for _, c := range []struct {
			ts    int64
			delta int32
			at    int64
			found bool
		}{{0, 0, 100, true}, {100, 0, 100, true}, {101, 2, 300, true}, {300, 2, 300, true}, {301, 0, 0, false}} {
			delta, at, found, err := b.FirstAt(c.ts, 0)
			if err != nil || delta != c.delta || at != c.at || found != c.found {
				t.Errorf("%v at %d: %d %d %v %v", codec, c.ts, delta, at, found, err)
			}
		}
		b.SetAppendTime(1000)
		if delta, at, found, err := b.FirstAt(500, 0); delta != 0 || at != 1000 || !found || err != nil {
			t.Errorf("%v with append time: %d %d %v %v", codec, delta, at, found, err)
		}
	}
}

func TestRecordsStopsAtTheFirstFault(t *testing.T) {
	b := newTestPayload(t, None, 3, bytes.Join([][]byte{goodRecord(0), {9}, goodRecord(2)}, nil))
	n := 0
	var last error
	for _, err := range b.Records(0) {
		n++
		last = err
	}
	if n != 2 || !errors.Is(last, ErrRecord) {
		t.Errorf("%d steps, %v", n, last)
	}
}

func TestBuilderIsReusable(t *testing.T) {
	bu := NewBuilder(None)
	if bu.Build() != nil {
		t.Error("a batch without records")
	}
	bu.Add(5, []byte("a"), nil, nil)
	one := bu.Build()
	bu.Reset()
	bu.Add(5, []byte("a"), nil, nil)
	if bu.Count() != 1 || !bytes.Equal(one, bu.Build()) {
		t.Error("the second batch differs")
	}
	prefix := []byte("prefix")
	if got := bu.AppendTo(prefix); !bytes.Equal(got, one) {
		t.Error("appended batch differs")
	}
}
