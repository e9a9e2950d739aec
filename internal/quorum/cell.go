package quorum

import "sync/atomic"

// cell holds a value that one goroutine replaces and everybody reads. Whoever waits for the next value takes the channel
// before the value; the other order can miss a change.
type cell[T any] struct {
	state atomic.Pointer[cellState[T]]
}

type cellState[T any] struct {
	value   T
	changed chan struct{}
}

func newCell[T any](v T) *cell[T] {
	c := &cell[T]{}
	c.state.Store(&cellState[T]{value: v, changed: make(chan struct{})})
	return c
}

// load returns the current value.
func (c *cell[T]) load() T { return c.state.Load().value }

// changed returns a channel that is closed when the value is replaced.
func (c *cell[T]) changed() <-chan struct{} { return c.state.Load().changed }

// store replaces the value. Only the owner calls it.
func (c *cell[T]) store(v T) {
	old := c.state.Swap(&cellState[T]{value: v, changed: make(chan struct{})})
	close(old.changed)
}
