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
	if !a.Reserve(10) || !c.Reserve(10) || !d.Reserve(10) || !a.Reserve(65) || !c.Reserve(20) { // c may run over: it is the one
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
	gone := make(chan struct{})
	over, begun, beginner := &lease{b: b}, &lease{b: b, gone: gone}, &lease{b: b, gone: gone}
	if !over.Reserve(1) || !begun.Reserve(1) || !over.Reserve(10) {
		t.Fatal("refused")
	}
	close(gone)
	if begun.Reserve(5) || beginner.Reserve(5) {
		t.Error("granted")
	}
	if len(b.mu.waiters)+len(b.mu.beginners) != 0 {
		t.Error("a wait is still listed")
	}
}

// A request begins while a quarter is free and nobody who has begun waits; of those, the one that holds most goes first. One that is alone
// begins whatever its size.
func TestBudget_WhatHasBegunGoesFirst(t *testing.T) {
	b := newBudget(100)
	most, less, beginner, large := &lease{b: b}, &lease{b: b}, &lease{b: b}, &lease{b: b}
	if !most.Reserve(30) || !less.Reserve(25) || beginner.tryReserve(21) || !most.Reserve(10) || !most.Reserve(50) {
		t.Fatal("want 55 to begin, 21 more not to, and what has begun to go on, one of them over the limit")
	}
	granted := make(chan *lease, 4)
	waiting := 0
	wait := func(l *lease, n int) {
		go func() { l.Reserve(n); granted <- l }()
		waiting++
		eventually(t, "it waits", func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.mu.waiters)+len(b.mu.beginners) == waiting
		})
	}
	next := func(want *lease) {
		t.Helper()
		if got := <-granted; got != want {
			t.Fatal("out of order")
		}
	}
	more := &lease{b: b}
	more.take(30)
	wait(beginner, 20)
	wait(less, 60)
	wait(more, 60)
	wait(large, 200)
	most.settle()
	most.release() // 55 are held; 60 more run over, which only one may
	next(more)
	if late := (&lease{b: b}); late.tryReserve(1) {
		t.Error("a latecomer overtakes those that wait")
	}
	more.release()
	next(less)
	less.release()
	next(beginner)
	if b.Used() != 20 {
		t.Errorf("%d bytes are held, want the 20 of the beginner", b.Used())
	}
	beginner.release()
	next(large)
	if b.Used() != 200 {
		t.Errorf("%d bytes are held, want the 200 of the one that is alone", b.Used())
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
