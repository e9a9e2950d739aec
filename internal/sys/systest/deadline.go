package systest

import (
	"sync"
	"time"
)

// deadline is a moment after which waiting ends; it can be moved while somebody waits.
type deadline struct{ state *deadlineState }

type deadlineState struct {
	mu      sync.Mutex
	timer   *time.Timer
	passed  chan struct{} // closed when the deadline has passed
	changed chan struct{} // closed when it was moved
}

func newDeadline() deadline {
	return deadline{&deadlineState{passed: make(chan struct{}), changed: make(chan struct{})}}
}

// set moves the deadline; the zero time takes it away.
func (d deadline) set(t time.Time) {
	s := d.state
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	// A new channel each time: an old timer that fires late closes the old one, which nobody looks at any more.
	passed := make(chan struct{})
	s.passed = passed
	close(s.changed)
	s.changed = make(chan struct{})
	if t.IsZero() {
		return
	}
	if left := time.Until(t); left > 0 {
		s.timer = time.AfterFunc(left, func() { close(passed) })
	} else {
		close(passed)
	}
}

// watch returns a channel that is closed when the deadline has passed, and one that is closed when it is moved: a waiter
// then watches anew.
func (d deadline) watch() (passed, moved <-chan struct{}) {
	d.state.mu.Lock()
	defer d.state.mu.Unlock()
	return d.state.passed, d.state.changed
}
