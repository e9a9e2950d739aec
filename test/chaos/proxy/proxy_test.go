package proxy

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// echo answers every frame with itself.
func echo(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	return l
}

func newTestProxy(t *testing.T) *Proxy {
	t.Helper()
	p, err := Listen("127.0.0.1:0", echo(t).Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func send(t *testing.T, c net.Conn, key int16) {
	t.Helper()
	b := binary.BigEndian.AppendUint32(nil, 2)
	if _, err := c.Write(binary.BigEndian.AppendUint16(b, uint16(key))); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c net.Conn) int16 {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	var b [6]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		t.Fatal(err)
	}
	return int16(binary.BigEndian.Uint16(b[4:]))
}

// silent says that nothing comes and the connection stays open.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%d bytes, %v", n, err)
	}
}

func TestProxy_BlackholeSaysNothingAndHeals(t *testing.T) {
	for _, d := range []Direction{ToTarget, ToDialler} {
		p := newTestProxy(t)
		c := dial(t, p)
		send(t, c, 1)
		if got := receive(t, c); got != 1 {
			t.Fatalf("key %d", got)
		}
		p.Set(d, Fault{Blackhole: true})
		send(t, c, 2)
		silent(t, c)
		p.Heal()
		if got := receive(t, c); got != 2 {
			t.Fatalf("key %d", got)
		}
	}
}

func TestProxy_ResetAndDown(t *testing.T) {
	p := newTestProxy(t)
	c := dial(t, p)
	send(t, c, 1)
	receive(t, c)
	p.Reset()
	if _, err := io.ReadFull(c, make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("after Reset: %v", err)
	}
	p.Down()
	if _, err := net.Dial("tcp", p.Address()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("while down: %v", err)
	}
	if err := p.Up(); err != nil {
		t.Fatal(err)
	}
	c = dial(t, p)
	send(t, c, 3)
	if got := receive(t, c); got != 3 {
		t.Fatalf("key %d", got)
	}
}

func TestProxy_Rules(t *testing.T) {
	p := newTestProxy(t)
	release := make(chan struct{})
	p.Add(&Rule{Direction: ToTarget, Match: Key(1), Action: Drop})
	twice := &Rule{Direction: ToTarget, Match: Key(2), Action: Duplicate, Times: 1}
	p.Add(twice)
	p.Add(&Rule{Direction: ToDialler, Match: Key(3), Action: Hold, Release: release})
	c := dial(t, p)
	for _, key := range []int16{1, 2, 2, 3} {
		send(t, c, key)
	}
	for i := range 3 {
		if got := receive(t, c); got != 2 {
			t.Fatalf("frame %d has key %d", i, got)
		}
	}
	if twice.Count() != 1 {
		t.Fatalf("%d frames were doubled", twice.Count())
	}
	silent(t, c)
	close(release)
	if got := receive(t, c); got != 3 {
		t.Fatalf("key %d", got)
	}
}

func TestProxy_TargetGone(t *testing.T) {
	l := echo(t)
	p, err := Listen("127.0.0.1:0", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	_ = l.Close()
	c, err := net.Dial("tcp", p.Address())
	if err != nil {
		return // the reset came before the dial was done
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadFull(c, make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%v", err)
	}
}
