package coordinator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/replica"
)

// backlogs is what is remembered between two looks at the groups: for trends, and so that a loss is told once. Its lock is a leaf.
type backlogs struct {
	mu     sync.Mutex
	trails map[trailKey]*trail
	round  uint64
}

type trailKey struct {
	group string
	tp    kafka.TopicPartition
}

// trail is a group in one partition over time.
type trail struct {
	older, newer sample
	lost         group.LostRange // what was told
	round        uint64
}

// sample is the lag at a time; the zero value is none.
type sample struct {
	at  time.Time
	lag int64
}

// Backlog says what a group has not read, with the answers of the partitions' leaders of this moment; the report of a group that is not there has no
// state. Errors: those of Wait.Result, and ctx's.
func (c *Coordinator) Backlog(ctx context.Context, groupID string) (*group.Report, error) {
	w := c.Submit(groupID, func(token uint64) group.Event {
		return group.ListOffsets{Token: token, Group: groupID, CurrentID: c.currentID}
	})
	r, err := c.listed(ctx, w)
	if err != nil {
		return nil, err
	}
	if len(r.Groups) == 0 {
		return &group.Report{Group: groupID}, nil
	}
	return &c.judge(ctx, r.Groups)[0], nil
}

// listed waits for an answer.
func (c *Coordinator) listed(ctx context.Context, w *Wait) (*group.OffsetsReply, error) {
	for !w.Done() {
		select {
		case <-w.Ready():
		case <-ctx.Done():
			w.Cancel()
			return nil, ctx.Err()
		}
	}
	got, err := w.Result()
	if err != nil {
		return nil, err
	}
	r, ok := got.(*group.OffsetsReply)
	if !ok {
		return nil, fmt.Errorf("a list of offsets was answered with a %T", got)
	}
	return r, nil
}

func (c *Coordinator) currentID(topic string) kafka.TopicID {
	if t := c.cfg.Image().Topic(topic); t != nil && t.State == metadata.StateReady {
		return t.ID
	}
	return kafka.TopicID{}
}

// judge asks the leaders about all partitions of the groups, and applies the rules.
func (c *Coordinator) judge(ctx context.Context, groups []group.GroupOffsets) []group.Report {
	img := c.cfg.Image()
	var items []replica.BacklogItem
	for i := range groups {
		for _, o := range groups[i].Offsets {
			it := replica.BacklogItem{TP: kafka.TopicPartition{Topic: o.ID, Partition: o.Partition}, Leader: kafka.NoNode, Offset: o.Offset}
			if t := img.TopicByID(o.ID); t != nil && int(o.Partition) < len(t.Partitions) {
				it.Leader = t.Partitions[o.Partition].Leader
			}
			items = append(items, it)
		}
	}
	told := c.cfg.Replicas.Backlogs(ctx, items)
	out := make([]group.Report, len(groups))
	now, n := time.Now(), 0
	for i := range groups {
		g := &groups[i]
		out[i] = group.Report{Group: g.Group, Members: g.Members, State: group.CaughtUp, Undo: g.Undo}
		for _, o := range g.Offsets {
			f := facts(g, o, &told[n])
			f.Before, f.Ago = c.backlogs.before(trailKey{g.Group, items[n].TP}, now)
			b := group.Judge(f)
			out[i].Partitions = append(out[i].Partitions, group.PartitionReport{Topic: o.Topic, ID: o.ID, Partition: o.Partition, BacklogFacts: f, Backlog: b})
			out[i].Worsen(b.State)
			n++
		}
	}
	return out
}

func facts(g *group.GroupOffsets, o group.StoredOffset, told *replica.Backlog) group.BacklogFacts {
	f := group.BacklogFacts{Committed: o.Offset, SinceMove: o.Since, Members: g.Members, Start: told.Start, End: told.End}
	if told.Err != nil {
		f.Why = told.Err.Error()
		return f
	}
	f.Known, f.Unread, f.Oldest, f.LossIn, f.Expires = true, told.Unread, told.Oldest, told.LossIn, told.Expires
	return f
}

// before is an earlier lag to compare with; ago is 0 when there is none.
func (b *backlogs) before(key trailKey, now time.Time) (lag int64, ago time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.trails[key]
	if t == nil || t.older.at.IsZero() {
		return 0, 0
	}
	return t.older.lag, now.Sub(t.older.at)
}

