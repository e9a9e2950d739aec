package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestO12_JSONRoundTrip: what consume --json prints, produce --json reads back byte for byte.
func TestO12_JSONRoundTrip(t *testing.T) {
	at := time.UnixMilli(1767225600123)
	records := map[string]*kgo.Record{
		"nulls":       {Timestamp: at},
		"empties":     {Timestamp: at, Key: []byte{}, Value: []byte{}},
		"tombstone":   {Timestamp: at, Key: []byte("k")},
		"empty value": {Timestamp: at, Key: []byte("k"), Value: []byte{}, Partition: 63},
		"kcat#281": {Timestamp: at, Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{
			{Key: "header1", Value: []byte("header value")}, {Key: "nullheader"},
			{Key: "emptyheader", Value: []byte{}}, {Key: "header1", Value: []byte("duplicateIsOk")},
		}},
		"kcat#298":             {Timestamp: at, Value: []byte("line one\nline: two\r\n\ttab \"quoted\" \\ back")},
		"not UTF-8":            {Timestamp: at, Key: []byte{0xff, 0, 0xfe}, Value: []byte("\xed\xa0\x80"), Headers: []kgo.RecordHeader{{Key: "\xff", Value: []byte{0x80}}}},
		"controls":             {Timestamp: at, Value: []byte("\x00\x01\x1f\x7f\u2028\u2029\ufffd\U0001f30a")},
		"looks like an object": {Timestamp: at, Value: []byte(`{"base64":"AAAA"}`), Key: []byte("null")},
		"empty header name":    {Timestamp: at, Value: []byte("v"), Headers: []kgo.RecordHeader{{}}},
		"before 1970":          {Timestamp: time.UnixMilli(-5), Value: []byte("v")},
	}
	for name, r := range records {
		t.Run(name, func(t *testing.T) {
			line := appendRecordJSON(nil, r)
			if !json.Valid(line) {
				t.Fatalf("not JSON: %s", line)
			}
			got, err := parseRecordJSON(line)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if !sameRecord(r, got) {
				t.Fatalf("wrote %+v\nas %s\nread %+v", r, line, got)
			}
		})
	}
}

func TestJSONInputForms(t *testing.T) {
	const null = "\x00null"
	for _, c := range []struct{ name, line, key, value string }{
		{"only a value", `{"value":"v"}`, null, "v"},
		{"text form", `{"key":{"text":"k"},"value":{"text":""}}`, "k", ""},
		{"json form is compacted", `{"value":{"json": {"a" : [1, 2]}}}`, null, `{"a":[1,2]}`},
		{"json null is the text null", `{"value":{"json":null}}`, null, "null"},
		{"base64 form", `{"value":{"base64":"/wA="}}`, null, "\xff\x00"},
		{"surrogate pair", `{"value":"\ud83c\udf0a"}`, null, "\U0001f30a"},
		{"escaped backslash before u", `{"value":"\\ud83c"}`, null, `\ud83c`},
		{"extra fields of consume", `{"topic":"t","offset":4,"leaderEpoch":1,"timestampType":"append","value":null}`, null, null},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := parseRecordJSON([]byte(c.line))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []struct {
				what, want string
				got        []byte
			}{{"key", c.key, r.Key}, {"value", c.value, r.Value}} {
				if f.want == null && f.got != nil || f.want != null && (f.got == nil || string(f.got) != f.want) {
					t.Errorf("%s: got %q (nil %v), want %q", f.what, f.got, f.got == nil, f.want)
				}
			}
			if r.Partition != partitionByKey {
				t.Errorf("partition %d, want by key", r.Partition)
			}
		})
	}
}

// TestJSONInputRefusals: nothing is guessed, and nothing is replaced silently.
func TestJSONInputRefusals(t *testing.T) {
	for line, why := range map[string]string{
		`{"key":"k"}`:                                `no "value"`,
		`{"valu":"v"}`:                               `unknown field`,
		`{"value":"v"} {"value":"w"}`:                "more than one",
		`{"value":"v"`:                               "not a record",
		`["value"]`:                                  "not a record",
		`{"value":12}`:                               "want a string",
		`{"value":{"text":"a","base64":""}}`:         "exactly one",
		`{"value":{}}`:                               "exactly one",
		`{"value":{"base64":"?"}}`:                   "base64",
		`{"value":"\ud800"}`:                         "half",
		`{"value":"\ud800\n"}`:                       "half",
		`{"value":"\udc00"}`:                         "half",
		"{\"value\":\"\xff\"}":                       "not UTF-8",
		`{"value":"v","headers":[{"value":"x"}]}`:    "name",
		`{"value":"v","headers":[{"name":null}]}`:    "name",
		`{"value":"v","partition":-2}`:               "partition",
		`{"value":"v","timestamp":1767225600000000}`: "1677",
	} {
		if _, err := parseRecordJSON([]byte(line)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: error %v, want one with %q", line, err, why)
		}
	}
}

// FuzzRecordJSON: every record survives being printed and read.
func FuzzRecordJSON(f *testing.F) {
	f.Add([]byte("k"), []byte("v"), "name", []byte("header"), int64(0), int32(0), byte(0))
	f.Add([]byte("\xff"), []byte("\x00\n\""), "\xfe", []byte("\\u"), int64(-1), int32(7), byte(0xff))
	f.Fuzz(func(t *testing.T, key, value []byte, name string, header []byte, ms int64, partition int32, nulls byte) {
		r := &kgo.Record{
			Key: key, Value: value, Partition: max(0, partition), Timestamp: time.UnixMilli(ms % timestampMsMax),
			Headers: []kgo.RecordHeader{{Key: name, Value: header}, {Key: name}},
		}
		for bit, field := range []*[]byte{&r.Key, &r.Value, &r.Headers[0].Value} {
			if nulls>>bit&1 == 1 {
				*field = nil
			} else if *field == nil {
				*field = []byte{}
			}
		}
		line := appendRecordJSON(nil, r)
		got, err := parseRecordJSON(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if !sameRecord(r, got) {
			t.Fatalf("wrote %+v\nas %s\nread %+v", r, line, got)
		}
	})
}

// FuzzParseRecordJSON: any line is either refused or reads the same again after being printed.
func FuzzParseRecordJSON(f *testing.F) {
	f.Add([]byte(`{"key":null,"value":{"base64":"AA=="},"headers":[{"name":"a","value":"b"}],"timestamp":1,"partition":2}`))
	f.Add([]byte(`{"value":"\ud83c\udf0a"}`))
	f.Add([]byte(`{"value":{"json":[1, {"a":null}]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseRecordJSON(line)
		if err != nil {
			return
		}
		printed := appendRecordJSON(nil, r)
		again, err := parseRecordJSON(printed)
		if r.Timestamp.IsZero() { // left out: printing puts the zero time, which is not a time that can be sent
			return
		}
		if err != nil || !sameRecord(r, again) {
			t.Fatalf("%s\nprinted as %s\nreads as %+v, %v", line, printed, again, err)
		}
	})
}
