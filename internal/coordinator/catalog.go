package coordinator

import (
	"slices"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// catalog is an Image as the group core sees topics.
type catalog struct {
	img      *metadata.Image
	patterns *patternCache
	sees     func(reader, topic string) bool // nil: everybody sees all
	judged   judgement                       // of the expression that the event brings
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

// Check says what is wrong with the regular expression of a subscription.
func (k catalog) Check(pattern string) error {
	if k.judged.pattern == pattern {
		return k.judged.refused
	}
	return k.patterns.check(k.img, pattern).refused
}

// Matching lists the topics that a regular expression matches as a whole and reader may see, without the cluster's own. The rights are those in
// force, which may be newer than the Image; the heartbeat after that judges anew.
func (k catalog) Matching(pattern, reader string) []string {
	names := k.topics(pattern)
	if reader == "" || k.sees == nil {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !k.sees(reader, name) })
}

// Gives says whether Matching has a topic.
func (k catalog) Gives(pattern, reader, topic string) bool {
	_, isMatched := slices.BinarySearch(k.topics(pattern), topic)
	return isMatched && (reader == "" || k.sees == nil || k.sees(reader, topic))
}

// topics are those that an expression matches.
func (k catalog) topics(pattern string) []string {
	if m := k.judged.matched; m != nil && k.judged.pattern == pattern && m.version == k.img.Version() {
		k.patterns.hold(pattern, m)
		return m.topics
	}
	return k.patterns.matching(k.img, pattern)
}

// withCatalog gives an event the topics as they are when it is decided. One shard decides in the order of its inbox, so it never sees them
// go back (I13); the connections that bring its events do not keep such an order.
func (s *shard) withCatalog(it item) group.Event {
	switch e := it.event.(type) {
	case group.ConsumerHeartbeat:
		k := s.catalog()
		k.judged = it.judged
		e.Catalog = k
		return e
	case group.Join:
		e.Catalog = s.catalog()
		return e
	case group.Sync:
		e.Catalog = s.catalog()
		return e
	case group.DeleteOffsets:
		e.Catalog = s.catalog()
		return e
	}
	return it.event
}

func (s *shard) catalog() catalog {
	return catalog{img: s.c.cfg.Image(), patterns: &s.c.patterns, sees: s.c.cfg.Sees}
}
