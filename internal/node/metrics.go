package node

import (
	"context"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/replica"
)

// openMetrics shows what is counted at a scrape, when the parts are there that know.
func (n *Node) openMetrics(ctx context.Context) error {
	n.metrics.Count(n.counts)
	n.metrics.Busiest(n.skew.shown)
	n.stops = append(n.stops, n.background(ctx, "skew", n.watchSkew))
	n.metrics.Detail(n.replicas)
	return nil
}

// counts is what /metrics says of partitions and the disk.
func (n *Node) counts() metrics.Counts {
	c := metrics.Counts{ActiveController: n.quorum.Leadership().Leading}
	h := n.quorum.Image().Health(n.o.Config.Node.ID)
	c.UnderReplicated, c.UnderMinISR = h.UnderReplicated, h.UnderMinISR
	if c.ActiveController {
		c.Offline = h.Offline
	}
	room, err := n.dir.Room()
	c.DiskUsed, c.DiskLimit, c.DiskKnown = room.Used, room.Limit, err == nil
	return c
}

// replicas yields what /metrics/detail says of each partition on this node. A partition whose log is not open (yet, or any more) is left out, and
// one whose topic the Image does not name.
func (n *Node) replicas(yield func(metrics.Replica)) {
	img := n.quorum.Image()
	for _, tp := range n.host.Partitions() {
		t := img.TopicByID(tp.Topic)
		s, ok := n.host.Describe(tp)
		if t == nil || img.Topic(t.Name) != t || int(tp.Partition) >= len(t.Partitions) || !ok || s.End == kafka.NoOffset {
			continue
		}
		yield(metrics.Replica{
			Topic: t.Name, Partition: tp.Partition, Leads: s.Role == replica.Leading, ISR: len(t.Partitions[tp.Partition].ISR),
			LogStart: int64(s.Start), HighWatermark: int64(s.HW), LogEnd: int64(s.End), LogBytes: s.Size,
		})
	}
}
