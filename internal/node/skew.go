package node

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/replica"
)

const (
	// skewEvery is the time over which records are counted.
	skewEvery = time.Minute
	// busiestMax bounds the partitions that are shown (I14).
	busiestMax = 10
	// skewMax is the most that is told: beside partitions that get nothing, any is infinitely busy.
	skewMax = 1000
)

// skew knows which partitions get most records (R173).
type skew struct {
	busiest atomic.Pointer[[]metrics.Busy]
}

// shown is what a scrape shows.
func (s *skew) shown() []metrics.Busy {
	if b := s.busiest.Load(); b != nil {
		return *b
	}
	return nil
}

// watchSkew counts the records of each partition again and again.
func (n *Node) watchSkew(ctx context.Context) error {
	look := time.NewTicker(skewEvery)
	defer look.Stop()
	was, at := n.ends(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
		now := n.ends()
		busiest := busiest(was, now, time.Since(at))
		n.skew.busiest.Store(&busiest)
		was, at = now, time.Now()
	}
}

// held is a copy of a partition on this node.
type held struct {
	topic string
	end   kafka.Offset
	leads bool
}

// ends are the copies of user topics on this node, led and followed.
func (n *Node) ends() map[kafka.TopicPartition]held {
	img, out := n.quorum.Image(), map[kafka.TopicPartition]held{}
	for _, tp := range n.host.Partitions() {
		t := img.TopicByID(tp.Topic)
		if t == nil || t.Internal || img.Topic(t.Name) != t {
			continue
		}
		if s, ok := n.host.Describe(tp); ok && s.End != kafka.NoOffset {
			out[tp] = held{t.Name, s.End, s.Role == replica.Leading}
		}
	}
	return out
}

// busiest are the partitions led here that got most records between two looks, the first first. Each is held against the others of its topic on this
// node, which are all where every node has a copy, and a sample elsewhere.
func busiest(was, now map[kafka.TopicPartition]held, took time.Duration) []metrics.Busy {
	type whole struct {
		records float64
		count   int
	}
	topics, out := map[kafka.TopicID]whole{}, []metrics.Busy(nil)
	got := func(tp kafka.TopicPartition) float64 { return float64(max(now[tp].end-was[tp].end, 0)) }
	for tp := range now {
		if _, known := was[tp]; known {
			w := topics[tp.Topic]
			topics[tp.Topic] = whole{w.records + got(tp), w.count + 1}
		}
	}
	for tp, h := range now {
		records := got(tp)
		if _, known := was[tp]; !known || !h.leads || records == 0 {
			continue
		}
		b := metrics.Busy{Topic: h.topic, Partition: tp.Partition, Rate: records / took.Seconds()}
		if w := topics[tp.Topic]; w.count > 1 {
			others := (w.records - records) / float64(w.count-1)
			b.Skew = min(records/max(others, records/skewMax), skewMax)
		}
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b metrics.Busy) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return out[:min(len(out), busiestMax)]
}
