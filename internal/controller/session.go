package controller

import (
	"sync"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// sessions remembers when the active controller last heard each broker. Heartbeats touch it from their own goroutines, so that they never wait for
// a decision; its lock is a leaf.
type sessions struct {
	mu    sync.Mutex
	since time.Time // the beginning of the reign: nobody has been silent for longer, as far as this node knows
	heard map[kafka.NodeID]time.Time
}

// begin gives every broker a whole session from now.
func (s *sessions) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.heard = now, map[kafka.NodeID]time.Time{}
}

// touch says that a registered broker was heard.
func (s *sessions) touch(node kafka.NodeID, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard != nil {
		s.heard[node] = now
	}
}

// silent is how long a broker has not been heard in this reign.
func (s *sessions) silent(node kafka.NodeID, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.since
	if h, ok := s.heard[node]; ok && h.After(at) {
		at = h
	}
	return now.Sub(at)
}

// forgive takes a time in which this process did not run off everybody's silence: their heartbeats wait in its sockets.
func (s *sessions) forgive(slept time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = s.since.Add(slept)
	for n, at := range s.heard {
		s.heard[n] = at.Add(slept)
	}
}

// registered begins the session of a process whose registration was accepted, before it is committed and long before it is ready: a late
// request of an older process, or of another disk, must not find that nobody holds the node id.
func (c *Controller) registered(ev metadata.Event, reply any) {
	if r, ok := reply.(metadata.Registered); ok && r.OK() {
		c.sessions.touch(ev.(metadata.RegisterBroker).Node, time.Now())
	}
}
