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
	net *Net

	mu      sync.Mutex    // never held while waiting
	changed chan struct{} // closed and replaced at each change
	arrived []byte
	held    []byte // written while cut
	cut     bool
	ended   bool  // the writer closed; seen by the reader when nothing is held back
	broken  error // told to the reader when nothing is held back, to the writer at once
	stopped bool  // the reader closed: writes fail
}

func newStream(n *Net, l link) *stream {
	return &stream{link: l, net: n, changed: make(chan struct{})}
}

// update changes the stream and wakes who waits.
func (s *stream) update(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
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

// reset breaks the stream. A reader that died with its process loses what had arrived.
func (s *stream) reset(readerDied bool) {
	s.update(func() {
		s.broken = syscall.ECONNRESET
		s.held = nil
		if readerDied {
			s.arrived = nil
		}
	})
}

// tryRead returns bytes, an error, or a channel that is closed at the next change.
func (s *stream) tryRead(p []byte) (int, <-chan struct{}, error) {
	s.mu.Lock()
	var n int
	var err error
	switch {
	case len(s.arrived) > 0:
		n = copy(p, s.arrived)
		s.arrived = s.arrived[n:]
		close(s.changed) // the writer may have waited for room
		s.changed = make(chan struct{})
	case s.cut:
	case s.broken != nil:
		err = s.broken
	case s.ended:
		err = io.EOF
	}
	wait := s.changed
	s.mu.Unlock()
	return n, wait, err
}

// tryWrite takes what fits.
func (s *stream) tryWrite(p []byte) (int, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.broken != nil && !s.cut:
		return 0, nil, s.broken
	case s.stopped && !s.cut:
		return 0, nil, syscall.EPIPE
	}
	n := min(len(p), connBufferBytes-len(s.arrived)-len(s.held))
	if n > 0 {
		if s.cut {
			s.held = append(s.held, p[:n]...)
		} else {
			s.arrived = append(s.arrived, p[:n]...)
		}
		close(s.changed)
		s.changed = make(chan struct{})
	}
	return n, s.changed, nil
}

// conn is one end of a connection.
type conn struct {
	in, out       *stream
	local, remote addr
	once          sync.Once
	closed        chan struct{}
	readBy        deadline
	writeBy       deadline
}

func newConn(in, out *stream, local, remote addr) *conn {
	return &conn{
		in: in, out: out, local: local, remote: remote, closed: make(chan struct{}),
		readBy: newDeadline(), writeBy: newDeadline(),
	}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	for {
		expired := c.readBy.expired()
		if err := c.usable(expired); err != nil {
			return 0, opError("read", string(c.remote), err)
		}
		if len(p) == 0 {
			return 0, nil
		}
		n, wait, err := c.in.tryRead(p)
		if err == io.EOF {
			return n, err
		}
		if err != nil {
			return n, opError("read", string(c.remote), err)
		}
		if n > 0 {
			return n, nil
		}
		select {
		case <-wait:
		case <-c.closed:
		case <-expired:
		case <-c.readBy.moved():
		}
	}
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	done := 0
	for {
		expired := c.writeBy.expired()
		if err := c.usable(expired); err != nil {
			return done, opError("write", string(c.remote), err)
		}
		n, wait, err := c.out.tryWrite(p[done:])
		done += n
		if err != nil {
			return done, opError("write", string(c.remote), err)
		}
		if done == len(p) {
			return done, nil
		}
		select {
		case <-wait:
		case <-c.closed:
		case <-expired:
		case <-c.writeBy.moved():
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
func (c *conn) Close() error {
	err := opError("close", string(c.remote), net.ErrClosed)
	c.once.Do(func() {
		close(c.closed)
		c.out.update(func() { c.out.ended = true })
		c.in.update(func() { c.in.stopped = true })
		c.in.net.removeStream(c.in)
		c.readBy.set(time.Time{})
		c.writeBy.set(time.Time{})
		err = nil
	})
	return err
}

// abort resets both directions.
func (c *conn) abort() {
	c.in.reset(true)
	c.out.reset(false)
	c.Close()
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
