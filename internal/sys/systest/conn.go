package systest

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// stream is one direction of a connection: bytes that have arrived, and bytes that a cut holds back.
type stream struct {
	link

	mu      sync.Mutex    // never held while waiting
	changed chan struct{} // closed and replaced at each change
	arrived []byte
	held    []byte // written while cut
	cut     bool
	ended   bool // the writer closed: the end of the stream, after the bytes
	reset   bool // the writer's process died
	stopped bool // the reader closed: writes fail
}

func newStream(l link) *stream { return &stream{link: l, changed: make(chan struct{})} }

// update changes the stream and wakes who waits.
func (s *stream) update(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	s.wake()
}

func (s *stream) setCut(cut bool) {
	s.update(func() {
		s.cut = cut
		if !cut {
			s.arrived = append(s.arrived, s.held...)
			s.held = nil
		}
	})
}

// tryRead returns bytes, an error, or a channel that is closed at the next change.
func (s *stream) tryRead(p []byte) (n int, wait <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.arrived) > 0:
		n = copy(p, s.arrived)
		s.arrived = s.arrived[n:]
		s.wake() // the writer may have waited for room
	case s.cut:
	case s.reset:
		err = syscall.ECONNRESET
	case s.ended:
		err = io.EOF
	}
	return n, s.changed, err
}

// tryWrite takes what fits, and returns a channel that is closed at the next change.
func (s *stream) tryWrite(p []byte) (n int, wait <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped && !s.cut {
		return 0, nil, syscall.EPIPE
	}
	n = max(0, min(len(p), connBufferBytes-len(s.arrived)-len(s.held)))
	if n > 0 {
		if s.cut {
			s.held = append(s.held, p[:n]...)
		} else {
			s.arrived = append(s.arrived, p[:n]...)
		}
		s.wake()
	}
	return n, s.changed, nil
}

// peerDied tells whether the news that the writer's process died has arrived, and gives a channel for the next change.
func (s *stream) peerDied() (bool, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reset && !s.cut, s.changed
}

func (s *stream) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// conn is one end of a connection.
type conn struct {
	net           *Net
	in, out       *stream
	local, remote addr
	once          sync.Once
	closed        chan struct{}
	readBy        deadline
	writeBy       deadline
}

func newConn(n *Net, in, out *stream) *conn {
	return &conn{net: n, in: in, out: out, closed: make(chan struct{}), readBy: newDeadline(), writeBy: newDeadline()}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	for {
		expired, moved := c.readBy.watch()
		if err := c.usable(expired); err != nil {
			return 0, opError("read", string(c.remote), err)
		}
		if len(p) == 0 {
			return 0, nil
		}
		n, wait, err := c.in.tryRead(p)
		if err != nil && err != io.EOF {
			err = opError("read", string(c.remote), err)
		}
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-wait:
		case <-c.closed:
		case <-expired:
		case <-moved:
		}
	}
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	done := 0
	for {
		expired, moved := c.writeBy.watch()
		err := c.usable(expired)
		died, news := c.in.peerDied()
		if err == nil && died {
			err = syscall.ECONNRESET
		}
		var wait <-chan struct{}
		if err == nil {
			var n int
			n, wait, err = c.out.tryWrite(p[done:])
			done += n
		}
		if err != nil {
			return done, opError("write", string(c.remote), err)
		}
		if done == len(p) {
			return done, nil
		}
		select {
		case <-wait:
		case <-news:
		case <-c.closed:
		case <-expired:
		case <-moved:
		}
	}
}

func (c *conn) usable(expired <-chan struct{}) error {
	select {
	case <-c.closed:
		return net.ErrClosed
	default:
	}
	select {
	case <-expired:
		return os.ErrDeadlineExceeded
	default:
		return nil
	}
}

// Close implements net.Conn: what was written still arrives.
func (c *conn) Close() error { return c.end(false) }

// abort ends this end as the death of its process does.
func (c *conn) abort() { _ = c.end(true) } // a second end has nothing to undo

func (c *conn) end(died bool) error {
	err := opError("close", string(c.remote), net.ErrClosed)
	c.once.Do(func() {
		close(c.closed)
		c.out.update(func() { c.out.ended, c.out.reset = true, died })
		c.in.update(func() { c.in.stopped = true })
		c.net.removeConn(c)
		c.readBy.set(time.Time{})
		c.writeBy.set(time.Time{})
		err = nil
	})
	return err
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.readBy.set(t)
	c.writeBy.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.readBy.set(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writeBy.set(t)
	return nil
}
