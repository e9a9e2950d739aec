package server

import (
	"sync"
	"sync/atomic"
	"time"
)

// budget is the node's bound on the bytes of requests and responses in flight (I14). A request waits for its bytes as they arrive, so
// a size that is only announced costs nothing (C086); a response never waits, it is made smaller or runs over by a floor.
//
// Half-read frames could hold everything and wait for each other for ever; so one lease at a time may run over the limit, and the
// total stays below limit + one frame + the floors of the fetches. Frames that are sent byte by byte could hold everything too: when
// somebody has waited for shortage, the largest frame that arrives below frameRateMin is dropped with its connection.
type budget struct {
	limit int64
	// shortage is how long a wait may last before a slow frame is dropped for it.
	shortage time.Duration

	mu struct {
		sync.Mutex
		used      int64
		overdrawn *lease
		waiters   []*waiter
		// reading are the leases of frames that have not arrived whole, checked is when their progress was last looked at.
		reading map[*lease]struct{}
		checked time.Time
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
	// drop closes the connection for the sake of others; nil for a lease that is no frame's.
	drop func()
	// arrived counts the frame's bytes that are here, seen is what it was at the budget's last check; waiting says that the frame waits
	// for the budget and not for its peer. reading is set once the budget knows of the frame.
	arrived atomic.Int64
	seen    int64
	since   time.Time // when the peer was last given room
	waiting bool
	reading bool
}

func newBudget(limit int64) *budget {
	b := &budget{limit: limit, shortage: shortageMax}
	b.mu.reading = map[*lease]struct{}{}
	return b
}

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
	if l.drop != nil && !l.reading {
		l.reading, l.since = true, time.Now()
		b.mu.reading[l] = struct{}{}
	}
	if b.grantLocked(l, int64(n)) {
		b.mu.Unlock()
		return true
	}
	w := &waiter{l: l, n: int64(n), granted: make(chan struct{})}
	b.mu.waiters = append(b.mu.waiters, w)
	l.waiting = true
	b.mu.Unlock()
	short := time.NewTicker(b.shortage)
	defer short.Stop()
	for {
		select {
		case <-w.granted:
			return true
		case <-l.gone:
			b.forget(w)
			return false
		case <-short.C:
			b.dropSlowest(time.Now())
		}
	}
}

// dropSlowest closes the connection of the largest frame of which too few bytes have come since the last check to deserve the memory
// that others wait for. A frame that itself waits for the budget is not slow.
func (b *budget) dropSlowest(now time.Time) {
	b.mu.Lock()
	since := now.Sub(b.mu.checked)
	if since < b.shortage {
		b.mu.Unlock()
		return
	}
	b.mu.checked = now
	enough := int64(frameRateMin * min(since, 2*b.shortage).Seconds())
	var slowest *lease
	for l := range b.mu.reading {
		arrived := l.arrived.Load()
		slow := !l.waiting && now.Sub(l.since) >= b.shortage && arrived-l.seen < enough && since < 2*b.shortage
		l.seen = arrived
		if slow && (slowest == nil || l.n > slowest.n) {
			slowest = l
		}
	}
	delete(b.mu.reading, slowest)
	b.mu.Unlock()
	if slowest != nil {
		slowest.drop()
	}
}

// roomy says whether n bytes more would leave half of the budget free.
func (b *budget) roomy(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.used+int64(n) <= b.limit/2
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
	delete(b.mu.reading, l)
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
	delete(b.mu.reading, l)
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
		w.l.waiting, w.l.since = false, time.Now()
		close(w.granted)
	}
}

// forget takes back a wait whose connection is gone. What was granted in the meantime stays in the lease, which its owner releases.
func (b *budget) forget(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.mu.reading, w.l)
	for i, x := range b.mu.waiters {
		if x == w {
			b.mu.waiters = append(b.mu.waiters[:i:i], b.mu.waiters[i+1:]...)
			return
		}
	}
}
