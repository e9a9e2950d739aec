// Package proxy is a TCP proxy that stands between two processes and harms what passes, in one direction or in both.
//
// Knows: how bytes flow between a listening address and a target, and that the bytes are frames with a 4-byte length in front,
// which is true of the Kafka protocol and of the cluster listener. Does not know: what a frame means, beyond its first two bytes.
//
// Faults, and why they are fair: a blackhole delivers nothing and says nothing, like a cable that is cut, so neither end sees a
// closed connection until it is healed; Reset is what a firewall or a restarted router does; Delay and a byte rate keep the order
// inside a connection, as TCP does; Down refuses connections, as the operating system does for a process that is gone. A rule
// holds, drops or repeats whole frames, which a network never does inside one connection: it stands for a peer's bug or for a
// request that was sent again on another connection.
//
// Concurrency: every method may be called at any time. Each connection has two goroutines, one a direction; Close ends them all.
package proxy

import (
	"errors"
	"net"
	"sync"
	"time"
)

// Direction of the bytes.
type Direction int

const (
	// ToTarget is from whoever dialled to the target.
	ToTarget Direction = iota
	// ToDialler is the way back.
	ToDialler
)

// Fault is what happens to one direction. The zero value is a sound network.
type Fault struct {
	// Blackhole delivers nothing, new connections included.
	Blackhole bool
	// Delay is added to every frame; order is kept.
	Delay time.Duration
	// BytesPerSecond slows the direction down; 0 means as fast as it goes.
	BytesPerSecond int
}

// dialTimeMax bounds the dial to the target, which is on this machine.
const dialTimeMax = 2 * time.Second

// Proxy forwards connections to one target.
type Proxy struct {
	target string
	addr   string

	mu       sync.Mutex
	listener net.Listener // nil while down
	faults   [2]Fault
	changed  chan struct{} // closed at the next change of faults
	rules    []*Rule
	links    map[*link]struct{}
	closed   bool
	running  sync.WaitGroup
}

// Listen opens a proxy at address, "127.0.0.1:0" for a free port, for connections to target.
func Listen(address, target string) (*Proxy, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, addr: l.Addr().String(), listener: l, changed: make(chan struct{}), links: map[*link]struct{}{}}
	p.serve(l)
	return p, nil
}

// Address is where the proxy listens.
func (p *Proxy) Address() string { return p.addr }

// Set replaces the fault of one direction.
func (p *Proxy) Set(d Direction, f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults[d] = f
	close(p.changed)
	p.changed = make(chan struct{})
}

// Cut makes both directions a blackhole.
func (p *Proxy) Cut() {
	p.Set(ToTarget, Fault{Blackhole: true})
	p.Set(ToDialler, Fault{Blackhole: true})
}

// Heal takes all faults and rules away. What a blackhole has kept is delivered; connections whose other end has gone are closed.
func (p *Proxy) Heal() {
	p.mu.Lock()
	p.rules = nil
	p.mu.Unlock()
	p.Set(ToTarget, Fault{})
	p.Set(ToDialler, Fault{})
}

// Reset breaks every open connection with a RST at both ends.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// Down refuses connections from now on and resets the open ones: the target's process is gone.
func (p *Proxy) Down() {
	p.mu.Lock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	p.mu.Unlock()
	p.Reset()
}

// Up listens again after Down.
func (p *Proxy) Up() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil || p.closed {
		return nil
	}
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		return err
	}
	p.listener = l
	p.serve(l)
	return nil
}

// Close ends everything and waits for it.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Down()
	p.Heal()
	p.running.Wait()
}

// Add installs a rule, behind those that are there.
func (p *Proxy) Add(r *Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
}

func (p *Proxy) serve(l net.Listener) {
	p.running.Add(1)
	go func() {
		defer p.running.Done()
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				p.forward(c.(*net.TCPConn))
			}
		}
	}()
}

// forward begins a connection. A target that refuses is told to the dialler as a reset.
func (p *Proxy) forward(from *net.TCPConn) {
	to, err := net.DialTimeout("tcp", p.target, dialTimeMax)
	l := &link{p: p, ends: [2]*net.TCPConn{from, nil}, over: make(chan struct{})}
	if err != nil {
		l.reset()
		return
	}
	l.ends[1] = to.(*net.TCPConn)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		l.reset()
		return
	}
	p.links[l] = struct{}{}
	p.running.Add(2)
	go l.copy(ToTarget, from, l.ends[1])
	go l.copy(ToDialler, l.ends[1], from)
}

// fault returns the fault of a direction and the channel that tells of its change.
func (p *Proxy) fault(d Direction) (Fault, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults[d], p.changed
}
