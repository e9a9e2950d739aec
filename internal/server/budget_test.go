package server

import (
	"sync"
	"testing"
	"time"
)

func TestBudget_WaitsAndGivesBack(t *testing.T) {
	b := newBudget(100)
	gone := make(chan struct{})
	a, c, d := &lease{b: b, gone: gone}, &lease{b: b, gone: gone}, &lease{b: b, gone: gone}
	if !a.Reserve(90) || !c.Reserve(20) { // c may run over: it is the one
		t.Fatal("refused")
	}
	got := make(chan bool)
	go func() { got <- d.Reserve(5) }()
	select {
	case <-got:
		t.Fatal("a second lease ran over the limit")
	case <-time.After(10 * time.Millisecond):
	}
	a.release()
	if !<-got {
		t.Fatal("not granted after a release")
	}
	c.release()
	d.release()
	if b.Used() != 0 {
		t.Errorf("%d bytes left", b.Used())
	}
}

// Half-read frames never wait for each other for ever: one of them may run over.
func TestBudget_NoDeadlock(t *testing.T) {
	b := newBudget(1000)
	var wg sync.WaitGroup
	for range 20 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			l := &lease{b: b}
			for range 10 {
				if !l.Reserve(100) {
					t.Error("refused")
				}
			}
			l.settle()
			l.release()
		}()
	}
	wg.Wait()
	if b.Used() != 0 || b.mu.overdrawn != nil || len(b.mu.waiters) != 0 {
		t.Errorf("%d bytes left, overdrawn %v, %d waiters", b.Used(), b.mu.overdrawn, len(b.mu.waiters))
	}
}

func TestBudget_GonePeerStopsWaiting(t *testing.T) {
	b := newBudget(10)
	a, over := &lease{b: b}, &lease{b: b}
	a.Reserve(10)
	over.Reserve(1)
	gone := make(chan struct{})
	l := &lease{b: b, gone: gone}
	close(gone)
	if l.Reserve(5) {
		t.Error("granted")
	}
	if len(b.mu.waiters) != 0 {
		t.Error("the wait is still listed")
	}
}

func TestBudget_ResponsesTakeWhatIsThere(t *testing.T) {
	b := newBudget(100)
	l := &lease{b: b}
	if n := l.takeUpTo(70, 10); n != 70 {
		t.Errorf("%d, want 70", n)
	}
	if n := (&lease{b: b}).takeUpTo(70, 10); n != 30 {
		t.Errorf("%d, want the 30 that are left", n)
	}
	if n := (&lease{b: b}).takeUpTo(70, 10); n != 10 {
		t.Errorf("%d, want the floor", n)
	}
	l.keep(5)
	if b.Used() != 45 {
		t.Errorf("%d used, want 45", b.Used())
	}
}

// frameClass covers every size, and a buffer goes back to a class it can fill.
func TestFrames_Classes(t *testing.T) {
	s := &shelf{limit: 2 * frameMax}
	for _, n := range []int{1, frameMin, frameMin + 1, 100_000, frameMax} {
		b := s.take(n)
		if cap(b.b) < n {
			t.Errorf("%d bytes: capacity %d", n, cap(b.b))
		}
		putFrame(b)
	}
	putFrame(&frame{make([]byte, 5000), s}) // between two classes: belongs to the lower one
	if b := s.take(5000); cap(b.b) < 5000 {
		t.Errorf("capacity %d for 5000 bytes", cap(b.b))
	}
}
