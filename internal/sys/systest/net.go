package systest

import (
	"context"
	"net"
	"strconv"
	"sync"
	"syscall"

	"strandline.dev/internal/sys"
)

// Net is a network in memory. Each host of it is a sys.Net; hosts are known by the host part of their addresses. Create it
// inside the bubble that uses it.
type Net struct {
	mu        sync.Mutex // never held while waiting
	listeners map[string]*listener
	conns     map[*conn]struct{} // open ends, for cuts and kills
	cuts      map[link]bool
	healed    chan struct{} // closed and replaced at each heal: dials that wait look again
	nextPort  int
}

// link is one direction between two hosts.
type link struct{ from, to string }

// firstPort is where ports that the network picks begin, as on Linux.
const firstPort = 32768

// NewNet returns an empty network.
func NewNet() *Net {
	return &Net{
		listeners: map[string]*listener{}, conns: map[*conn]struct{}{}, cuts: map[link]bool{},
		healed: make(chan struct{}), nextPort: firstPort,
	}
}

// Host returns the network as the host of that name sees it.
func (n *Net) Host(name string) sys.Net { return &host{net: n, name: name} }

// Cut stops the bytes from one host to another; the way back stays open.
func (n *Net) Cut(from, to string) { n.setCut(link{from, to}, true) }

// Heal opens one direction; what was held back arrives.
func (n *Net) Heal(from, to string) { n.setCut(link{from, to}, false) }

// CutBoth stops both directions between two hosts.
func (n *Net) CutBoth(a, b string) {
	n.Cut(a, b)
	n.Cut(b, a)
}

// HealBoth opens both directions between two hosts.
func (n *Net) HealBoth(a, b string) {
	n.Heal(a, b)
	n.Heal(b, a)
}

// HealAll opens everything.
func (n *Net) HealAll() {
	n.mu.Lock()
	var all []link
	for l := range n.cuts {
		all = append(all, l)
	}
	n.mu.Unlock()
	for _, l := range all {
		n.setCut(l, false)
	}
}

func (n *Net) setCut(l link, cut bool) {
	n.mu.Lock()
	if cut {
		n.cuts[l] = true
	} else {
		delete(n.cuts, l)
		close(n.healed)
		n.healed = make(chan struct{})
	}
	var touched []*stream
	for c := range n.conns {
		for _, s := range []*stream{c.in, c.out} {
			if s.link == l {
				touched = append(touched, s)
			}
		}
	}
	n.mu.Unlock()
	for _, s := range touched {
		s.setCut(cut)
	}
}

// Kill ends a host's process: its listeners close and its connections are reset. The other ends learn of it unless a cut
// keeps the news from them. The name can listen again at once.
func (n *Net) Kill(name string) {
	n.mu.Lock()
	var dead []*listener
	for _, l := range n.listeners {
		if l.host == name {
			dead = append(dead, l)
		}
	}
	var ends []*conn
	for c := range n.conns {
		if c.out.from == name {
			ends = append(ends, c)
		}
	}
	n.mu.Unlock()
	for _, l := range dead {
		l.Close()
	}
	for _, c := range ends {
		c.abort()
	}
}

func (n *Net) addConn(in, out *stream, local, remote addr) *conn {
	c := newConn(n, in, out)
	c.local, c.remote = local, remote
	n.conns[c] = struct{}{}
	return c
}

func (n *Net) removeConn(c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
}

// host is one host's view of the network.
type host struct {
	net  *Net
	name string
}

// Listen implements sys.Net. An empty host part, or one that means "every address", is this host; port 0 picks one.
func (h *host) Listen(address string) (net.Listener, error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, opError("listen", address, err)
	}
	if name == "" || name == "0.0.0.0" || name == "::" {
		name = h.name
	}
	if name != h.name {
		return nil, opError("listen", address, syscall.EADDRNOTAVAIL)
	}
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if port == "0" {
		port = strconv.Itoa(n.nextPort)
		n.nextPort++
	}
	at := net.JoinHostPort(name, port)
	if n.listeners[at] != nil {
		return nil, opError("listen", at, syscall.EADDRINUSE)
	}
	l := &listener{net: n, host: name, addr: addr(at), backlog: make(chan *conn, backlogMax), closed: make(chan struct{})}
	n.listeners[at] = l
	return l, nil
}

// Dial implements sys.Net. It waits while either direction is cut, and is refused when nobody listens.
func (h *host) Dial(ctx context.Context, address string) (net.Conn, error) {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, opError("dial", address, err)
	}
	for {
		c, wait, err := h.tryDial(name, address)
		if err != nil || c != nil {
			return c, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, opError("dial", address, ctx.Err())
		}
	}
}

// tryDial returns a connection, an error, or a channel that is closed when it is worth trying again.
func (h *host) tryDial(name, address string) (net.Conn, <-chan struct{}, error) {
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	there, back := link{h.name, name}, link{name, h.name}
	if n.cuts[there] || n.cuts[back] {
		return nil, n.healed, nil
	}
	l := n.listeners[address]
	if l == nil || len(l.backlog) == cap(l.backlog) {
		return nil, nil, opError("dial", address, syscall.ECONNREFUSED)
	}
	local := addr(net.JoinHostPort(h.name, strconv.Itoa(n.nextPort)))
	n.nextPort++
	out, in := newStream(there), newStream(back)
	l.backlog <- n.addConn(out, in, l.addr, local) // there is room: only this function fills it, under the lock
	return n.addConn(in, out, local, l.addr), nil, nil
}

// listener is a listening address.
type listener struct {
	net     *Net
	host    string
	addr    addr
	backlog chan *conn
	once    sync.Once
	closed  chan struct{}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, opError("accept", string(l.addr), net.ErrClosed)
	default:
	}
	select {
	case c := <-l.backlog:
		return c, nil
	case <-l.closed:
		return nil, opError("accept", string(l.addr), net.ErrClosed)
	}
}

// Close implements net.Listener; connections that nobody accepted are reset.
func (l *listener) Close() error {
	err := opError("close", string(l.addr), net.ErrClosed)
	l.once.Do(func() {
		l.net.mu.Lock()
		delete(l.net.listeners, string(l.addr))
		l.net.mu.Unlock()
		close(l.closed)
		err = nil
	})
	for {
		select {
		case c := <-l.backlog:
			c.abort()
		default:
			return err
		}
	}
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.addr }

// addr is an address of the test network.
type addr string

// Network implements net.Addr.
func (addr) Network() string { return "tcp" }

// String implements net.Addr.
func (a addr) String() string { return string(a) }

func opError(op, address string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: addr(address), Err: err}
}
