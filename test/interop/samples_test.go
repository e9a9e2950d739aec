package interop

import (
	"bytes"
	"fmt"
	"testing"
)

// header is one record header; a nil value is null, which is not the empty one.
type header struct {
	key   string
	value []byte
}

// sample is a record whose every field a client must get back as it was sent.
type sample struct {
	name       string
	key, value []byte
	headers    []header
}

// samples are the shapes that implementations confuse: null against empty, repeated headers, bytes that are not text.
func samples() []sample {
	return []sample{
		{"plain", []byte("k"), []byte("v"), nil},
		{"null key", nil, []byte("v"), nil},
		{"empty key", []byte{}, []byte("v"), nil},
		{"null value", []byte("k"), nil, nil},
		{"empty value", []byte("k"), []byte{}, nil},
		{"headers", []byte("k"), []byte("v"), []header{{"a", []byte("1")}, {"null", nil}, {"empty", []byte{}}, {"a", []byte("2")}}},
		{"bytes", []byte{0, 255, 10}, []byte{0xff, 0xfe, 0, '\n', ':'}, []header{{"b", []byte{0, 1, 2}}}},
		{"large", []byte("k"), bytes.Repeat([]byte("0123456789abcdef"), 4096), nil},
	}
}

func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// compare fails the test with every difference between what was sent and what was read.
func compare(t *testing.T, want, got sample, nullHeadersKept bool) {
	t.Helper()
	if !same(want.key, got.key) || !same(want.value, got.value) {
		t.Errorf("%s: key %q value %.40q, sent key %q value %.40q", want.name, got.key, got.value, want.key, want.value)
	}
	if len(want.headers) != len(got.headers) {
		t.Errorf("%s: %d headers, sent %d", want.name, len(got.headers), len(want.headers))
		return
	}
	for i, w := range want.headers {
		g := got.headers[i]
		if w.key != g.key || !bytes.Equal(w.value, g.value) || (nullHeadersKept && !same(w.value, g.value)) {
			t.Errorf("%s: header %d is %s=%q, sent %s=%q", want.name, i, g.key, fmt.Sprint(g.value), w.key, fmt.Sprint(w.value))
		}
	}
}
