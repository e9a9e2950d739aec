package steps

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// Header is one record header; a nil value is null, which is not the empty one.
type Header struct {
	Key   string
	Value []byte
}

// Record is one record as a client sends or reads it; nil is null.
type Record struct {
	Partition  int32
	Offset     int64
	Key, Value []byte
	Headers    []Header
	// At is the record's timestamp; zero leaves it to the client.
	At time.Time
}

// Samples are the shapes that implementations confuse: null against empty, repeated headers, bytes that are not text.
func Samples() []Record {
	return []Record{
		{Key: []byte("k"), Value: []byte("v")},
		{Key: nil, Value: []byte("v")},
		{Key: []byte{}, Value: []byte("v")},
		{Key: []byte("k"), Value: nil},
		{Key: []byte("k"), Value: []byte{}},
		{Key: []byte("k"), Value: []byte("v"), Headers: []Header{{"a", []byte("1")}, {"null", nil}, {"empty", []byte{}}, {"a", []byte("2")}}},
		{Key: []byte{0, 255, 10}, Value: []byte{0xff, 0xfe, 0, '\n', ':'}, Headers: []Header{{"b", []byte{1, 2, 255}}}},
		{Key: []byte("k"), Value: bytes.Repeat([]byte("0123456789abcdef"), 4096)},
	}
}

// Lenience says which differences are the client's own.
type Lenience struct {
	// Keys, Values and HeaderValues: null and empty count as the same.
	Keys, Values, HeaderValues bool
	// Repeats: of headers with one key, any may be missing, and their order is free.
	Repeats bool
}

// Compare returns the first difference between a record as sent and as read, or nil.
func Compare(want, got Record, l Lenience) error {
	if !same(want.Key, got.Key, l.Keys) {
		return fmt.Errorf("key %s, sent %s", show(got.Key), show(want.Key))
	}
	if !same(want.Value, got.Value, l.Values) {
		return fmt.Errorf("value %s, sent %s", show(got.Value), show(want.Value))
	}
	if l.Repeats {
		return compareKeys(want.Headers, got.Headers, l)
	}
	if len(want.Headers) != len(got.Headers) {
		return fmt.Errorf("%d headers, sent %d", len(got.Headers), len(want.Headers))
	}
	for i, w := range want.Headers {
		if g := got.Headers[i]; w.Key != g.Key || !same(w.Value, g.Value, l.HeaderValues) {
			return fmt.Errorf("header %d is %s=%s, sent %s=%s", i, g.Key, show(g.Value), w.Key, show(w.Value))
		}
	}
	return nil
}

// compareKeys checks that every header key that was sent is there, and nothing that was not sent.
func compareKeys(want, got []Header, l Lenience) error {
	for _, w := range want {
		if !slices.ContainsFunc(got, func(g Header) bool { return g.Key == w.Key }) {
			return fmt.Errorf("header %s is missing", w.Key)
		}
	}
	for _, g := range got {
		if !slices.ContainsFunc(want, func(w Header) bool { return g.Key == w.Key && same(w.Value, g.Value, l.HeaderValues) }) {
			return fmt.Errorf("header %s=%s was not sent", g.Key, show(g.Value))
		}
	}
	return nil
}

func same(a, b []byte, nullIsEmpty bool) bool {
	return bytes.Equal(a, b) && (nullIsEmpty || (a == nil) == (b == nil))
}

func show(b []byte) string {
	if b == nil {
		return "null"
	}
	return fmt.Sprintf("%.40q", b)
}
