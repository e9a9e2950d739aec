package peer

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"net"
	"strings"
	"testing"

	"strandline.dev/internal/kafka"
)

func nodeID(i int) kafka.NodeID { return kafka.NodeID(i) }

// TestGoldenBytes fixes the bytes of docs/formats/peer.md.
func TestGoldenBytes(t *testing.T) {
	h := &hello{
		version: protocolVersion, class: Data, passing: true, expected: 2, refusal: "no",
		self: Identity{Cluster: "c1", Node: 1, Directory: kafka.ID{0: 0xd1, 15: 0xd2}, Start: 7, Incarnation: kafka.ID{0: 0xa1, 15: 0xa2}},
	}
	cases := []struct {
		name string
		have []byte
		want string
	}{
		{"hello", newFrame(kindHello, 0, 0, h).head, "00000049" + "4e21" + "00" + "0000000000000000" +
			"534800" + "0001" + "036331" + "00000001" + "d10000000000000000000000000000d2" + "0000000000000007" +
			"a10000000000000000000000000000a2" + "02" + "01" + "00000002" + "036e6f" + "00"},
		{"ping", pingFrame, "0000000b" + "4e22" + "04" + "0000000000000000"},
		{"fault", faultFrame(KindSubmit, 5, Overloaded, "no").head, "0000000f" + "4e3e" + "03" + "0000000000000005" + "02" + "036e6f"},
		{"answer", newFrame(KindSubmit, flagAnswer, 6, &note{text: "x"}).head, "00000014" + "4e3e" + "01" + "0000000000000006" + "000100" + "0278" + "00000000"},
	}
	for _, c := range cases {
		if got := hex.EncodeToString(c.have); got != c.want {
			t.Errorf("%s:\nhave %s\nwant %s", c.name, got, c.want)
		}
	}
	var back hello
	if err := back.Decode(newFrame(kindHello, 0, 0, h).head[sizeBytes+headBytes:]); err != nil || back != *h {
		t.Errorf("%+v, %v", back, err)
	}
}

// TestFaultsThatAreNone: a fault of an unknown number is no fault we could act on.
func TestFaultsThatAreNone(t *testing.T) {
	for _, b := range []string{"", "01", "0001", "0501", "0103", "010100"} {
		raw, err := hex.DecodeString(b)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := decodeFault(KindSubmit, raw).(*RemoteError); ok {
			t.Errorf("%s was read as a fault", b)
		}
	}
	long := faultFrame(KindSubmit, 1, Failed, "x"+strings.Repeat("é", faultTextMax))
	if err, ok := decodeFault(KindSubmit, long.head[sizeBytes+headBytes:]).(*RemoteError); !ok || len(err.Text) > faultTextMax {
		t.Errorf("a long text that was cut: %v", err)
	}
}

// silentConn is a connection that gives these bytes and accepts deadlines.
type silentConn struct {
	net.Conn
	*bytes.Reader
}

func (c silentConn) Read(b []byte) (int, error) { return c.Reader.Read(b) }

// FuzzFirstFrame feeds the reader that hears anybody, and the decoder of faults.
func FuzzFirstFrame(f *testing.F) {
	f.Add(newFrame(kindHello, 0, 0, &hello{version: protocolVersion, class: Control, self: Identity{Cluster: "c"}}).head)
	f.Add(newFrame(kindHello, 0, 0, &hello{version: 9}).head)
	f.Add(pingFrame)
	f.Add(faultFrame(KindSubmit, 1, Failed, "x").head)
	f.Fuzz(func(t *testing.T, b []byte) {
		nc := silentConn{Reader: bytes.NewReader(b)}
		h, err := readHello(nc, bufio.NewReader(nc.Reader))
		if err == nil && h.version == protocolVersion {
			again := newFrame(kindHello, 0, 0, h).head
			var back hello
			if err := back.Decode(again[sizeBytes+headBytes:]); err != nil || back != *h {
				t.Fatalf("%+v became %+v, %v", h, back, err)
			}
		}
		if len(b) > sizeBytes+headBytes {
			_ = decodeFault(KindSubmit, b[sizeBytes+headBytes:])
		}
	})
}
