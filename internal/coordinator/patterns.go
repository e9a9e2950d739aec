package coordinator

import (
	"fmt"
	"slices"
	"sync"
	"time"
	"unsafe"

	"strandline.dev/internal/group"
	"strandline.dev/internal/metadata"
)

// patternCache remembers what the expressions of subscriptions match. An expression costs a look at every name, and every member of a group brings
// the same one with every heartbeat; so each name is looked at once for each expression, by the goroutine of the connection that brings it, and what a
// shard decides by it has only the names to look at that are new since.
type patternCache struct {
	mu       sync.Mutex
	version  uint64              // of the Image whose names were taken in last
	known    map[string]struct{} // names of topics that are or were there
	names    []string            // the same as they came; it only grows, until all begins anew
	patterns map[string]*matched
	bytes    int                      // of all patterns
	begun    int                      // how often all began anew
	looking  map[string]chan struct{} // the expressions that connections look at all names with; closed when that is done
}

// matched is what an expression matches. It does not change, but for isHeld, which patternCache.mu guards.
type matched struct {
	pattern   *group.Pattern
	looked    int       // so many of the cache's names were looked at
	refused   error     // to look at the others takes too long
	refusedAt time.Time // when that was found
	all       []string  // those of them that it matches
	version   uint64    // an Image
	topics    []string  // the topics of it that it matches, in order
	isHeld    bool      // a shard decides by it
}

// size is about what an expression takes, in bytes.
func (m *matched) size() int {
	return m.pattern.States*group.PatternStateBytes + (cap(m.all)+cap(m.topics))*int(unsafe.Sizeof("")) + len(m.pattern.String())
}

// check looks at all names with an expression that a client brings. The error says what is wrong with it, or that this takes longer than
// patternTimeMax; it stays refused then for patternRefusedFor, after which a look goes on where this one ended.
func (c *patternCache) check(img *metadata.Image, pattern string) error {
	m, err := c.look(img, pattern, patternTimeMax)
	if err != nil {
		return err
	}
	return m.refused
}

// checkInTurn is check, one at a time for each expression: members that come together with the same one share one look.
func (c *patternCache) checkInTurn(img *metadata.Image, pattern string) {
	done := make(chan struct{})
	for {
		c.mu.Lock()
		other, isLookedAt := c.looking[pattern]
		if !isLookedAt {
			if c.looking == nil {
				c.looking = map[string]chan struct{}{}
			}
			c.looking[pattern] = done
		}
		c.mu.Unlock()
		if !isLookedAt {
			break
		}
		<-other
	}
	_ = c.check(img, pattern) // the shard finds what came of it
	c.mu.Lock()
	delete(c.looking, pattern)
	c.mu.Unlock()
	close(done)
}

// matching returns the topics of an Image that an expression matches, which was accepted when it came; a shard decides by them. The result must
// not be changed.
func (c *patternCache) matching(img *metadata.Image, pattern string) []string {
	m, err := c.look(img, pattern, unlimited)
	if err != nil {
		return nil // a newer release may read more
	}
	return m.topics
}

// unlimited is the limit of a look that shall end.
const unlimited = time.Duration(-1)

// look takes up to a limit, and keeps what it has. What one name takes counts for matchTimeMax at most: the rest of it the process stood still.
func (c *patternCache) look(img *metadata.Image, pattern string, limit time.Duration) (*matched, error) {
	m, names, begun := c.get(img, pattern, limit == unlimited)
	last := time.Now()
	switch {
	case m != nil && m.refused == nil && m.version == img.Version():
		return m, nil
	case m != nil && m.refused != nil && limit != unlimited && last.Sub(m.refusedAt) < patternRefusedFor:
		return m, nil
	case m == nil:
		p, err := group.CompilePattern(pattern)
		if err != nil {
			return nil, err
		}
		m = &matched{pattern: p}
	}
	next := &matched{pattern: m.pattern, looked: m.looked, all: slices.Clip(m.all), version: img.Version(), isHeld: limit == unlimited}
	for spent := time.Duration(0); next.looked < len(names); next.looked++ {
		if limit != unlimited && spent >= limit {
			next.refused, next.refusedAt = fmt.Errorf("to match it against the names of all topics takes longer than %v", patternTimeMax), last
			break
		}
		if name := names[next.looked]; m.pattern.MatchString(name) {
			next.all = append(next.all, name)
		}
		now := time.Now()
		spent, last = spent+min(now.Sub(last), matchTimeMax), now
	}
	for _, name := range next.all {
		if t := img.Topic(name); t != nil && t.State == metadata.StateReady && !t.Internal {
			next.topics = append(next.topics, name)
		}
	}
	slices.Sort(next.topics)
	next.topics = slices.Clip(next.topics)
	c.put(pattern, next, begun)
	return next, nil
}

// get returns what is known of an expression, nil when that is nothing, and the names to look at, among which are those of the Image. hold says that
// a shard asks.
func (c *patternCache) get(img *metadata.Image, pattern string, hold bool) (m *matched, names []string, begun int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || img.Version() != c.version {
		if len(c.names) > 2*img.TopicCount()+namesSpare {
			c.known = nil // most are gone
		}
		if c.known == nil {
			c.known, c.names, c.patterns, c.bytes, c.begun = map[string]struct{}{}, nil, map[string]*matched{}, 0, c.begun+1
		}
		c.version = img.Version()
		for t := range img.Topics() {
			if _, ok := c.known[t.Name]; !ok {
				c.known[t.Name], c.names = struct{}{}, append(c.names, t.Name)
			}
		}
	}
	if m = c.patterns[pattern]; m != nil && hold {
		m.isHeld = true
	}
	return m, c.names, c.begun
}

// put remembers a result, unless somebody has looked at more names meanwhile. A full cache forgets those by which no shard decides, else anybody
// could have all forgotten with expressions of their own; when that is not enough it takes only what a shard holds, for which all others go.
func (c *patternCache) put(pattern string, m *matched, begun int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.patterns[pattern]
	if begun != c.begun || old != nil && old.looked > m.looked {
		return
	}
	m.isHeld = m.isHeld || old != nil && old.isHeld
	c.drop(pattern, old)
	if !c.fits(m) {
		for other, o := range c.patterns {
			if !o.isHeld {
				c.drop(other, o)
			}
		}
	}
	if !c.fits(m) {
		if !m.isHeld {
			return
		}
		c.patterns, c.bytes = map[string]*matched{}, 0
	}
	c.patterns[pattern] = m
	c.bytes += m.size()
}

func (c *patternCache) fits(m *matched) bool {
	return len(c.patterns) < patternsMax && c.bytes+m.size() <= patternCacheBytes
}

func (c *patternCache) drop(pattern string, m *matched) {
	if m != nil {
		c.bytes -= m.size()
		delete(c.patterns, pattern)
	}
}
