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
	State        int // its number; of a group it is the largest of its partitions
	Known        bool
	Lag          int64
	Oldest       time.Duration // age of the oldest unread record
	LossIn       time.Duration // until retention passes it, where Expires
	Expires      bool
	Trend        float64 // records a second, where HasTrend
	HasTrend     bool
}

// Backlogs exposes the newest look at the groups that this node coordinates: by group in /metrics, by partition in /metrics/detail.
type Backlogs struct{ newest atomic.Pointer[backlogLook] }

// backlogLook is one look: the names of the states by their numbers, of which 0 is none, and a row for each partition of a group.
type backlogLook struct {
	states []string
	rows   []Backlog
}

// Set replaces what is exposed.
func (b *Backlogs) Set(states []string, rows []Backlog) {
	for i := range rows { // the library refuses labels that are not UTF-8
		rows[i].Group = strings.ToValidUTF8(rows[i].Group, "?")
	}
	b.newest.Store(&backlogLook{states, rows})
}

// backlogDescs are the series of one set of labels.
type backlogDescs struct{ lag, trend, oldest, loss, unknown *prometheus.Desc }

func newBacklogDescs(labels ...string) backlogDescs {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, labels, nil) }
	return backlogDescs{
		lag:     desc("strandline_group_lag_records", "Committed records that a group has not read, of partitions whose leader has answered."),
		trend:   desc("strandline_group_lag_trend_records_per_second", "Records a second by which a group's lag has grown, or has shrunk where negative, from half a minute to a minute ago until now; absent when that is not known of each partition."),
		oldest:  desc("strandline_group_oldest_unprocessed_seconds", "Age of the oldest record that a group has not read, since its append; 0 when there is none."),
		loss:    desc("strandline_group_time_to_loss_seconds", "Time until retention passes a record that a group has not read; absent when it never does or nothing is unread."),
		unknown: desc("strandline_group_unknown_partitions", "Partitions of a group whose leader has not answered: their lag is not known."),
	}
}

var (
	byGroup     = newBacklogDescs("group")
	byPartition = newBacklogDescs("group", "topic", "partition")
	// stateDesc is a state set: a line for each state, so that one that begins and one that ends are both seen.
	stateDesc = prometheus.NewDesc("strandline_group_state", "1 for the state that a group is in, the worst of its partitions, and 0 for all others.", []string{"group", "state"}, nil)
)

// sums is a group over its partitions.
type sums struct {
	state        int
	lag          int64
	trend        float64
	trendless    int // partitions whose trend is not known, without which the sum says something else
	oldest, loss time.Duration
	loses        bool
	known        int
	unknown      int
}

func (s *sums) add(r *Backlog) {
	s.state = max(s.state, r.State)
	if r.HasTrend {
		s.trend += r.Trend
	} else {
		s.trendless++
	}
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
	if s.trendless == 0 {
		value(d.trend, s.trend)
	}
	value(d.oldest, s.oldest.Seconds())
	if s.loses {
		value(d.loss, s.loss.Seconds())
	}
}

// sendState sends the state set of a group.
func (s *sums) sendState(out chan<- prometheus.Metric, states []string, group string) {
	for i := 1; i < len(states); i++ {
		v := 0.0
		if i == s.state {
			v = 1
		}
		out <- prometheus.MustNewConstMetric(stateDesc, prometheus.GaugeValue, v, group, states[i])
	}
}

// groupCollector and partitionCollector are the two views.
type (
	groupCollector     struct{ b *Backlogs }
	partitionCollector struct{ b *Backlogs }
)

// Describe implements prometheus.Collector.
func (groupCollector) Describe(out chan<- *prometheus.Desc) {
	byGroup.describe(out)
	out <- stateDesc
}

// Describe implements prometheus.Collector.
func (partitionCollector) Describe(out chan<- *prometheus.Desc) { byPartition.describe(out) }

func (d backlogDescs) describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{d.lag, d.trend, d.oldest, d.loss, d.unknown} {
		out <- desc
	}
}

// Collect implements prometheus.Collector. Groups beyond the limit are one, "other".
func (c groupCollector) Collect(out chan<- prometheus.Metric) {
	look := c.b.look()
	groups := map[string]*sums{}
	for _, r := range look.rows {
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
		s.sendState(out, look.states, name)
	}
}

// Collect implements prometheus.Collector.
func (c partitionCollector) Collect(out chan<- prometheus.Metric) {
	seen := map[Backlog]bool{} // two groups may have one label
	for _, r := range c.b.look().rows {
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

func (b *Backlogs) look() backlogLook {
	if look := b.newest.Load(); look != nil {
		return *look
	}
	return backlogLook{}
}
