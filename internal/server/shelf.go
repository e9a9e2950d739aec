package server

import (
	"math/bits"
	"sync"
	"time"
)

// frame is a request's bytes.
type frame struct {
	b    []byte
	home *shelf
}

// shelf keeps free request buffers in classes of powers of two, last in, first out: the next request gets bytes that are still in the
// CPU's cache. It is no sync.Pool because the collector empties those: a node with a small heap collects many times a second under load,
// and then most buffers are made, cleared and faulted in anew, which brings the next collection about. What nobody took for shelfIdle is
// let go, so an idle node keeps nothing.
type shelf struct {
	limit int // bytes
	mu    struct {
		sync.Mutex
		bytes   int
		classes [shelfClasses]shelfClass
		timer   *time.Timer
		ticking bool
	}
}

// shelfClass are the free buffers of one size; least is how few of them there were since the last sweep: so many were not needed.
type shelfClass struct {
	free  []*frame
	least int
}

// frameClass returns the class whose buffers hold n bytes.
func frameClass(n int) int { return bits.Len(uint(max(n, 1)-1) / frameMin) }

// frameRoom is how many bytes the buffer has that take returns for n.
func frameRoom(n int) int {
	if n > frameMax {
		return n
	}
	return frameMin << frameClass(n)
}

// take returns an empty buffer with room for n bytes.
func (s *shelf) take(n int) *frame {
	if n > frameMax {
		return &frame{make([]byte, 0, n), s}
	}
	class := frameClass(n)
	if f := s.pop(class); f != nil {
		f.b = f.b[:0]
		return f
	}
	return &frame{make([]byte, 0, frameMin<<class), s}
}

func (s *shelf) pop(class int) *frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.mu.classes[class]
	n := len(c.free)
	if n == 0 {
		return nil
	}
	f := c.free[n-1]
	c.free[n-1] = nil
	c.free = c.free[:n-1]
	c.least = min(c.least, n-1)
	s.mu.bytes -= cap(f.b)
	return f
}

// putFrame gives a buffer back; nil is none.
func putFrame(f *frame) {
	if f == nil || cap(f.b) < frameMin || cap(f.b) > frameMax {
		return
	}
	f.home.put(f)
}

func (s *shelf) put(f *frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.bytes+cap(f.b) > s.limit {
		return
	}
	c := &s.mu.classes[bits.Len(uint(cap(f.b)/frameMin))-1] // the largest class that it can fill
	c.free = append(c.free, f)
	s.mu.bytes += cap(f.b)
	if s.mu.ticking {
		return
	}
	s.mu.ticking = true
	if s.mu.timer == nil {
		s.mu.timer = time.AfterFunc(shelfIdle, s.sweep)
	} else {
		s.mu.timer.Reset(shelfIdle)
	}
}

// sweep lets go of the buffers that nobody took since the last one, and ends when there are none.
func (s *shelf) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.mu.classes {
		c := &s.mu.classes[i]
		for _, f := range c.free[:c.least] {
			s.mu.bytes -= cap(f.b)
		}
		n := copy(c.free, c.free[c.least:]) // the longest unused lie in front
		clear(c.free[n:])
		c.free, c.least = c.free[:n], n
		if n == 0 {
			c.free = nil
		}
	}
	s.mu.ticking = s.mu.bytes > 0
	if s.mu.ticking {
		s.mu.timer.Reset(shelfIdle)
	}
}
