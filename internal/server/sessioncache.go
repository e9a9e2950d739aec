package server

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"strandline.dev/internal/kafka"
)

// sessionOwner is whom a session was given to: its id is good for nobody else. Shares are counted by host, since a client chooses its
// own client id.
type sessionOwner struct {
	principal kafka.Principal
	client    string
	host      string
}

// sessionCache bounds what fetch sessions may take: slots in all, a share of them for each host, partitions in all. A client that gets
// no session sends full requests: slower, and right.
type sessionCache struct {
	mu struct {
		sync.Mutex
		byID  map[int32]*session
		owned map[string]int // sessions of each host
		parts int            // partitions of all sessions
	}
}

func newSessionCache() *sessionCache {
	c := &sessionCache{}
	c.mu.byID, c.mu.owned = map[int32]*session{}, map[string]int{}
	return c
}

// find returns the session if it is the owner's: another client's session is as good as none (K41).
func (c *sessionCache) find(id int32, owner sessionOwner, now time.Time) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.mu.byID[id]
	if s == nil || s.owner != owner {
		return nil
	}
	s.used = now
	return s
}

// open makes a session with room for parts partitions, or returns nil when there is no room. slots is the configured number of
// sessions; 0 turns sessions off.
func (c *sessionCache) open(owner sessionOwner, parts, slots int, byID bool, now time.Time) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	slots = min(slots, sessionsMax)
	if c.mu.owned[owner.host] >= max(1, min(sessionShareMax, slots/4)) && !c.evictLocked(now, owner.host) {
		return nil
	}
	for len(c.mu.byID) >= slots || c.mu.parts+parts > sessionPartitionsMax {
		if !c.evictLocked(now, "") {
			return nil
		}
	}
	s := &session{id: c.freshLocked(), owner: owner, byID: byID, used: now, size: parts}
	s.mu.epoch = nextEpoch(sessionOpen)
	s.mu.parts = make(map[fetchKey]*fetchPart, parts)
	c.mu.byID[s.id] = s
	c.mu.owned[owner.host]++
	c.mu.parts += parts
	return s
}

// resize counts a session's partitions anew; false when that is more than there is room for, and the session is then dropped.
func (c *sessionCache) resize(s *session, parts int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.byID[s.id] != s {
		return false
	}
	if c.mu.parts+parts-s.size > sessionPartitionsMax {
		c.dropLocked(s)
		return false
	}
	c.mu.parts += parts - s.size
	s.size = parts
	return true
}

// drop ends a session.
func (c *sessionCache) drop(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.byID[s.id] == s {
		c.dropLocked(s)
	}
}

func (c *sessionCache) dropLocked(s *session) {
	delete(c.mu.byID, s.id)
	c.mu.parts -= s.size
	if c.mu.owned[s.owner.host]--; c.mu.owned[s.owner.host] == 0 {
		delete(c.mu.owned, s.owner.host)
	}
}

// evictLocked drops the session that was used least recently (of host, unless it is ""), if it has been idle long enough.
func (c *sessionCache) evictLocked(now time.Time, host string) bool {
	var oldest *session
	for _, s := range c.mu.byID {
		if host != "" && s.owner.host != host {
			continue
		}
		if oldest == nil || s.used.Before(oldest.used) {
			oldest = s
		}
	}
	if oldest == nil || now.Sub(oldest.used) < sessionIdle {
		return false
	}
	c.dropLocked(oldest)
	return true
}

// freshLocked returns an unused id above 0 that nobody can guess.
func (c *sessionCache) freshLocked() int32 {
	for {
		var b [4]byte
		rand.Read(b[:]) // never fails
		id := int32(binary.LittleEndian.Uint32(b[:]) &^ (1 << 31))
		if id != 0 && c.mu.byID[id] == nil {
			return id
		}
	}
}

// fits says whether one request may bring that many partitions.
func fits(parts int) kafka.ErrorCode {
	if parts > partitionsMax {
		return kafka.PolicyViolation
	}
	return kafka.None
}
