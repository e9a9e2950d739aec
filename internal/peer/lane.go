package peer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"strandline.dev/internal/kafka"
)

// lane is the way to one node in one class: a connection, or the attempts to get one.
type lane struct {
	p     *Peers
	to    kafka.NodeID
	class Class

	mu       sync.Mutex // a leaf
	conn     *conn
	attempt  *attempt // in progress, or nil
	failures int      // dials in a row
	notYet   time.Time
	early    []*frame // one-way messages that wait for the attempt
}

// attempt is a dial in progress; err may be read when done is closed.
type attempt struct {
	done chan struct{}
	err  error
}

// connect returns a usable connection. It waits for the back-off and for the dial that it starts or finds in progress; if that fails,
// so does connect.
func (l *lane) connect(ctx context.Context) (*conn, error) {
	for {
		c, a, pause, err := l.step(ctx)
		if c != nil || err != nil {
			return c, err
		}
		if a != nil {
			select {
			case <-a.done:
			case <-ctx.Done():
				return nil, unreachable(ctx)
			}
			if a.err != nil {
				return nil, a.err
			}
			continue
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-l.p.ctx.Done():
			t.Stop()
		case <-ctx.Done():
			t.Stop()
			return nil, unreachable(ctx)
		}
	}
}

// step returns a connection, an attempt to wait for, or a pause.
func (l *lane) step(ctx context.Context) (*conn, *attempt, time.Duration, error) {
	if ctx.Err() != nil {
		return nil, nil, 0, unreachable(ctx)
	}
	self := l.p.cfg.Self()
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.current(self); c != nil {
		return c, nil, 0, nil
	}
	if l.attempt != nil {
		return nil, l.attempt, 0, nil
	}
	if pause := time.Until(l.notYet); pause > 0 && !l.p.isClosed() {
		return nil, nil, pause, nil
	}
	return nil, l.dial(self), 0, nil
}

// current returns the connection if it may be used; the lock is held. One that was opened under another identity is
// left to end: the other side must not take this process for what it was (a node that has joined a cluster since, for example).
func (l *lane) current(self Identity) *conn {
	c := l.conn
	if c == nil {
		return nil
	}
	if c.self == self && c.usable() {
		return c
	}
	l.conn = nil
	if c.self != self {
		go c.retire() // it may close the socket, which is not for under a lock
	}
	return nil
}

// dial starts an attempt; the lock is held.
func (l *lane) dial(self Identity) *attempt {
	a := &attempt{done: make(chan struct{})}
	l.attempt = a
	if !l.p.begin() {
		a.err = fmt.Errorf("%w: %w", ErrUnreachable, errClosed)
		l.attempt = nil
		close(a.done)
		return a
	}
	go func() {
		defer l.p.running.Done()
		c, err := l.open(self)
		l.settle(a, c, err)
		if c != nil {
			c.run()
			l.p.forget(c)
		}
	}()
	return a
}

// open dials and says hello.
func (l *lane) open(self Identity) (*conn, error) {
	address, ok := l.p.cfg.Resolve(l.to)
	if !ok {
		return nil, fmt.Errorf("%w: the address of node %v is not known", ErrUnreachable, l.to)
	}
	h := &hello{version: protocolVersion, self: self, class: l.class, expected: l.to}
	c, err := l.p.greet(l.p.ctx, address, h)
	if err != nil {
		return nil, err
	}
	if !l.p.remember(c) {
		c.end(errClosed)
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, errClosed)
	}
	return c, nil
}

// settle ends an attempt.
func (l *lane) settle(a *attempt, c *conn, err error) {
	l.mu.Lock()
	early := l.early
	l.early, l.attempt = nil, nil
	if err != nil {
		l.failures++
		l.notYet = time.Now().Add(backOff(l.failures))
	} else {
		l.failures, l.conn = 0, c
		for i, f := range early {
			if c.enqueue(f, 0) != nil {
				early = early[i:]
				break
			}
			early[i] = nil
		}
	}
	l.mu.Unlock()
	for _, f := range early {
		if f != nil {
			f.release()
			l.p.cfg.Metrics.Dropped.Inc()
		}
	}
	a.err = err
	close(a.done)
}

// send queues a one-way frame, at most while a dial is in progress.
func (l *lane) send(f *frame) error {
	self := l.p.cfg.Self()
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.current(self); c != nil {
		if err := c.enqueue(f, 0); !errors.Is(err, errStale) {
			return err
		}
		l.conn = nil
	}
	if l.attempt == nil {
		if time.Until(l.notYet) > 0 {
			return fmt.Errorf("%w: node %v, after %d failed dials", ErrUnreachable, l.to, l.failures)
		}
		if a := l.dial(self); l.attempt == nil {
			return a.err
		}
	}
	if len(l.early) >= earlyFramesMax {
		return fmt.Errorf("%w: node %v, %v", ErrBusy, l.to, l.class)
	}
	l.early = append(l.early, f)
	return nil
}

// backOff is the pause after so many failed dials in a row. The jitter keeps nodes from dialling a newcomer in step.
func backOff(failures int) time.Duration {
	d := backOffMax
	if failures < 5 {
		d = min(d, backOffMin<<(failures-1))
	}
	return d/2 + rand.N(d/2)
}
