package sys

import (
	"net"
	"testing"
	"time"
)

func TestReadable_TellsWhetherAReadWouldWait(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if Readable(nc) {
		t.Error("nothing was sent, and a read would not wait")
	}
	if _, err := peer.Write([]byte("unread")); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); !Readable(nc); {
		if time.Now().After(deadline) {
			t.Fatal("bytes came, and a read would wait")
		}
	}
	got := make([]byte, 6)
	if n, err := nc.Read(got); n != 6 || err != nil {
		t.Errorf("read %d bytes, %v: looking must take none", n, err)
	}
	if Readable(nc) {
		t.Error("all was read, and a read would not wait")
	}
	if a, b := net.Pipe(); Readable(a) || b.Close() != nil {
		t.Error("what is no socket counts as readable")
	}
	nc.Close()
	if !Readable(nc) {
		t.Error("reading a closed connection would wait")
	}
}
