package quota

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// burst is what a bucket holds, in seconds of its rate: a client that was quiet may take so much at once. It is what a client is above its quota by
	// at most, over any span: 3 % over 30 s.
	burst = 1.0
	// WaitMax bounds a wait, and a debt to as much: a client that owes more, as after a quota that was set far too small, is let in once in that time.
	WaitMax = 5 * time.Minute
)

// bucket is what may be taken: it fills with time, and taking empties it, below zero if need be.
type bucket struct {
	dead atomic.Bool // forgotten: another bucket counts in its place

	mu    sync.Mutex // a leaf
	rate  float64    // what it gains a second
	level float64    // what may be taken, at the time at; negative: a debt
	at    time.Time
}

func newBucket(rate float64, now time.Time) *bucket {
	return &bucket{rate: rate, level: rate * burst, at: now}
}

// fillLocked brings the level up to now. A time before the last one counts as that.
func (b *bucket) fillLocked(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.level = min(b.level+b.rate*d.Seconds(), b.rate*burst)
		b.at = now
	}
}

// take takes n and returns how long it is until the debt, if there is one, is paid.
func (b *bucket) take(n float64, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fillLocked(now)
	b.level = max(b.level-n, -b.rate*WaitMax.Seconds())
	if b.level >= 0 {
		return 0
	}
	return max(time.Duration(-b.level/b.rate*float64(time.Second)), 1)
}

// give puts back n that was taken, never above what the bucket holds.
func (b *bucket) give(n float64, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fillLocked(now)
	b.level = min(b.level+n, b.rate*burst)
}

// holds is the most that may be taken without a debt.
func (b *bucket) holds() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rate * burst
}

// setRate changes the rate from now on; what is owed stays owed, what is saved is cut to the new burst.
func (b *bucket) setRate(rate float64, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rate == rate {
		return
	}
	b.fillLocked(now)
	b.rate = rate
	b.level = max(min(b.level, rate*burst), -rate*WaitMax.Seconds())
}

// forget ends a bucket that is full, and says whether it was.
func (b *bucket) forget(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fillLocked(now)
	if b.level < b.rate*burst {
		return false
	}
	b.dead.Store(true)
	return true
}
