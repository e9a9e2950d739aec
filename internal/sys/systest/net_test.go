package systest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// connect returns both ends of a connection from host a to host b.
func connect(t *testing.T, n *Net) (client, server net.Conn) {
	t.Helper()
	l, err := n.Host("b").Listen("b:9092")
	must(t, err)
	client, err = n.Host("a").Dial(context.Background(), "b:9092")
	must(t, err)
	server, err = l.Accept()
	must(t, err)
	must(t, l.Close())
	return client, server
}

func send(t *testing.T, c net.Conn, s string) {
	t.Helper()
	_, err := c.Write([]byte(s))
	must(t, err)
}

func receive(t *testing.T, c net.Conn, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Fatalf("received %q, %v; want %q", b, err, want)
	}
}

// silent checks that nothing arrives within a second of bubble time.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(time.Second)))
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %d bytes, %v; want silence", n, err)
	}
	must(t, c.SetReadDeadline(time.Time{}))
}

func TestNetCarriesBothWaysAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t, NewNet())
		if client.RemoteAddr().String() != "b:9092" || server.RemoteAddr().String() != client.LocalAddr().String() {
			t.Errorf("addresses %v %v %v", client.RemoteAddr(), server.RemoteAddr(), client.LocalAddr())
		}
		send(t, client, "ping")
		receive(t, server, "ping")
		send(t, server, "pong")
		must(t, server.Close())
		receive(t, client, "pong")
		if _, err := client.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("after close: %v", err)
		}
		if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write to a closed peer: %v", err)
		}
		if _, err := server.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read of a closed end: %v", err)
		}
		if err := server.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second close: %v", err)
		}
	})
}

func TestNetListenRules(t *testing.T) {
	n := NewNet()
	h := n.Host("a")
	l, err := h.Listen("0.0.0.0:0")
	must(t, err)
	if _, err := h.Listen(l.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second listener: %v", err)
	}
	if _, err := h.Listen("b:1"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("another host's address: %v", err)
	}
	if _, err := h.Dial(context.Background(), "b:1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	must(t, l.Close())
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after close: %v", err)
	}
	if _, err := h.Dial(context.Background(), l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a dial after close: %v", err)
	}
	again, err := h.Listen(l.Addr().String())
	must(t, err)
	must(t, again.Close())
}

func TestCutHoldsOneDirectionUntilHealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNet()
		client, server := connect(t, n)
		send(t, client, "before ")
		n.Cut("a", "b")
		send(t, client, "during")
		must(t, client.SetDeadline(time.Time{}))
		receive(t, server, "before ")
		silent(t, server)
		send(t, server, "the way back")
		receive(t, client, "the way back")
		must(t, client.Close())
		silent(t, server) // the end of the stream is held back too
		n.Heal("a", "b")
		receive(t, server, "during")
		if _, err := server.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("got %v, want the end", err)
		}
	})
}

func TestDialOverACutWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNet()
		l, err := n.Host("b").Listen(":1")
		must(t, err)
		defer l.Close()
		n.CutBoth("a", "b")
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := n.Host("a").Dial(ctx, "b:1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("dial over a cut: %v", err)
		}
		dialled := make(chan error)
		go func() {
			_, err := n.Host("a").Dial(context.Background(), "b:1")
			dialled <- err
		}()
		synctest.Wait()
		n.Heal("a", "b")
		synctest.Wait()
		select {
		case err := <-dialled:
			t.Fatalf("dialled with one direction cut: %v", err)
		default:
		}
		n.HealAll()
		must(t, <-dialled)
	})
}

func TestKillResetsPeersAndRefusesDials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNet()
		client, server := connect(t, n)
		l, err := n.Host("b").Listen("b:1")
		must(t, err)
		reading := make(chan error)
		go func() {
			_, err := client.Read(make([]byte, 1))
			reading <- err
		}()
		synctest.Wait()
		n.Kill("b")
		if err := <-reading; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the peer reads %v", err)
		}
		if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the peer writes %v", err)
		}
		if _, err := server.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the dead process writes: %v", err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the dead process accepts: %v", err)
		}
		if _, err := n.Host("a").Dial(context.Background(), "b:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial: %v", err)
		}
	})
}

func TestKillBehindACutIsNotNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNet()
		client, _ := connect(t, n)
		n.Cut("b", "a")
		n.Kill("b")
		silent(t, client)
		n.Heal("b", "a")
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after healing: %v", err)
		}
	})
}

func TestWriterWaitsForRoomAndForItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t, NewNet())
		big := bytes.Repeat([]byte("x"), connBufferBytes+10)
		must(t, client.SetWriteDeadline(time.Now().Add(time.Second)))
		if n, err := client.Write(big); n != connBufferBytes || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("wrote %d, %v", n, err)
		}
		must(t, client.SetWriteDeadline(time.Time{}))
		written := make(chan error)
		go func() {
			_, err := client.Write([]byte("the rest"))
			written <- err
		}()
		synctest.Wait()
		receive(t, server, string(big[:connBufferBytes]))
		must(t, <-written)
		receive(t, server, "the rest")
	})
}

func TestDeadlineCanBeMovedWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := connect(t, NewNet())
		start := time.Now()
		must(t, client.SetReadDeadline(start.Add(time.Hour)))
		read := make(chan error)
		go func() {
			_, err := client.Read(make([]byte, 1))
			read <- err
		}()
		synctest.Wait()
		must(t, client.SetReadDeadline(start.Add(time.Second)))
		if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		must(t, client.SetReadDeadline(start)) // the past ends a read at once
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestWallStandsStepsAndTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
		still, ticking := NewWall(start), NewTickingWall(start)
		<-time.After(time.Minute)
		if !still.Now().Equal(start) || !ticking.Now().Equal(start.Add(time.Minute)) {
			t.Errorf("after a minute: %v and %v", still.Now(), ticking.Now())
		}
		still.Step(-time.Hour)
		ticking.Set(start)
		ticking.Step(time.Second)
		if !still.Now().Equal(start.Add(-time.Hour)) || !ticking.Now().Equal(start.Add(time.Second)) {
			t.Errorf("after moving: %v and %v", still.Now(), ticking.Now())
		}
	})
}

func TestMachineTakesItsBootIDFromTheFileSystem(t *testing.T) {
	fsys := NewFS(1)
	m := Machine(fsys, nil, nil)
	if m.BootID() != fsys.BootID() || m.Net == nil || m.Wall == nil {
		t.Fatalf("%+v", m)
	}
	if next := Machine(fsys.Crash(LoseAll), nil, nil); next.BootID() == m.BootID() {
		t.Fatal("a power cut kept the boot id")
	}
}
