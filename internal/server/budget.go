package server

import "sync"

// budget is the node's bound on the bytes of requests and responses in flight (I14). A request waits for its bytes as they arrive, so
// a size that is only announced costs nothing (C086); a response never waits, it is made smaller or runs over by a floor.
//
// Half-read frames could hold everything and wait for each other for ever; so one lease at a time may run over the limit, and the
// total stays below limit + one frame + the floors of the fetches.
type budget struct {
	limit int64

	mu struct {
		sync.Mutex
		used      int64
		overdrawn *lease
		waiters   []*waiter
	}
}

type waiter struct {
	l       *lease
	n       int64
	granted chan struct{}
}

// lease is what one request or response holds of the budget. It belongs to one goroutine at a time.
type lease struct {
	b    *budget
	n    int64
	gone <-chan struct{} // ends a wait: the connection is closed
}

func newBudget(limit int64) *budget { return &budget{limit: limit} }

// Used is the number of bytes held at the moment.
func (b *budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.used
}

// Reserve takes n more bytes, waiting for them if need be; false means that the connection is gone.
func (l *lease) Reserve(n int) bool {
	b := l.b
	b.mu.Lock()
	if b.grantLocked(l, int64(n)) {
		b.mu.Unlock()
		return true
	}
	w := &waiter{l: l, n: int64(n), granted: make(chan struct{})}
	b.mu.waiters = append(b.mu.waiters, w)
	b.mu.Unlock()
	select {
	case <-w.granted:
		return true
	case <-l.gone:
		b.forget(w)
		return false
	}
}

// take holds n more bytes without waiting, whatever the limit: for responses that exist already.
func (l *lease) take(n int64) {
	l.b.mu.Lock()
	l.n += n
	l.b.mu.used += n
	l.b.mu.Unlock()
}

// takeUpTo holds as many of want bytes as are free, but at least floor, and says how many.
func (l *lease) takeUpTo(want, floor int64) int64 {
	b := l.b
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(want, max(floor, b.limit-b.mu.used))
	l.n += n
	b.mu.used += n
	return n
}

// keep gives back all but n bytes.
func (l *lease) keep(n int64) {
	if l.b == nil || l.n <= n {
		return
	}
	b := l.b
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.used -= l.n - n
	l.n = n
	if n == 0 && b.mu.overdrawn == l {
		b.mu.overdrawn = nil
	}
	b.serveLocked()
}

func (l *lease) release() { l.keep(0) }

// settle ends the part of a lease's life in which it may wait: a whole frame has been read, so another may run over.
func (l *lease) settle() {
	b := l.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.overdrawn == l {
		b.mu.overdrawn = nil
	}
}

func (b *budget) grantLocked(l *lease, n int64) bool {
	over := b.mu.used+n > b.limit
	if over && b.mu.overdrawn != nil && b.mu.overdrawn != l {
		return false
	}
	if over {
		b.mu.overdrawn = l
	}
	l.n += n
	b.mu.used += n
	return true
}

func (b *budget) serveLocked() {
	for len(b.mu.waiters) > 0 {
		w := b.mu.waiters[0]
		if !b.grantLocked(w.l, w.n) {
			return
		}
		b.mu.waiters = b.mu.waiters[1:]
		close(w.granted)
	}
}

// forget takes back a wait whose connection is gone. What was granted in the meantime stays in the lease, which its owner releases.
func (b *budget) forget(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, x := range b.mu.waiters {
		if x == w {
			b.mu.waiters = append(b.mu.waiters[:i:i], b.mu.waiters[i+1:]...)
			return
		}
	}
}
