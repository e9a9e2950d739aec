package systest

import (
	"sync"
	"time"
)

// Wall is a settable clock. It stands still, or ticks with the standard library's time, which in a bubble is fake.
type Wall struct {
	mu      sync.Mutex
	at      time.Time
	since   time.Time // when `at` was true; only for a ticking clock
	ticking bool
}

// NewWall returns a clock that stands at start until it is moved.
func NewWall(start time.Time) *Wall { return &Wall{at: start} }

// NewTickingWall returns a clock that shows start now and runs on.
func NewTickingWall(start time.Time) *Wall { return &Wall{at: start, since: timeNow(), ticking: true} }

func timeNow() time.Time { return time.Now() }

// Now implements sys.Wall.
func (w *Wall) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ticking {
		return w.at
	}
	return w.at.Add(time.Since(w.since))
}

// Set moves the clock to t, backwards too.
func (w *Wall) Set(t time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.since = t, timeNow()
}

// Step moves the clock by d, which may be negative.
func (w *Wall) Step(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}
