package peer

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestSwappedAddresses: behind node 2's address is node 3. Both sides name it, once, and nothing is taken.
func TestSwappedAddresses(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, w *world, n []*testNode) {
		w.addresses[2], w.addresses[3] = w.addresses[3], w.addresses[2]
		for range 20 {
			_, err := n[1].ask(2, KindHeartbeat, "x")
			is(t, err, ErrDenied, ErrRefused)
			if !strings.Contains(err.Error(), "node 2 was expected behind this address, and this is node 3") {
				t.Fatal(err)
			}
		}
		is(t, n[1].Probe(t.Context(), 2), ErrDenied, ErrRefused)
		synctest.Wait()
		for _, node := range []*testNode{n[1], n[3]} {
			if got := node.log.count("node 2 was expected"); got != 1 {
				t.Errorf("%d log lines, want 1\n%s", got, node.log)
			}
		}
	})
}

// TestOtherCluster: a node of another cluster is refused by name, whoever dials.
func TestOtherCluster(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world, n []*testNode) {
		n[2].change(func(i *Identity) { i.Cluster = "other" })
		_, err := n[1].ask(2, KindSubmit, "x")
		is(t, err, ErrDenied)
		_, err = n[2].ask(1, KindSubmit, "x")
		is(t, err, ErrDenied)
		synctest.Wait()
		for _, node := range []*testNode{n[1], n[2]} {
			if node.log.count("other_cluster") != 1 || node.log.count("cluster c") != 2 {
				t.Errorf("log:\n%s", node.log)
			}
		}
	})
}

// TestAdmitRefusesBothWays: the owner's rule holds for processes that dial and for processes that are dialled.
func TestAdmitRefusesBothWays(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world, n []*testNode) {
		n[1].refuse[2] = "its disk is older than the one registered"
		for _, ask := range []func() (string, error){
			func() (string, error) { return n[1].ask(2, KindHeartbeat, "x") },
			func() (string, error) { return n[2].ask(1, KindHeartbeat, "x") },
		} {
			_, err := ask()
			is(t, err, ErrDenied)
			if !strings.Contains(err.Error(), "older than the one registered") {
				t.Fatal(err)
			}
		}
	})
}

// TestStrangersAreNamedAndClosed: one clear line for each kind of stranger, the connection closed, nothing allocated for announced lengths.
func TestStrangersAreNamedAndClosed(t *testing.T) {
	versions := kmsg.NewPtrApiVersionsRequest()
	versions.SetVersion(3)
	versions.ClientSoftwareName = "librdkafka"
	future := newFrame(kindHello, 0, 0, &hello{version: 2, class: Control}).head
	cases := []struct {
		name string
		send []byte
		want string // in the log; "" for no line
	}{
		{"kafka", kmsg.NewRequestFormatter(kmsg.FormatterClientID("app")).AppendRequest(nil, versions, 1), "a Kafka client speaks to the cluster listener"},
		{"http", []byte("GET / HTTP/1.1\r\n\r\n"), "an HTTP client speaks to the cluster listener"},
		{"tls", []byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}, "one side uses TLS"},
		{"giant", []byte{0x7f, 0xff, 0xff, 0xff, 0, 0}, "out of bounds"},
		{"negative", []byte{0xff, 0xff, 0xff, 0xff, 0, 0}, "out of bounds"},
		{"tiny", []byte{0, 0, 0, 3, 1, 2, 3}, "not a frame"},
		{"our message without hello", newFrame(KindRaft, flagOneWay, 0, &note{kind: KindRaft}).head, "the first frame is of raft instead of a hello"},
		{"version", future, "speaks version 2 of the cluster protocol"},
		{"short hello", newFrame(kindHello, 0, 0, &hello{version: 1, class: Control}).head[:40], "no_hello"},
		{"silent", nil, "no_hello"},
		{"garbage", append(appendHead(nil, kindHello, 0, 0)[4:], "\xff\xff\xff"...), "frame"},
	}
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, w *world, n []*testNode) {
				send := c.send
				if c.name == "garbage" {
					send = append(binary.BigEndian.AppendUint32(nil, uint32(len(send))), send...)
				}
				for range 3 {
					nc := w.stranger("n1:1")
					if _, err := nc.Write(send); err != nil {
						t.Fatal(err)
					}
					if _, err := io.ReadAll(nc); err != nil {
						t.Fatalf("not closed in order: %v", err)
					}
					nc.Close()
				}
				synctest.Wait()
				if n[1].log.count("level=") != 1 || n[1].log.count(c.want) != 1 {
					t.Fatalf("want one line with %q, have\n%s", c.want, n[1].log)
				}
			})
		})
	}
}

