package steps

import (
	"slices"
	"testing"
)

// TestCompare_SeesEveryDifference: each field of a sample changed alone is reported, and is forgiven only by its own lenience.
func TestCompare_SeesEveryDifference(t *testing.T) {
	base := Record{Key: []byte{}, Value: nil, Headers: []Header{{"a", []byte("1")}, {"b", nil}, {"a", []byte("2")}}}
	for _, c := range []struct {
		name    string
		change  func(*Record)
		forgive Lenience
		never   bool
	}{
		{"null for an empty key", func(r *Record) { r.Key = nil }, Lenience{Keys: true}, false},
		{"another key", func(r *Record) { r.Key = []byte("x") }, Lenience{Keys: true}, true},
		{"empty for a null value", func(r *Record) { r.Value = []byte{} }, Lenience{Values: true}, false},
		{"another value", func(r *Record) { r.Value = []byte("x") }, Lenience{Values: true}, true},
		{"empty for a null header", func(r *Record) { r.Headers[1].Value = []byte{} }, Lenience{HeaderValues: true}, false},
		{"another header value", func(r *Record) { r.Headers[1].Value = []byte("x") }, Lenience{HeaderValues: true}, true},
		{"one of a repeated header", func(r *Record) { r.Headers = r.Headers[:2] }, Lenience{Repeats: true}, false},
		{"other order", func(r *Record) { r.Headers[0], r.Headers[2] = r.Headers[2], r.Headers[0] }, Lenience{Repeats: true}, false},
		{"another value of a repeated header", func(r *Record) { r.Headers[2].Value = []byte("x") }, Lenience{Repeats: true}, true},
		{"a header lost", func(r *Record) { r.Headers = r.Headers[:1] }, Lenience{Repeats: true}, true},
	} {
		got := base
		got.Headers = slices.Clone(base.Headers)
		c.change(&got)
		if Compare(base, got, Lenience{}) == nil {
			t.Errorf("%s: not seen", c.name)
		}
		if err := Compare(base, got, c.forgive); (err != nil) != c.never {
			t.Errorf("%s: with its lenience: %v", c.name, err)
		}
	}
	if err := Compare(base, base, Lenience{}); err != nil {
		t.Error(err)
	}
}

// TestProgress_LossAndRepeats: a hole is an error; a step back is one below the commit only.
func TestProgress_LossAndRepeats(t *testing.T) {
	at := func(offsets ...int64) (rs []Record) {
		for _, o := range offsets {
			rs = append(rs, Record{Offset: o, Value: []byte{byte('0' + o)}})
		}
		return rs
	}
	for _, c := range []struct {
		name       string
		offsets    []int64
		repeatFrom int64
		ok         bool
	}{
		{"in order", []int64{3, 4, 5}, noRepeat, true},
		{"hole", []int64{3, 5}, noRepeat, false},
		{"repeat", []int64{3, 4, 3}, noRepeat, false},
		{"repeat after the commit", []int64{3, 4, 3, 4, 5}, 3, true},
		{"repeat below the commit", []int64{3, 4, 3}, 4, false},
	} {
		p := newProgress()
		if err := p.add(at(c.offsets...), c.repeatFrom); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
