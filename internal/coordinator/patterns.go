package coordinator

import (
	"fmt"
	"math"
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
	bytes    int    // of all patterns
	uses     uint64 // how often a pattern was asked for
	begun    int    // how often all began anew
	refusals map[string]refusal
	looking  map[string]chan struct{} // the expressions that connections look at all names with; closed when that is done

	costly sync.Mutex // of the looks of connections that take longer than shortLook one goes on at a time; taken before mu
}

// matched is what an expression matches. It does not change, but for what patternCache.mu guards.
type matched struct {
	pattern *group.Pattern
	begun   int      // patternCache.begun, to which names belong
	looked  int      // so many of the cache's names were looked at
	all     []string // those of them that it matches
	version uint64   // an Image
	topics  []string // the topics of it that it matches, in order

	isHeld bool   // a shard decides by it; guarded by patternCache.mu
	used   uint64 // patternCache.uses when it was asked for last; guarded by patternCache.mu
}

// refusal is an expression that took too long.
type refusal struct {
	why error
	at  time.Time
}

// judgement is what came of an expression that a client brings: what it matches, or why it is refused.
type judgement struct {
	pattern string
	matched *matched
	refused error
}

// size is about what an expression takes, in bytes.
func (m *matched) size() int {
	return m.pattern.States*group.PatternStateBytes + (cap(m.all)+cap(m.topics))*int(unsafe.Sizeof("")) + len(m.pattern.String())
}

// checkInTurn judges an expression that a client brings, one at a time for each: members that come together with the same one share a look. One that takes
// longer than patternTimeMax is refused, and for patternRefusedFor without another look: that one might have been held up.
func (c *patternCache) checkInTurn(img *metadata.Image, pattern string) judgement {
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
	j := c.check(img, pattern)
	c.mu.Lock()
	delete(c.looking, pattern)
	c.mu.Unlock()
	close(done)
	return j
}

func (c *patternCache) check(img *metadata.Image, pattern string) judgement {
	c.mu.Lock()
	r, isRefused := c.refusals[pattern]
	c.mu.Unlock()
	if isRefused && time.Since(r.at) < patternRefusedFor {
		return judgement{pattern, nil, r.why}
	}
	m, err := c.look(img, pattern, patternTimeMax)
	return judgement{pattern, m, err}
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

// look takes up to a limit, else it is refused. What one name takes counts for matchTimeMax at most: the rest of it the process stood still.
func (c *patternCache) look(img *metadata.Image, pattern string, limit time.Duration) (*matched, error) {
	m, names, begun := c.get(img, pattern, limit == unlimited)
	switch {
	case m != nil && m.version == img.Version():
		return m, nil
	case m == nil:
		p, err := group.CompilePattern(pattern)
		if err != nil {
			return nil, err
		}
		m = &matched{pattern: p}
	}
	next := &matched{pattern: m.pattern, begun: begun, looked: m.looked, all: slices.Clip(m.all), version: img.Version(), isHeld: limit == unlimited}
	last, isCostly := time.Now(), false
	for spent := time.Duration(0); next.looked < len(names); next.looked++ {
		switch {
		case limit == unlimited:
		case spent >= limit:
			return nil, c.refuse(pattern)
		case spent >= shortLook && !isCostly:
			c.costly.Lock()
			defer c.costly.Unlock()
			last, isCostly = time.Now(), true
		}
		if name := names[next.looked]; m.pattern.MatchString(name) {
			next.all = append(next.all, name)
		}
		now := time.Now()
		spent, last = spent+min(now.Sub(last), matchTimeMax), now
	}
	next.all = slices.Clip(next.all)
	for _, name := range next.all {
		if t := img.Topic(name); t != nil && t.State == metadata.StateReady && !t.Internal {
			next.topics = append(next.topics, name)
		}
	}
	slices.Sort(next.topics)
	next.topics = slices.Clip(next.topics)
	c.put(pattern, next)
	return next, nil
}

// refuse remembers that an expression takes too long, and says so.
func (c *patternCache) refuse(pattern string) error {
	why := fmt.Errorf("to match it against the names of all topics takes longer than %v", patternTimeMax)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refusals == nil || len(c.refusals) >= refusalsMax {
		c.refusals = map[string]refusal{}
	}
	c.refusals[pattern] = refusal{why, time.Now()}
	return why
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
	c.uses++
	if m = c.patterns[pattern]; m != nil {
		m.isHeld, m.used = m.isHeld || hold, c.uses
	}
	return m, c.names, c.begun
}

// put remembers a result, unless somebody has looked at more names meanwhile. A full cache forgets first those by which no shard decides, else anybody
// could have all forgotten with expressions of their own; for what a shard decides by also those that shards have not used the longest.
func (c *patternCache) put(pattern string, m *matched) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.patterns[pattern]
	if m.begun != c.begun || old == m || old != nil && old.looked > m.looked {
		return
	}
	m.isHeld, m.used = m.isHeld || old != nil && old.isHeld, c.uses
	c.drop(pattern, old)
	if !c.fits(m) {
		for other, o := range c.patterns {
			if !o.isHeld {
				c.drop(other, o)
			}
		}
	}
	for m.isHeld && !c.fits(m) && len(c.patterns) > 0 {
		c.dropOldest()
	}
	if c.fits(m) {
		c.patterns[pattern] = m
		c.bytes += m.size()
	}
}

// hold remembers a result by which a shard decides.
func (c *patternCache) hold(pattern string, m *matched) {
	c.mu.Lock()
	m.isHeld, m.used = true, c.uses
	c.mu.Unlock()
	c.put(pattern, m)
}

func (c *patternCache) fits(m *matched) bool {
	return len(c.patterns) < patternsMax && c.bytes+m.size() <= patternCacheBytes
}

func (c *patternCache) dropOldest() {
	var oldest string
	first := uint64(math.MaxUint64)
	for pattern, m := range c.patterns {
		if m.used <= first {
			oldest, first = pattern, m.used
		}
	}
	c.drop(oldest, c.patterns[oldest])
}

func (c *patternCache) drop(pattern string, m *matched) {
	if m != nil {
		c.bytes -= m.size()
		delete(c.patterns, pattern)
	}
}