// TestScanLeavesNoLine: a connection that is closed without a byte is no event.
func TestScanLeavesNoLine(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world, n []*testNode) {
		w.stranger("n1:1").Close()
		synctest.Wait()
		if n[1].log.String() != "" {
			t.Fatal(n[1].log)
		}
	})
}

// greeted is a connection by hand with an accepted hello.
func (w *world) greeted(class Class) *conn {
	w.t.Helper()
	h := &hello{version: protocolVersion, self: Identity{Cluster: "c", Node: 7}, class: class, expected: 1}
	p := w.newNode(7, w.net.Host("n7"), nil)
	c, err := p.greet(w.t.Context(), "n1:1", h)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// TestFramesThatEndAConnection: an accepted node that breaks the protocol loses its connection, and nothing else.
func TestFramesThatEndAConnection(t *testing.T) {
	sized := func(b []byte) []byte {
		binary.BigEndian.PutUint32(b, uint32(len(b)-sizeBytes))
		return b
	}
	for name, b := range map[string][]byte{
		"giant":           {0x7f, 0xff, 0xff, 0xff},
		"above class":     binary.BigEndian.AppendUint32(nil, controlBytesMax+1),
		"answer":          sized(appendHead(nil, KindHeartbeat, flagAnswer, 1)),
		"flags":           sized(appendHead(nil, KindHeartbeat, 0x80, 1)),
		"other class":     sized(appendHead(nil, KindReplicaFetch, 0, 1)),
		"half a frame":    sized(appendHead(nil, KindHeartbeat, 0, 1))[:9],
		"second hello":    sized(appendHead(nil, kindHello, flagAnswer, 0)),
		"cut body":        append(binary.BigEndian.AppendUint32(nil, 1<<20), appendHead(nil, KindRaft, flagOneWay, 0)[4:]...),
		"oneway+answer":   sized(appendHead(nil, KindRaft, flagOneWay|flagAnswer, 0)),
		"fault of a peer": sized(appendHead(nil, KindHeartbeat, flagAnswer|flagFault, 9)),
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			inBubble(t, 2, func(t *testing.T, w *world, n []*testNode) {
				c := w.greeted(Control)
				if _, err := c.nc.Write(b); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadAll(c.nc); err != nil {
					t.Fatal(err)
				}
				if got := n[1].ends(); got != "7 control" {
					t.Fatalf("ended: %q", got)
				}
				n[2].mustAsk(1, KindHeartbeat, "others go on")
				c.raw.Close()
			})
		})
	}
}

// TestUnreadableMessagesAreSurvived: a message whose body does not decode costs itself only.
func TestUnreadableMessagesAreSurvived(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world, n []*testNode) {
		c := w.greeted(Control)
		go c.run()
		for range 3 {
			f := newFrame(KindRaft, flagOneWay, 0, &hello{})
			if err := c.enqueue(f, 0); err != nil {
				t.Fatal(err)
			}
		}
		k := &call{kind: KindHeartbeat, answer: &note{}, done: make(chan struct{})}
		f := newFrame(KindHeartbeat, 0, 5, &hello{})
		f.call = k
		if err := c.enqueue(f, 5); err != nil {
			t.Fatal(err)
		}
		var remote *RemoteError
		if err := c.wait(t.Context(), 5, k); !errors.As(err, &remote) || remote.Fault != Malformed || !remote.NotRun() {
			t.Fatalf("have %v", err)
		}
		synctest.Wait()
		if n[1].log.count("cannot be read") != 1 {
			t.Fatalf("log:\n%s", n[1].log)
		}
		c.end(errClosed)
	})
}

