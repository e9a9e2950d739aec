package coordinator

import (
	"fmt"
	"slices"
	"sync"
	"time"

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
	states   int // of all patterns
	begun    int // how often all began anew
}

// matched is what an expression matches. It does not change.
type matched struct {
	pattern *group.Pattern
	looked  int      // so many of the cache's names were looked at
	refused error    // to look at the others takes too long
	all     []string // those of them that it matches
	version uint64   // an Image
	topics  []string // the topics of it that it matches, in order
}

// check looks at all names with an expression that a client brings. The error says what is wrong with it, or that this takes longer than
// patternTimeMax; it stays refused then while it is remembered.
func (c *patternCache) check(img *metadata.Image, pattern string) error {
	m, err := c.look(img, pattern, time.Now().Add(patternTimeMax))
	if err != nil {
		return err
	}
	return m.refused
}

// matching returns the topics of an Image that an expression matches, which was accepted when it came. The result must not be changed.
func (c *patternCache) matching(img *metadata.Image, pattern string) []string {
	m, err := c.look(img, pattern, time.Time{})
	if err != nil {
		return nil // a newer release may read more
	}
	return m.topics
}

// look ends at a time, if there is one, and keeps what it has.
func (c *patternCache) look(img *metadata.Image, pattern string, until time.Time) (*matched, error) {
	m, names, begun := c.get(img, pattern)
	switch {
	case m != nil && (m.version == img.Version() && m.refused == nil || m.refused != nil && !until.IsZero()):
		return m, nil
	case m == nil:
		p, err := group.CompilePattern(pattern)
		if err != nil {
			return nil, err
		}
		m = &matched{pattern: p}
	}
	next := &matched{pattern: m.pattern, looked: m.looked, all: slices.Clip(m.all), version: img.Version()}
	for ; next.looked < len(names); next.looked++ {
		if !until.IsZero() && time.Now().After(until) {
			next.refused = fmt.Errorf("to match it against the names of %d topics takes longer than %v", len(names), patternTimeMax)
			break
		}
		if name := names[next.looked]; m.pattern.MatchString(name) {
			next.all = append(next.all, name)
		}
	}
	for _, name := range next.all {
		if t := img.Topic(name); t != nil && t.State == metadata.StateReady && !t.Internal {
			next.topics = append(next.topics, name)
		}
	}
	slices.Sort(next.topics)
	c.put(pattern, next, begun)
	return next, nil
}

// get returns what is known of an expression, nil when that is nothing, and the names to look at, among which are those of the Image.
func (c *patternCache) get(img *metadata.Image, pattern string) (m *matched, names []string, begun int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || img.Version() != c.version {
		if len(c.names) > 2*img.TopicCount()+namesSpare {
			c.known = nil // most are gone
		}
		if c.known == nil {
			c.known, c.names, c.patterns, c.states, c.begun = map[string]struct{}{}, nil, map[string]*matched{}, 0, c.begun+1
		}
		c.version = img.Version()
		for t := range img.Topics() {
			if _, ok := c.known[t.Name]; !ok {
				c.known[t.Name], c.names = struct{}{}, append(c.names, t.Name)
			}
		}
	}
	return c.patterns[pattern], c.names, c.begun
}

// put remembers a result, unless somebody has looked at more names meanwhile; a full cache forgets the results of all others.
func (c *patternCache) put(pattern string, m *matched, begun int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.patterns[pattern]
	switch {
	case begun != c.begun || old != nil && old.looked > m.looked:
		return
	case old == nil && (len(c.patterns) >= patternsMax || c.states+m.pattern.States > patternStatesMax):
		c.patterns, c.states = map[string]*matched{}, 0
	}
	if old == nil {
		c.states += m.pattern.States
	}
	c.patterns[pattern] = m
}
