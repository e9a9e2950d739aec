package replica

import (
	"sync"
	"time"
)

// pace bounds the bytes a second that this node gives to replicas that are not in sync: those that a move adds, and those that come back. It is
// asked in their turn only, so that replicas in sync never wait for it (R113). Its lock is a leaf.
//
// It is paid for when it has been read: an answer goes out whole, up to catchUpBytes, and the time that it takes at the rate has to pass before
// the next one.
type pace struct {
	// rate is what is in force now, in bytes a second; paceFree or more is no bound.
	rate func() int64

	mu struct {
		sync.Mutex
		left float64
		at   time.Time
	}
}

// paceFree is the rate from which on nothing is bounded: no machine copies as fast, and sums stay far from overflow.
const paceFree = int64(1) << 50

// wait is how long it takes at a moment until bytes may go out; 0: now.
func (p *pace) wait(now time.Time) time.Duration {
	rate := p.rate()
	if rate >= paceFree {
		return 0
	}
	perSecond := float64(max(rate, 1))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.left = min(p.mu.left+perSecond*now.Sub(p.mu.at).Seconds(), perSecond*paceBurst.Seconds())
	p.mu.at = now
	if p.mu.left > 0 {
		return 0
	}
	pause := time.Duration(-p.mu.left / perSecond * float64(time.Second)) // out of range at an absurd rate, hence both bounds
	return min(max(pause, paceWaitMin), paceWaitMax)
}

// spend notes that bytes have gone out.
func (p *pace) spend(bytes int) {
	if bytes == 0 || p.rate() >= paceFree {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.left -= float64(bytes)
}