// TestSlowReaderIsCut: a peer that takes no bytes holds up nobody: its connection ends after writeMax, and callers hear of a full queue.
func TestSlowReaderIsCut(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world, n []*testNode) {
		n[1].mustAsk(2, KindReplicaFetch, "x")
		w.net.Cut("n1", "n2") // the buffer fills
		busy, sent := 0, 0
		big := make([]byte, 1<<20)
		for range 80 {
			var released atomic.Int32
			m := &note{kind: KindReplicaProgress, big: big, released: &released}
			switch err := n[1].Send(2, m); {
			case errors.Is(err, ErrBusy):
				if busy++; released.Load() != 1 {
					t.Fatal("a refused message was not released")
				}
			case err != nil:
				t.Fatal(err)
			default:
				sent++
			}
			synctest.Wait()
		}
		if busy == 0 || sent == 0 || sent > queueBytesMax>>20+3 {
			t.Fatalf("%d sent, %d refused", sent, busy)
		}
		time.Sleep(writeMax)
		synctest.Wait()
		if n[1].lane(2, Data).conn.usable() {
			t.Fatal("the connection is still open")
		}
		w.net.HealAll()
		time.Sleep(time.Second)
		n[1].mustAsk(2, KindReplicaFetch, "again")
	})
}

// TestI14_RequestsInFlightAreBounded: above the bound requests are refused by name, and one-way messages still pass.
func TestI14_RequestsInFlightAreBounded(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world, n []*testNode) {
		results := make(chan error, 3*pendingMax)
		ask := func(text string) {
			go func() {
				results <- n[1].Call(t.Context(), 2, &note{kind: KindHeartbeat, text: text}, &note{})
			}()
		}
		for range pendingMax {
			ask("park")
		}
		synctest.Wait()
		ask("one more")
		is(t, <-results, ErrBusy, ErrBroken)

		c := w.greetedTo("n2:1")
		go c.run()
		var overloaded *RemoteError
		for i := range inFlightMax + 1 {
			k := &call{kind: KindHeartbeat, answer: &note{}, done: make(chan struct{})}
			f := newFrame(KindHeartbeat, 0, int64(i), &note{kind: KindHeartbeat, text: "park"})
			f.slot = nil
			c.mu.Lock()
			c.pending = map[int64]*call{} // past this side's own bound
			c.mu.Unlock()
			f.call = k
			if err := c.enqueue(f, int64(i)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if i == inFlightMax {
				if <-k.done; !errors.As(k.err, &overloaded) || overloaded.Fault != Overloaded || !overloaded.NotRun() {
					t.Fatalf("have %v", k.err)
				}
			}
		}
		if err := c.enqueue(newFrame(KindRaft, flagOneWay, 0, &note{kind: KindRaft, text: "passes"}), 0); err != nil {
			t.Fatal(err)
		}
		if got := n[2].texts(); got != "passes" {
			t.Fatalf("got %q", got)
		}
		close(n[2].park)
		for range pendingMax {
			if err := <-results; err != nil {
				t.Fatal(err)
			}
		}
		c.end(errClosed)
	})
}

// greetedTo is greeted for another address.
func (w *world) greetedTo(address string) *conn {
	w.t.Helper()
	p := w.newNode(7, w.net.Host("n7"), nil)
	h := &hello{version: protocolVersion, self: p.Self(), class: Control, expected: 2}
	c, err := p.greet(w.t.Context(), address, h)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// TestI14_ConnectionsAreBounded: connections that say nothing do not keep nodes out for longer than the hello's time.
func TestI14_ConnectionsAreBounded(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world, n []*testNode) {
		for range unknownMax + 10 {
			w.stranger("n1:1")
		}
		synctest.Wait()
		if n[1].log.count("too_many_connections") != 1 {
			t.Fatalf("log:\n%s", n[1].log)
		}
		time.Sleep(helloMax + time.Millisecond)
		n[2].mustAsk(1, KindHeartbeat, "let in")
		synctest.Wait()
		if n[1].unknown.Load() != 0 {
			t.Fatalf("%d connections without a hello are still counted", n[1].unknown.Load())
		}
	})
}
