package server

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A muted connection takes no new frame until the time has passed; other connections go on. Only a lower bound is asserted, which no
// slow machine can break.
func TestThrottle_ReaderPauses(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	l := listenLoopback(t, "127.0.0.1:0")
	c := dialTo(t, l.Addr().String())
	nc, err := l.Accept()
	must(t, err)
	served := newConn(context.Background(), b.server, Call{Listener: "plain"}, &Door{}, nc)
	ended := make(chan struct{})
	go func() { defer close(ended); served.run() }()
	m := newMetadata(12)
	ask[*kmsg.MetadataResponse](c, m)
	const pause = 100 * time.Millisecond
	start := time.Now()
	served.mute(pause)
	ask[*kmsg.MetadataResponse](c, m)
	if took := time.Since(start); took < pause {
		t.Errorf("answered after %v, while muted for %v", took, pause)
	}
	served.mute(time.Hour)
	c.send(m)
	served.drain()
	<-ended
}

// cut takes parts off the front of a chain of buffers without losing or repeating a byte.
func TestWriter_Cut(t *testing.T) {
	for n := 1; n < 12; n++ {
		bufs, whole := net.Buffers{[]byte("abc"), nil, []byte("d"), []byte("efghij")}, ""
		for len(bufs) > 0 {
			part, size := cut(&bufs, n), 0
			for _, p := range part {
				whole += string(p)
				size += len(p)
			}
			if size > n {
				t.Fatalf("a part of %d bytes, limit %d", size, n)
			}
		}
		if whole != "abcdefghij" {
			t.Errorf("limit %d: %q", n, whole)
		}
	}
}
