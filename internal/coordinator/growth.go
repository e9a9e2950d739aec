package coordinator

import (
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// growths are the topics that got more partitions, in the order in which this node learned of it. A shard takes in those that it has not
// seen before it decides on anything that was asked later, so no fetch can find a new partition without its offset (R62).
type growths struct {
	widths map[kafka.TopicID]int32 // by the newest Image; nil before the first
	// taken is how many entries have left the front of list.
	taken int
	list  []group.Widened
}

// widen takes in an Image; true when a topic has grown.
func (c *Coordinator) widen(img *metadata.Image) bool {
	widths := map[kafka.TopicID]int32{}
	var ready []*metadata.Topic
	for t := range img.AllTopics() {
		if t.State == metadata.StateReady {
			widths[t.ID] = int32(len(t.Partitions))
			ready = append(ready, t)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if img.Version() <= c.widened.Load() {
		return false
	}
	g, grown := &c.mu.growths, false
	for _, t := range ready {
		if before, known := g.widths[t.ID]; known && widths[t.ID] > before {
			grown = true
			g.list = append(g.list, group.Widened{Name: t.Name, ID: t.ID, From: before, To: widths[t.ID]})
		}
	}
	if over := len(g.list) - growthsMax; over > 0 {
		g.list, g.taken = append([]group.Widened(nil), g.list[over:]...), g.taken+over
	}
	g.widths = widths
	c.widened.Store(img.Version())
	return grown
}

// grownSince returns what a shard that has seen the first n entries has to learn, and how many there are now.
func (c *Coordinator) grownSince(n int) ([]group.Widened, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := &c.mu.growths
	now := g.taken + len(g.list)
	return g.list[min(max(n-g.taken, 0), len(g.list)):len(g.list):len(g.list)], now
}

// widthOf is the number of partitions of a topic by the newest Image, 0 when there is none.
func (c *Coordinator) widthOf(id kafka.TopicID) int32 {
	t := c.cfg.Image().TopicByID(id)
	if t == nil || t.State != metadata.StateReady {
		return 0
	}
	return int32(len(t.Partitions))
}

// learnGrowth lets the core know which topics have grown since the last time.
func (s *shard) learnGrowth() {
	if s.broken {
		return
	}
	grown, now := s.c.grownSince(s.grown)
	if s.grown = now; len(grown) > 0 {
		s.step(group.TopicsWidened{Topics: grown, Width: s.c.widthOf, Catalog: s.catalog()}, s.now())
	}
}
