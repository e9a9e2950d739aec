package coordinator

import (
	"regexp"
	"slices"
	"sync"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// catalog is an Image as the group core sees topics.
type catalog struct {
	img      *metadata.Image
	patterns *patternCache
	sees     func(reader, topic string) bool // nil: everybody sees all
}

// Version numbers the Image.
func (k catalog) Version() uint64 { return k.img.Version() }

// Topic finds a topic in service. Those of the cluster's own are no group's to read by chance, but one that names them may.
func (k catalog) Topic(name string) (kafka.TopicID, int32, bool) {
	t := k.img.Topic(name)
	if t == nil || t.State != metadata.StateReady {
		return kafka.TopicID{}, 0, false
	}
	return t.ID, int32(len(t.Partitions)), true
}

// Matching lists the topics that a regular expression matches as a whole and reader may see, without the cluster's own. The rights are those in
// force, which may be newer than the Image; the heartbeat after that judges anew.
func (k catalog) Matching(pattern, reader string) ([]string, error) {
	names, err := k.patterns.matching(k.img, pattern)
	if err != nil || reader == "" || k.sees == nil {
		return names, err
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !k.sees(reader, name) }), nil
}

// patternCache remembers what the expressions of subscriptions match. An expression costs a look at every topic, and every member of a
// group brings the same one with every heartbeat.
type patternCache struct {
	mu       sync.Mutex
	patterns map[string]matched
}

// matched is what an expression matches in one version of the Image.
type matched struct {
	compiled *regexp.Regexp
	version  uint64
	names    []string
}

func (c *patternCache) matching(img *metadata.Image, pattern string) ([]string, error) {
	m, known := c.get(pattern)
	if known && m.version == img.Version() {
		return m.names, nil
	}
	if !known {
		compiled, err := group.CompilePattern(pattern)
		if err != nil {
			return nil, err
		}
		m.compiled = compiled
	}
	m.version, m.names = img.Version(), nil
	for t := range img.Topics() {
		if t.State == metadata.StateReady && !t.Internal && m.compiled.MatchString(t.Name) {
			m.names = append(m.names, t.Name)
		}
	}
	slices.Sort(m.names)
	c.put(pattern, m)
	return m.names, nil
}

func (c *patternCache) get(pattern string) (matched, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.patterns[pattern]
	return m, ok
}

// put remembers a result; a full cache begins anew.
func (c *patternCache) put(pattern string, m matched) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.patterns == nil || len(c.patterns) >= patternsMax {
		c.patterns = map[string]matched{}
	}
	c.patterns[pattern] = m
}

// withCatalog gives an event the topics as they are when it is decided. One shard decides in the order of its inbox, so it never sees them
// go back (I13); the connections that bring its events do not keep such an order.
func (s *shard) withCatalog(ev group.Event) group.Event {
	switch e := ev.(type) {
	case group.ConsumerHeartbeat:
		e.Catalog = s.catalog()
		return e
	case group.Join:
		e.Catalog = s.catalog()
		return e
	case group.Sync:
		e.Catalog = s.catalog()
		return e
	}
	return ev
}

func (s *shard) catalog() catalog {
	return catalog{s.c.cfg.Image(), &s.c.patterns, s.c.cfg.Sees}
}
