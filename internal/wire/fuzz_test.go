package wire

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func FuzzReadFrame(f *testing.F) {
	f.Add(frame([]byte("body")))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		budget := &testBudget{limit: 1 << 20}
		got, err := ReadFrame(bytes.NewReader(b), nil, 1<<20, budget)
		if (err == nil) != (got != nil) || budget.held != len(got) {
			t.Errorf("%v, %d bytes, %d held", err, len(got), budget.held)
		}
	})
}

func FuzzParseRequestHeader(f *testing.F) {
	fm := kmsg.NewRequestFormatter(kmsg.FormatterClientID("fuzz"))
	for _, a := range APIs() {
		req := kmsg.RequestForKey(a.Key)
		req.SetVersion(a.Max)
		f.Add(fm.AppendRequest(nil, req, 1)[frameSizeBytes:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, body, err := ParseRequestHeader(b)
		if err != nil && !isParseError(err) {
			t.Error(err)
		}
		if len(body) > len(b) {
			t.Error("a body longer than the frame")
		}
		if err == nil {
			if _, err := NewRequest(h.Key, h.Version); err != nil {
				t.Error(err)
			}
		}
		if err == ErrVersionTooOld {
			if _, err := RefuseOld(h, body); err != nil && !isParseError(err) {
				t.Error(err)
			}
		}
	})
}

// FuzzDecodeRequest decodes a body as each key; key and version are folded into the table.
func FuzzDecodeRequest(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	rows := APIs()
	for i, a := range rows {
		for v := int16(0); v <= a.Max; v++ {
			f.Add(byte(i), byte(v), randomRequest(rng, a.Key, v).AppendTo(nil))
		}
	}
	f.Fuzz(func(t *testing.T, row, version byte, body []byte) {
		a := rows[int(row)%len(rows)]
		req := kmsg.RequestForKey(a.Key)
		req.SetVersion(int16(version) % (a.Max + 1))
		err := DecodeRequest(req, body)
		if err != nil {
			if !isParseError(err) {
				t.Error(err)
			}
			return
		}
		// What was accepted is a request: encoded again it decodes again, to the same bytes.
		once := req.AppendTo(nil)
		if err := DecodeRequest(req, once); err != nil {
			t.Fatalf("%s: %v", a.Name, err)
		}
		if !bytes.Equal(req.AppendTo(nil), once) {
			t.Errorf("%s: encoding is not stable", a.Name)
		}
	})
}

func FuzzOwnCodec(f *testing.F) {
	f.Add(newTestSample().encode())
	f.Add([]byte{0, 7, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeSample(b)
		if err != nil {
			if !isParseError(err) {
				t.Error(err)
			}
			return
		}
		if !bytes.Equal(s.encode(), b) {
			t.Error("two encodings of one message")
		}
	})
}
