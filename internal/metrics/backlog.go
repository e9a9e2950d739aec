package metrics

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// groupLabelsMax bounds the groups that have lines of their own, and detailMax the lines of /metrics/detail: clients choose the names of
// groups (I14).
const (
	groupLabelsMax = 1000
	detailMax      = 20_000
)

// Backlog is what a group has not read of one partition.
type Backlog struct {
	Group, Topic string
	Partition    int32
	Known        bool
	Lag          int64
	Oldest       time.Duration // age of the oldest unread record
	LossIn       time.Duration // until retention passes it, where Expires
	Expires      bool
}

// Backlogs exposes the newest look at the groups that this node coordinates: by group in /metrics, by partition in /metrics/detail.
type Backlogs struct{ rows atomic.Pointer[[]Backlog] }

// Set replaces what is exposed.
func (b *Backlogs) Set(rows []Backlog) {
	for i := range rows { // the library refuses labels that are not UTF-8
		rows[i].Group = strings.ToValidUTF8(rows[i].Group, "?")
	}
	b.rows.Store(&rows)
}

// groupDesc are the series of one set of labels.
type backlogDescs struct{ lag, oldest, loss, unknown *prometheus.Desc }

func newBacklogDescs(labels ...string) backlogDescs {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, labels, nil) }
	return backlogDescs{
		lag:     desc("strandline_group_lag_records", "Committed records that a group has not read, of partitions whose leader has answered."),
		oldest:  desc("strandline_group_oldest_unprocessed_seconds", "Age of the oldest record that a group has not read, since its append; 0 when there is none."),
		loss:    desc("strandline_group_time_to_loss_seconds", "Time until retention passes a record that a group has not read; absent when it never does or nothing is unread."),
		unknown: desc("strandline_group_unknown_partitions", "Partitions of a group whose leader has not answered: their lag is not known."),
	}
}

var (
	byGroup     = newBacklogDescs("group")
	byPartition = newBacklogDescs("group", "topic", "partition")
)

// sums is a group over its partitions.
type sums struct {
	lag          int64
	oldest, loss time.Duration
	loses        bool
	known        int
	unknown      int
}

func (s *sums) add(r *Backlog) {
	if !r.Known {
		s.unknown++
		return
	}
	s.known++
	s.lag += r.Lag
	s.oldest = max(s.oldest, r.Oldest)
	if r.Expires && (!s.loses || r.LossIn < s.loss) {
		s.loss, s.loses = r.LossIn, true
	}
}

func (s *sums) send(out chan<- prometheus.Metric, d backlogDescs, labels ...string) {
	value := func(desc *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
	}
	value(d.unknown, float64(s.unknown))
	if s.known == 0 {
		return // unknown is not 0
	}
	value(d.lag, float64(s.lag))
	value(d.oldest, s.oldest.Seconds())
	if s.loses {
		value(d.loss, s.loss.Seconds())
	}
}

// groupCollector and partitionCollector are the two views.
type (
	groupCollector     struct{ b *Backlogs }
	partitionCollector struct{ b *Backlogs }
)

// Describe implements prometheus.Collector.
func (groupCollector) Describe(out chan<- *prometheus.Desc) { byGroup.describe(out) }

// Describe implements prometheus.Collector.
func (partitionCollector) Describe(out chan<- *prometheus.Desc) { byPartition.describe(out) }

func (d backlogDescs) describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{d.lag, d.oldest, d.loss, d.unknown} {
		out <- desc
	}
}

// Collect implements prometheus.Collector. Groups beyond the limit are one, "other".
func (c groupCollector) Collect(out chan<- prometheus.Metric) {
	groups := map[string]*sums{}
	for _, r := range c.b.newest() {
		name := r.Group
		if groups[name] == nil && len(groups) >= groupLabelsMax {
			name = other
		}
		if groups[name] == nil {
			groups[name] = &sums{}
		}
		groups[name].add(&r)
	}
	for name, s := range groups {
		s.send(out, byGroup, name)
	}
}

// Collect implements prometheus.Collector.
func (c partitionCollector) Collect(out chan<- prometheus.Metric) {
	seen := map[Backlog]bool{} // two groups may have one label
	for _, r := range c.b.newest() {
		key := Backlog{Group: r.Group, Topic: r.Topic, Partition: r.Partition}
		if seen[key] || len(seen) >= detailMax {
			continue
		}
		seen[key] = true
		var s sums
		s.add(&r)
		s.send(out, byPartition, r.Group, r.Topic, strconv.Itoa(int(r.Partition)))
	}
}

func (b *Backlogs) newest() []Backlog {
	if rows := b.rows.Load(); rows != nil {
		return *rows
	}
	return nil
}