// Watch looks at all groups again and again: it counts what they have not read, and tells of losses, until ctx ends.
func (c *Coordinator) Watch(ctx context.Context) {
	tick := time.NewTicker(backlogsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.look(ctx)
		}
	}
}

// look is one round over the shards of this node.
func (c *Coordinator) look(ctx context.Context) {
	c.backlogs.begin()
	var rows []metrics.Backlog
	left := backlogPartitionsMax
	for _, s := range c.all() {
		for after, more := "", true; more && left > 0 && ctx.Err() == nil; {
			w := c.ask(s, group.ListOffsets{After: after, Limit: min(left, backlogPageMax), CurrentID: c.currentID})
			r, err := c.listed(ctx, w)
			if err != nil || len(r.Groups) == 0 {
				break // a shard that is loading is looked at the next time
			}
			for _, report := range c.judge(ctx, r.Groups) {
				left -= len(report.Partitions)
				rows = c.take(&report, rows)
			}
			after, more = r.Groups[len(r.Groups)-1].Group, r.More
		}
	}
	c.backlogs.end()
	if left <= 0 {
		c.cfg.Log.Warn("groups have more partitions than are looked at; the backlog of the rest is not in the metrics", "limit", backlogPartitionsMax)
	}
	c.cfg.Metrics.Backlogs.Set(group.BacklogStates(), rows)
}

// ask puts a question to one shard.
func (c *Coordinator) ask(s *shard, ev group.ListOffsets) *Wait {
	w := newWait(s, c.tokens.Add(1))
	ev.Token = w.token
	if err := s.push(item{event: ev, wait: w}); err != nil {
		return refused(err)
	}
	return w
}

// take adds a report to the trails and the metrics, and tells of losses that are news (R72).
func (c *Coordinator) take(r *group.Report, rows []metrics.Backlog) []metrics.Backlog {
	now := time.Now()
	for i := range r.Partitions {
		p := &r.Partitions[i]
		rows = append(rows, metrics.Backlog{
			Group: r.Group, Topic: p.Topic, Partition: p.Partition, State: int(p.State), Known: p.Known, Lag: p.Lag, Oldest: p.Oldest,
			LossIn: p.LossIn, Expires: p.Expires, Trend: float64(p.Trend) / 60, HasTrend: p.HasTrend,
		})
		if !p.Known {
			continue
		}
		lost := c.backlogs.note(trailKey{r.Group, kafka.TopicPartition{Topic: p.ID, Partition: p.Partition}}, sample{now, p.Lag}, p.Lost)
		if lost.IsEmpty() {
			continue
		}
		if p.Committed > p.End { // nothing says that there ever was more, so nothing is counted
			c.cfg.Log.Warn("a group has committed more than there is: its next fetch is out of range", "group", clip(r.Group), "topic", clip(p.Topic),
				"topic_partition", p.Partition, "committed", int64(p.Committed), "end", int64(p.End), "rule", p.Rule,
				"fix", "see what would move: strandline group seek GROUP --topics TOPIC --to end; it moves each partition of the topic, with --execute")
			continue
		}
		c.cfg.Metrics.RecordsLost.Add(float64(lost.To - lost.From))
		c.cfg.Log.Warn("a group has lost records: its next fetch is out of range", "group", clip(r.Group), "topic", clip(p.Topic), "topic_partition", p.Partition,
			"committed", int64(p.Committed), "lost_from", int64(lost.From), "lost_to", int64(lost.To), "rule", p.Rule,
			"fix", "see what would move: strandline group seek GROUP --topics TOPIC --to start; it moves each partition of the topic, with --execute")
	}
	return rows
}

func (b *backlogs) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.round++
}

// end forgets the groups that were not seen in this round.
func (b *backlogs) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, t := range b.trails {
		if t.round != b.round {
			delete(b.trails, k)
		}
	}
}

// note takes in a sample, and returns what was lost since the last one.
func (b *backlogs) note(key trailKey, s sample, lost group.LostRange) group.LostRange {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.trails[key]
	if t == nil {
		t = &trail{older: s, newer: s}
		if b.trails == nil {
			b.trails = map[trailKey]*trail{}
		}
		b.trails[key] = t
	}
	t.round = b.round
	if s.at.Sub(t.newer.at) >= group.TrendOver { // the older one is then between one and two spans old
		t.older, t.newer = t.newer, s
	}
	told := t.lost
	t.lost = lost
	if lost.From == told.From && !lost.IsEmpty() {
		return group.LostRange{From: max(lost.From, told.To), To: lost.To}
	}
	return lost
}
