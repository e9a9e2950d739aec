package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/auth/certs"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
	"strandline.dev/internal/wire"
)

// note is the message of these tests: a text and a payload.
type note struct {
	kind     Kind
	text     string
	big      []byte
	released *atomic.Int32
	room     []byte // of an answer: memory to read into
}

func (n *note) Kind() Kind { return n.kind }

func (n *note) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(1, 0)
	e.String(n.text)
	e.Uint32(uint32(len(n.big)))
	return e.B
}

func (n *note) Payload() [][]byte {
	half := len(n.big) / 2
	return [][]byte{n.big[:half], n.big[half:]}
}

func (n *note) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(1, 0)
	n.text = d.String()
	size := int(d.Uint32())
	if d.Err() == nil && size != d.Rest() {
		return fmt.Errorf("%w: %d bytes of payload, want %d", wire.ErrMalformed, d.Rest(), size)
	}
	n.big = b[len(b)-d.Rest():]
	return d.Err()
}

func (n *note) Release() {
	if n.released != nil {
		n.released.Add(1)
	}
}

func (n *note) Buffer(size int) []byte {
	if len(n.room) < size {
		return nil
	}
	return n.room
}

// lockedLog is a log that may be read while it is written.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lockedLog) count(part string) int { return strings.Count(l.String(), part) }

// testNode is one process: its peers and what they were told.
type testNode struct {
	*Peers
	t      *testing.T
	world  *world
	log    *lockedLog
	cancel context.CancelFunc
	served chan error

	mu       sync.Mutex
	identity Identity
	refuse   map[kafka.NodeID]string // Admit's answers
	gone     []string
	got      []string      // texts of one-way messages, in order
	park     chan struct{} // requests with text "park" wait for it
}

// world is a network and the addresses of nodes.
type world struct {
	t         *testing.T
	net       *systest.Net
	mu        sync.Mutex
	addresses map[kafka.NodeID]string
}

func newWorld(t *testing.T) *world {
	return &world{t: t, net: systest.NewNet(), addresses: map[kafka.NodeID]string{}}
}

func hostOf(id kafka.NodeID) string { return fmt.Sprintf("n%v", id) }

// newNode makes a process that does not listen yet.
func (w *world) newNode(id kafka.NodeID, n sys.Net, identity *certs.Source) *testNode {
	node := &testNode{
		t: w.t, world: w, log: &lockedLog{}, refuse: map[kafka.NodeID]string{}, park: make(chan struct{}),
		identity: Identity{Cluster: "c", Node: id, Directory: kafka.ID{byte(id)}, Start: 1},
	}
	node.Peers = New(Config{
		Net: n, TLS: identity, Log: slog.New(slog.NewTextHandler(node.log, &slog.HandlerOptions{Level: slog.LevelInfo})), Metrics: metrics.New().Peer,
		Self: func() Identity { node.mu.Lock(); defer node.mu.Unlock(); return node.identity },
		Resolve: func(to kafka.NodeID) (string, bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			a, ok := w.addresses[to]
			return a, ok
		},
		Admit: func(who Identity) error {
			node.mu.Lock()
			defer node.mu.Unlock()
			if why := node.refuse[who.Node]; why != "" {
				return errors.New(why)
			}
			return nil
		},
		Gone: func(who Identity, c Class) {
			node.mu.Lock()
			defer node.mu.Unlock()
			node.gone = append(node.gone, fmt.Sprintf("%v %v", who.Node, c))
		},
	})
	for _, k := range []Kind{KindHeartbeat, KindReplicaFetch, KindSubmit} {
		node.HandleRequest(k, func() Message { return &note{kind: k} }, node.answer)
	}
	for _, k := range []Kind{KindRaft, KindReplicaProgress} {
		node.HandleOneWay(k, func() Message { return &note{kind: k} }, func(from Identity, m Message) {
			node.mu.Lock()
			defer node.mu.Unlock()
			node.got = append(node.got, m.(*note).text)
		})
	}
	return node
}

// answer echoes; "park" waits, "fail" fails.
func (n *testNode) answer(ctx context.Context, from Identity, m Message) (Message, error) {
	in := m.(*note)
	switch in.text {
	case "park":
		select {
		case <-n.park:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case "fail":
		return nil, errors.New("as asked")
	}
	return &note{kind: in.kind, text: fmt.Sprintf("%v>%v %s", from.Node, n.Self().Node, in.text), big: in.big}, nil
}

func (n *testNode) Self() Identity { return n.cfg.Self() }

func (n *testNode) change(f func(*Identity)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(&n.identity)
}

// listen serves at an address and makes it known.
func (n *testNode) listen(address string) {
	n.t.Helper()
	l, err := n.cfg.Net.Listen(address)
	if err != nil {
		n.t.Fatal(err)
	}
	w := n.world
	w.mu.Lock()
	w.addresses[n.Self().Node] = l.Addr().String()
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel, n.served = cancel, make(chan error, 1)
	go func() { n.served <- n.Serve(ctx, l) }()
}

func (n *testNode) stop() {
	n.t.Helper()
	if n.cancel != nil {
		n.end()
	}
	n.Close()
}

// end ends Serve and waits for what it serves.
func (n *testNode) end() {
	n.t.Helper()
	n.cancel()
	if err := <-n.served; err != nil {
		n.t.Errorf("serve: %v", err)
	}
	n.cancel = nil
}

// texts are the one-way messages that came.
func (n *testNode) texts() string {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.got, " ")
}

// ends are the connections whose end was told.
func (n *testNode) ends() string {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.gone, ", ")
}

// ask calls with a time-out and returns the answer's text.
func (n *testNode) ask(to kafka.NodeID, k Kind, text string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	answer := &note{}
	err := n.Call(ctx, to, &note{kind: k, text: text}, answer)
	return answer.text, err
}

func (n *testNode) mustAsk(to kafka.NodeID, k Kind, text string) {
	n.t.Helper()
	got, err := n.ask(to, k, text)
	if want := fmt.Sprintf("%v>%v %s", n.Self().Node, to, text); err != nil || got != want {
		n.t.Fatalf("answer %q, %v; want %q\n%s", got, err, want, n.log)
	}
}

// inBubble runs a test with that many listening nodes, numbered from 1.
func inBubble(t *testing.T, count int, test func(t *testing.T, w *world, nodes []*testNode)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		nodes := []*testNode{nil}
		for i := range count {
			n := w.newNode(kafka.NodeID(i+1), w.net.Host(hostOf(kafka.NodeID(i+1))), nil)
			n.listen(hostOf(kafka.NodeID(i+1)) + ":1")
			nodes = append(nodes, n)
		}
		defer func() {
			for _, n := range nodes[1:] {
				n.stop()
			}
		}()
		test(t, w, nodes)
	})
}

// stranger dials a node by hand.
func (w *world) stranger(address string) net.Conn {
	w.t.Helper()
	c, err := w.net.Host("stranger").Dial(context.Background(), address)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func is(t *testing.T, err error, want error, not ...error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("have %v, want %v", err, want)
	}
	for _, n := range not {
		if errors.Is(err, n) {
			t.Fatalf("have %v, which must not be %v", err, n)
		}
	}
}
