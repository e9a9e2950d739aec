package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestVersionTableAgreesWithKmsg(t *testing.T) {
	last := int16(-1)
	for _, a := range APIs() {
		name := strings.Replace(kmsg.NameForKey(a.Key), "PartitionAssignments", "PartitionReassignments", 1) // kmsg's own name for key 45
		if a.Key <= last || !strings.EqualFold(a.Name, name) || a.Min > a.Max || a.AdvertisedMin > a.Min {
			t.Errorf("row %+v", a)
		}
		last = a.Key
		req := kmsg.RequestForKey(a.Key)
		if a.Max > req.MaxVersion() {
			t.Errorf("%s: kmsg knows versions up to %d only", a.Name, req.MaxVersion())
		}
		for v := int16(0); v <= a.Max; v++ {
			req.SetVersion(v)
			resp := req.ResponseKind()
			if f := v >= a.Flexible; req.IsFlexible() != f || resp.IsFlexible() != f {
				t.Errorf("%s version %d: flexible %v in the table", a.Name, v, f)
			}
		}
	}
	if a, _ := Lookup(KeyProduce); a.AdvertisedMin != 0 || a.Min != 3 {
		t.Errorf("Produce must be advertised from 0 and served from 3: %+v", a)
	}
}

func TestK8_K10_Check(t *testing.T) {
	for _, c := range []struct {
		key, version int16
		want         error
	}{
		{-1, 0, ErrUnknownKey}, {9999, 0, ErrUnknownKey}, {4, 0, ErrUnknownKey}, {KeyProduce, -1, ErrUnknownKey},
		{KeyProduce, 2, ErrVersionTooOld}, {KeyProduce, 3, nil}, {KeyProduce, 13, nil}, {KeyProduce, 14, ErrVersionTooNew},
		{KeyFetch, 3, ErrVersionTooOld}, {KeyFetch, 18, nil}, {KeyFetch, 19, ErrVersionTooNew},
		{KeyApiVersions, 99, ErrVersionTooNew}, {KeyMetadata, 0, nil},
	} {
		if err := Check(c.key, c.version); err != c.want {
			t.Errorf("key %d version %d: %v, want %v", c.key, c.version, err, c.want)
		}
		if req, err := NewRequest(c.key, c.version); err != c.want || (req == nil) != (err != nil) {
			t.Errorf("new request %d %d: %v", c.key, c.version, err)
		}
	}
}

// Headers are compared with what the client library writes.
func TestParseRequestHeaderOfEveryVersion(t *testing.T) {
	for _, id := range []string{"", "client-7"} {
		f := kmsg.NewRequestFormatter(kmsg.FormatterClientID(id))
		eachVersion(func(a API, v int16) {
			req := kmsg.RequestForKey(a.Key)
			req.SetVersion(v)
			raw := f.AppendRequest(nil, req, 77)[frameSizeBytes:]
			h, body, err := ParseRequestHeader(raw)
			if want := Check(a.Key, v); err != want {
				t.Fatalf("%s %d: %v, want %v", a.Name, v, err, want)
			}
			if h.Key != a.Key || h.Version != v || h.CorrelationID != 77 || h.ClientID == nil || *h.ClientID != id {
				t.Errorf("%s %d: %+v", a.Name, v, h)
			}
			if !bytes.Equal(body, req.AppendTo(nil)) {
				t.Errorf("%s %d: body of %d bytes", a.Name, v, len(body))
			}
			for n := range len(raw) - len(body) {
				if _, _, err := ParseRequestHeader(raw[:n]); err != ErrShort {
					t.Fatalf("%s %d cut at %d: %v", a.Name, v, n, err)
				}
			}
		})
	}
}

func TestParseRequestHeaderFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		raw  string
		want error
	}{
		{"null client id", "\x00\x03\x00\x00\x00\x00\x00\x07\xff\xff", nil},
		{"K11 client id length -2", "\x00\x03\x00\x00\x00\x00\x00\x07\xff\xfe", ErrMalformed},
		{"K11 client id beyond the frame", "\x00\x03\x00\x00\x00\x00\x00\x07\x00\x09abc", ErrShort},
		{"unknown tags", "\x00\x03\x00\x09\x00\x00\x00\x07\xff\xff\x02\x05\x01x\x09\x00", nil},
		{"tag beyond the frame", "\x00\x03\x00\x09\x00\x00\x00\x07\xff\xff\x01\x05\x09x", ErrShort},
		{"K18 overlong tag count", "\x00\x03\x00\x09\x00\x00\x00\x07\xff\xff\x80\x80\x80\x80\x80\x00", ErrMalformed},
		{"2^32-1 tags", "\x00\x03\x00\x09\x00\x00\x00\x07\xff\xff\xff\xff\xff\xff\x0f", ErrShort},
		{"K8 unknown key", "\x03\xe7\x00\x09\x00\x00\x00\x07\x00\x02me", ErrUnknownKey},
		{"K9 ApiVersions 99", "\x00\x12\x00\x63\x00\x00\x00\x07\x00\x02me", ErrVersionTooNew},
	} {
		h, body, err := ParseRequestHeader([]byte(c.raw))
		if err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if err != nil && body != nil {
			t.Errorf("%s: a body beside an error", c.name)
		}
		if (err == ErrUnknownKey || err == ErrVersionTooNew) && (h.ClientID == nil || *h.ClientID != "me" || h.CorrelationID != 7) {
			t.Errorf("%s: the log line lacks the client: %+v", c.name, h)
		}
	}
}

func TestHeaderParserKeepsTheClientID(t *testing.T) {
	raw := []byte("\x00\x03\x00\x00\x00\x00\x00\x07\x00\x02me")
	var p HeaderParser
	one, _, _ := p.Parse(raw)
	if n := testing.AllocsPerRun(100, func() {
		if h, _, err := p.Parse(raw); err != nil || h.ClientID != one.ClientID {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%.0f allocations", n)
	}
	raw[len(raw)-1] = 'x'
	if *one.ClientID != "me" {
		t.Error("the client id is a view of the frame")
	}
	if h, _, _ := p.Parse(raw); *h.ClientID != "mx" {
		t.Error("an old client id for a new one")
	}
}

func TestResponseHeader(t *testing.T) {
	eachVersion(func(a API, v int16) {
		req := kmsg.RequestForKey(a.Key)
		req.SetVersion(v)
		want := 4
		if req.IsFlexible() && a.Key != KeyApiVersions {
			want = 5
		}
		got := AppendResponseHeader([]byte{9}, a.Key, v, 0x01020304)
		if len(got) != 1+want || !bytes.HasPrefix(got, []byte{9, 1, 2, 3, 4}) {
			t.Errorf("%s %d: %x", a.Name, v, got)
		}
		resp := req.ResponseKind()
		whole := AppendResponse([]byte{9}, resp, 0x01020304)[1:]
		if n := frame(append(bytes.Clone(got[1:]), resp.AppendTo(nil)...)); !bytes.Equal(whole, n) {
			t.Errorf("%s %d: frame %x, want %x", a.Name, v, whole, n)
		}
	})
}
