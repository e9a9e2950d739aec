package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/iotest"
)

// testBudget counts what is reserved and refuses above its limit.
type testBudget struct{ limit, held, most int }

func (b *testBudget) Reserve(n int) bool {
	if b.held+n > b.limit {
		return false
	}
	b.held += n
	b.most = max(b.most, b.held)
	return true
}

func (b *testBudget) Release(n int) { b.held -= n }

func frame(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func TestReadFrame(t *testing.T) {
	for _, n := range []int{1, 100, frameChunk, frameChunk + 1, 1 << 20} {
		body := bytes.Repeat([]byte{7}, n)
		for name, r := range map[string]io.Reader{
			"at once": bytes.NewReader(frame(body)), "byte by byte": iotest.OneByteReader(bytes.NewReader(frame(body))),
			"data with EOF": iotest.DataErrReader(bytes.NewReader(frame(body))),
		} {
			budget := &testBudget{limit: n}
			got, err := ReadFrame(r, nil, 1<<20, budget)
			if err != nil || !bytes.Equal(got, body) || budget.held != n {
				t.Errorf("%d bytes %s: %d bytes, %v, budget %d", n, name, len(got), err, budget.held)
			}
		}
	}
}

func TestReadFrameReusesTheBuffer(t *testing.T) {
	buf := make([]byte, 0, 1000)
	two := append(frame([]byte("first")), frame([]byte("second"))...)
	r := bytes.NewReader(two)
	for _, want := range []string{"first", "second"} {
		got, err := ReadFrame(r, buf, 100, nil)
		if err != nil || string(got) != want || &got[0] != &buf[:1][0] {
			t.Errorf("%q %v", got, err)
		}
	}
	if _, err := ReadFrame(r, buf, 100, nil); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestK1_K2_K3_K4_K6_K7_FrameStarts(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes string
		want  error
	}{
		{"K1 size 0", "\x00\x00\x00\x00", ErrFrameSize},
		{"K2 size -1", "\xff\xff\xff\xff", ErrFrameSize},
		{"K3 size MAX", "\x7f\xff\xff\xff", ErrFrameSize},
		{"K4 above the limit", "\x00\x01\x00\x01", ErrFrameSize},
		{"K6 GET", "GET / HTTP/1.1\r\n", ErrHTTP},
		{"K6 POST", "POST / HTTP/1.1\r\n", ErrHTTP},
		{"K7 TLS", "\x16\x03\x01\x02\x00\x01\x00", ErrTLS},
		{"size cut", "\x00\x00", io.ErrUnexpectedEOF},
		{"closed", "", io.EOF},
		{"no body", "\x00\x00\x00\x05", io.ErrUnexpectedEOF},
		{"body cut", "\x00\x00\x00\x05abcd", io.ErrUnexpectedEOF},
	} {
		budget := &testBudget{limit: 1 << 30}
		if got, err := ReadFrame(bytes.NewReader([]byte(c.bytes)), nil, 1<<16, budget); err != c.want || got != nil || budget.held != 0 {
			t.Errorf("%s: %v, want %v; budget %d", c.name, err, c.want, budget.held)
		}
	}
}

// A peer that announces 100 MiB and sends little holds little.
func TestC086_AllocationFollowsArrival(t *testing.T) {
	for _, sent := range []int{0, 1, 10_000, 100_000} {
		announced := binary.BigEndian.AppendUint32(nil, 100<<20)
		budget := &testBudget{limit: 1 << 30}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ReadFrame(bytes.NewReader(append(announced, make([]byte, sent)...)), nil, 100<<20, budget)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
		if most := max(frameChunk, 2*sent+frameChunk); budget.most > most || budget.held != 0 {
			t.Errorf("%d bytes sent: reserved %d, still held %d", sent, budget.most, budget.held)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(8*sent+64<<10) {
			t.Errorf("%d bytes sent: allocated %d", sent, n)
		}
	}
}

func TestReadFrameGivesTheBudgetBack(t *testing.T) {
	budget := &testBudget{limit: 50_000}
	if _, err := ReadFrame(bytes.NewReader(frame(make([]byte, 100_000))), nil, 1<<20, budget); err != ErrBudget || budget.held != 0 {
		t.Errorf("%v, held %d", err, budget.held)
	}
}
