package sys

import (
	"net"
	"testing"
	"time"
)

func TestHungUp_SeesTheEndBehindUnreadBytes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := peer.Write([]byte("unread")); err != nil {
		t.Fatal(err)
	}
	if HungUp(nc) {
		t.Error("a living peer counts as gone")
	}
	if err := peer.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); !HungUp(nc); {
		if time.Now().After(deadline) {
			t.Fatal("a closed peer does not count as gone")
		}
	}
	got := make([]byte, 6)
	if n, err := nc.Read(got); n != 6 || err != nil {
		t.Errorf("read %d bytes, %v: looking must take none", n, err)
	}
	if a, b := net.Pipe(); HungUp(a) || b.Close() != nil {
		t.Error("what is no socket counts as gone")
	}
	nc.Close()
	if HungUp(nc) {
		t.Error("our own close counts as the peer's")
	}
}
