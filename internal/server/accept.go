package server

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"strandline.dev/internal/kafka"
)

// Serve accepts connections on l until ctx ends, then stops gracefully: it accepts no more, lets parked requests finish for
// Limits.Drain, and closes. It returns nil after a stop, and an error when the listener fails for good or its advertised address is
// not one. It closes l.Net.
func (s *Server) Serve(ctx context.Context, l Listener) error {
	advertise, err := parseAdvertise(l.Advertise)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { l.Net.Close() })
	defer stop()
	defer l.Net.Close()
	set := &connSet{conns: map[*conn]struct{}{}}
	if l.Door.asks() {
		swept := make(chan struct{})
		go func() { defer close(swept); s.sweep(ctx, set) }()
		defer func() { stop(); <-swept }()
	}
	err = s.accept(ctx, l, Call{Principal: kafka.Anonymous, Listener: l.Name, Advertise: advertise}, set)
	set.stop(s.limits.Drain)
	return err
}

// accept runs the accept loop. A failed accept (too many open files) is retried with a growing pause: giving up would turn a moment's
// shortage into an outage.
func (s *Server) accept(ctx context.Context, l Listener, common Call, set *connSet) error {
	pause := acceptBackoffMin
	for {
		nc, err := l.Net.Accept()
		switch {
		case err == nil:
			pause = acceptBackoffMin
			s.admit(ctx, common, &l.Door, set, nc)
			continue
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		}
		s.cfg.Log.Warn("accepting a connection failed; retrying", "listener", l.Name, "error", err, "pause", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, acceptBackoffMax)
	}
}

func (s *Server) admit(ctx context.Context, common Call, door *Door, set *connSet, nc net.Conn) {
	if n := s.open.Add(1); n > int64(s.limits.Connections) {
		s.open.Add(-1)
		s.peers.closed(reasonTooMany, peerName(nc), "listener", common.Listener, "limit", s.limits.Connections)
		nc.Close()
		return
	}
	delay := s.connectDelay(nc)
	if delay > connectWaitMax {
		s.open.Add(-1)
		s.peers.closed(reasonTooFast, peerName(nc), "listener", common.Listener, "ahead", delay)
		nc.Close()
		return
	}
	s.cfg.Metrics.ConnectionsOpen.Inc()
	// The connection outlives ctx by the graceful stop, so it takes ctx's values but not its end.
	c := newConn(context.WithoutCancel(ctx), s, common, door, nc)
	if !set.add(c) {
		s.dropped(c)
		return
	}
	go func() {
		defer set.done(c)
		defer s.dropped(c)
		if c.delay(delay) {
			c.run()
		}
	}()
}

func (s *Server) dropped(c *conn) {
	c.close()
	s.open.Add(-1)
	s.cfg.Metrics.ConnectionsOpen.Dec()
}

func peerName(nc net.Conn) string {
	if a := nc.RemoteAddr(); a != nil {
		return a.String()
	}
	return "unknown"
}

// connSet are the open connections of one listener.
type connSet struct {
	mu       sync.Mutex
	conns    map[*conn]struct{}
	stopping bool
	wg       sync.WaitGroup
}

func (cs *connSet) add(c *conn) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.stopping {
		return false
	}
	cs.conns[c] = struct{}{}
	cs.wg.Add(1)
	return true
}

func (cs *connSet) done(c *conn) {
	cs.mu.Lock()
	delete(cs.conns, c)
	cs.mu.Unlock()
	cs.wg.Done()
}

// stop drains every connection and closes what is left after the bound. All goroutines have ended when it returns. A connection whose first
// request has not come yet gets firstFrameMax: to clients (franz-go among them) a connection that ends before its first answer is a wrong
// password, which they do not retry.
func (cs *connSet) stop(bound time.Duration) {
	cs.each(func(c *conn) {
		if c.spoke.Load() {
			c.drain()
			return
		}
		time.AfterFunc(min(bound, firstFrameMax), c.drain)
	})
	force := time.AfterFunc(bound, func() { cs.each(func(c *conn) { c.close() }) })
	defer force.Stop()
	cs.wg.Wait()
}

func (cs *connSet) each(f func(*conn)) {
	cs.mu.Lock()
	cs.stopping = true
	cs.mu.Unlock()
	for _, c := range cs.open() {
		f(c)
	}
}

// open lists the open connections.
func (cs *connSet) open() []*conn {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	all := make([]*conn, 0, len(cs.conns))
	for c := range cs.conns {
		all = append(all, c)
	}
	return all
}
