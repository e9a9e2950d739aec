package peer

import "context"

// call is a request that waits for its answer.
type call struct {
	kind   Kind
	answer Message
	// done is closed when err is set and answer is not touched any more.
	done chan struct{}
	err  error

	// The fields below belong to the connection's lock.

	state callState
}

// callState says how far a call has come. What is known of its outcome follows from it.
type callState uint8

const (
	waiting callState = iota // in the queue: not sent
	sent                     // being written or written: it may have been handled
	claimed                  // its answer is being read
	over                     // given up, or answered
)

// wait waits for a call's answer or the end of ctx. Its answer is not touched after it has returned.
func (c *conn) wait(ctx context.Context, correlation int64, k *call) error {
	select {
	case <-k.done:
		return k.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	before := k.state
	if before != claimed {
		k.state = over
		delete(c.pending, correlation)
	}
	c.mu.Unlock()
	switch before {
	case waiting:
		return unreachable(ctx)
	case sent:
		return broken(ctx)
	}
	// The answer is being read, which the connection's read deadline bounds; or it has been.
	<-k.done
	return k.err
}

// claim takes the call whose answer begins to arrive, or nil if it was given up.
func (c *conn) claim(correlation int64) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.pending[correlation]
	if k != nil {
		delete(c.pending, correlation)
		k.state = claimed
	}
	return k
}

// finish ends a claimed call.
func (k *call) finish(err error) {
	k.err = err
	close(k.done)
}
