package proxy

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"
)

// frameBytesMax bounds a frame that the proxy takes apart; anything longer is passed on as it comes.
const frameBytesMax = 128 << 20

// Action is what a rule does to a frame.
type Action int

const (
	// Drop forgets the frame.
	Drop Action = iota
	// Duplicate delivers it twice.
	Duplicate
	// Hold delivers it, and with it all that follows on its connection, when the rule's Release is closed or the connection ends.
	Hold
)

// Rule acts on the frames that match it.
type Rule struct {
	Direction Direction
	// Match sees a frame without its length. Its first two bytes are the API key of a request. Called from several goroutines.
	Match  func(frame []byte) bool
	Action Action
	// Release ends a Hold.
	Release <-chan struct{}
	// Times is how many frames it acts on; 0 means every one. Hits counts them; read it by Count.
	Times int

	mu   sync.Mutex
	hits int
}

// Key matches requests with an API key.
func Key(key int16) func([]byte) bool {
	return func(f []byte) bool { return len(f) >= 2 && int16(binary.BigEndian.Uint16(f)) == key }
}

// Count is how many frames the rule has acted on.
func (r *Rule) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hits
}

func (r *Rule) takes(d Direction, frame []byte) bool {
	if r.Direction != d || !r.Match(frame) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Times > 0 && r.hits >= r.Times {
		return false
	}
	r.hits++
	return true
}

// link is one connection through the proxy.
type link struct {
	p    *Proxy
	ends [2]*net.TCPConn // dialler, target
	once sync.Once
	over chan struct{} // closed when the link has ended
}

// reset ends the link with a RST at both ends.
func (l *link) reset() {
	l.once.Do(func() {
		for _, c := range l.ends {
			if c != nil {
				_ = c.SetLinger(0)
				_ = c.Close()
			}
		}
		close(l.over)
	})
}

// close ends the link with a FIN at both ends.
func (l *link) close() {
	l.once.Do(func() {
		for _, c := range l.ends {
			_ = c.Close()
		}
		close(l.over)
	})
}

// copy carries one direction until an end closes. The end of a connection is itself held back by a blackhole.
func (l *link) copy(d Direction, from, to *net.TCPConn) {
	defer l.p.running.Done()
	r := bufio.NewReaderSize(from, 64<<10)
	for {
		frame, err := readFrame(r)
		if !l.pass(d) {
			break
		}
		if err != nil || !l.deliver(d, frame, to) {
			break
		}
	}
	l.close()
	l.p.mu.Lock()
	delete(l.p.links, l)
	l.p.mu.Unlock()
}

// readFrame returns a frame with its length in front.
func readFrame(r *bufio.Reader) ([]byte, error) {
	head, err := r.Peek(4)
	if err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head)
	if n > frameBytesMax {
		// No frame of ours: TLS or rubbish. Pass on what there is.
		b := make([]byte, r.Buffered())
		_, err := io.ReadFull(r, b)
		return b, err
	}
	b := make([]byte, 4+int(n))
	_, err = io.ReadFull(r, b)
	return b, err
}

// pass waits as long as the direction is a blackhole; false means that the link has ended.
func (l *link) pass(d Direction) bool {
	for {
		f, changed := l.p.fault(d)
		if !f.Blackhole {
			return true
		}
		select {
		case <-changed:
		case <-l.over:
			return false
		}
	}
}

func (l *link) deliver(d Direction, frame []byte, to *net.TCPConn) bool {
	f, _ := l.p.fault(d)
	if wait := f.Delay + transfer(len(frame), f.BytesPerSecond); wait > 0 && !l.sleep(wait) {
		return false
	}
	times := 1
	if r := l.rule(d, frame); r != nil {
		switch r.Action {
		case Drop:
			return true
		case Duplicate:
			times = 2
		case Hold:
			select {
			case <-r.Release:
			case <-l.over:
				return false
			}
		}
	}
	for range times {
		if _, err := to.Write(frame); err != nil {
			return false
		}
	}
	return true
}

func (l *link) rule(d Direction, frame []byte) *Rule {
	l.p.mu.Lock()
	rules := l.p.rules
	l.p.mu.Unlock()
	if len(frame) < 4 {
		return nil
	}
	for _, r := range rules {
		if r.takes(d, frame[4:]) {
			return r
		}
	}
	return nil
}

func transfer(n, perSecond int) time.Duration {
	if perSecond <= 0 {
		return 0
	}
	return time.Duration(n) * time.Second / time.Duration(perSecond)
}

func (l *link) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.over:
		return false
	}
}
