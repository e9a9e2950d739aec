package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestFormatPrints(t *testing.T) {
	r := &kgo.Record{
		Topic: "orders", Partition: 3, Offset: 81, LeaderEpoch: 2, Key: []byte("k1"), Value: []byte("v\n1"),
		Timestamp: time.UnixMilli(1767225600123), Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b"}},
	}
	for layout, want := range map[string]string{
		`%v\n`:               "v\n1\n",
		`%t %p %o %e %d`:     "orders 3 81 2 1767225600123",
		`%T,%K,%V,%H`:        "6,2,3,2",
		`%k{hex}|%v{base64}`: "6b31|dgox",
		`%h{%k=%v;}`:         "a=1;b=;",
		`\t\n\\\x41\r`:       "\t\n\\A\r",
		`%%%{%}`:             "%{}",
		`%d{go#RFC3339#}`:    "2026-01-01T00:00:00Z",
		`%d{strftime[%F]}`:   "2026-01-01",
		`%o{big64}`:          "\x00\x00\x00\x00\x00\x00\x00\x51",
		`%[ %| %]`:           "5 90 99",
		`%i`:                 "1",
		"größe %v{hex}":      "größe 760a31",
	} {
		f, err := newFormatter(layout)
		if err != nil {
			t.Errorf("%q: %v", layout, err)
			continue
		}
		p := &kgo.FetchPartition{LogStartOffset: 5, LastStableOffset: 90, HighWatermark: 99}
		if got := string(f.AppendPartitionRecord(nil, p, r)); got != want {
			t.Errorf("%q prints %q, want %q", layout, got, want)
		}
	}
}

func TestFormatRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, layout := range []string{`%q`, `%v{rot13}`, `%`, `%h`, `%V{hex`, `\x4`, `%h{%o}`} {
		_, err := newFormatter(layout)
		if code := exitCode(err, true); code != 2 {
			t.Errorf("%q: exit code %d (%v), want 2", layout, code, err)
		}
	}
}

// TestFormatIsSymmetric: produce reads with a format what consume printed with it.
func TestFormatIsSymmetric(t *testing.T) {
	records := []*kgo.Record{
		{Partition: 1, Offset: 7, LeaderEpoch: 1, Key: []byte("k"), Value: []byte("value one"), Timestamp: time.UnixMilli(1767225600123)},
		{Partition: 0, Offset: 8, Key: []byte{}, Value: []byte{}, Timestamp: time.UnixMilli(0)},
		{Partition: 2, Offset: 9, Key: []byte("\x00\xff"), Value: []byte("a\nb"), Timestamp: time.UnixMilli(5),
			Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("\n")}, {Key: "h", Value: []byte{}}}},
	}
	for _, layout := range []string{
		`%K %k%V %v%p %d %H %h{%K %k%V %v}`,
		`%K{big32}%k%V{big32}%v%p{big16}%d{big64}%H{big16}%h{%K{big16}%k%V{big16}%v}`,
		`%V %v{hex}|%K %k{base64}|%p %d %H %h{%K %k{hex} %V %v{base64} }\n`,
		`%p %d %K{hex} %k{hex} %V{hex} %v{hex} %H{hex} %h{%K{byte}%k%V{byte}%v}\n`,
	} {
		f, err := newFormatter(layout)
		if err != nil {
			t.Fatal(err)
		}
		var text []byte
		for _, r := range records {
			text = f.AppendRecord(text, r)
		}
		in, err := newFormatReader(bytes.NewReader(text), layout)
		if err != nil {
			t.Fatalf("%q: %v", layout, err)
		}
		for i, want := range records {
			got, err := in.next()
			if err != nil {
				t.Fatalf("%q, record %d of %q: %v", layout, i, text, err)
			}
			if !sameRecord(want, got) {
				t.Errorf("%q, record %d: printed %+v, read %+v", layout, i, want, got)
			}
		}
		if _, err := in.next(); err != io.EOF {
			t.Errorf("%q: after the last record: %v, want EOF", layout, err)
		}
	}
}

func TestFormatReadsLines(t *testing.T) {
	for _, c := range []struct{ layout, input, want string }{
		{`%v\n`, "a\nb\n", `null=a null=b`},
		{`%v\n`, "a\n\nlast", `null=a null= null=last`},
		{`%k %v\n`, "k1 v1\nk2 v 2\n", `k1=v1 k2=v 2`},
		{`%k:%v\n`, ":v\n", `=v`},
		{`%v{hex}\n`, "6162\n", `null=ab`},
	} {
		in, err := newFormatReader(strings.NewReader(c.input), c.layout)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for {
			r, err := in.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%q: %v", c.input, err)
			}
			key := string(r.Key)
			if r.Key == nil {
				key = "null"
			}
			if r.Value == nil {
				t.Errorf("%q: a value that the format mentions is null", c.input)
			}
			got = append(got, key+"="+string(r.Value))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%q by %q: %q, want %q", c.input, c.layout, s, c.want)
		}
	}
}

func TestReadLayout(t *testing.T) {
	for in, want := range map[string]string{
		`%V %v`:              `%V{decoded} %v`,
		`%V{big32}%v{hex}`:   `%V{big32;decoded}%v{hex}`,
		`%V{3}%v`:            `%V{3}%v`,
		`%V{hex;encoded} %v`: `%V{hex;encoded} %v`,
		`%%V \%V`:            `%%V \%V`,
		`%h{%K %k}`:          `%h{%K{decoded} %k}`,
		`%V %v{json}`:        `%V %v{json}`,
		`%`:                  `%`,
	} {
		if got := readLayout(in); got != want {
			t.Errorf("readLayout(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzFormat: no format and no input panics or reads for ever, and a sized format reads back what it printed.
func FuzzFormat(f *testing.F) {
	f.Add(`%v\n`, []byte("a\nb"))
	f.Add(`%K %k%V{hex} %v`, []byte("1 a2 bc"))
	f.Add(`%H %h{%k=%v,}\x00`, []byte("1 a=b,\x00"))
	f.Add(`%d{go#RFC3339#}%p{big32}`, []byte{0})
	f.Fuzz(func(t *testing.T, layout string, input []byte) {
		if out, err := newFormatter(layout); err == nil {
			out.AppendPartitionRecord(nil, &kgo.FetchPartition{}, &kgo.Record{Topic: "t", Key: input, Value: input})
		}
		if in, err := newFormatReader(bytes.NewReader(input), layout); err == nil {
			for range len(input) + 1 {
				if _, err := in.next(); err != nil {
					return
				}
			}
		}
		const sized = `%K{big32}%k{hex}%V{big32}%v{base64}`
		out, err := newFormatter(sized)
		if err != nil {
			t.Fatal(err)
		}
		want := &kgo.Record{Key: append([]byte{}, layout...), Value: append([]byte{}, input...)}
		in, err := newFormatReader(bytes.NewReader(out.AppendRecord(nil, want)), sized)
		if err != nil {
			t.Fatal(err)
		}
		got, err := in.next()
		if err != nil || !bytes.Equal(got.Key, want.Key) || !bytes.Equal(got.Value, want.Value) {
			t.Fatalf("printed %q %q, read %+v, %v", want.Key, want.Value, got, err)
		}
	})
}
