package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/replica"
	"strandline.dev/internal/sys"
)

// Replicas are this node's partitions. *replica.Host is the implementation; the interface is the seam at which tests make appends
// and reads fail.
type Replicas interface {
	Append(items []replica.AppendItem, acks int16, timeout time.Duration) *replica.Produce
	Read(items []replica.FetchItem, o replica.FetchOptions, dst *replica.FetchBuffer) []replica.FetchResult
	Park(items []replica.FetchItem, o replica.FetchOptions, minBytes int) *replica.FetchWait
	Describe(tp kafka.TopicPartition) (replica.PartitionStatus, bool)
	WaitApplied(ctx context.Context, version uint64) error
	// Backlogs asks the leaders of partitions, wherever they are.
	Backlogs(ctx context.Context, items []replica.BacklogItem) []replica.Backlog
}

// Controller takes the creation of the topic to the active controller.
type Controller interface {
	Submit(ctx context.Context, ev metadata.Event) (reply any, version uint64, err error)
}

// Config is what a Coordinator is built from. All fields are required.
type Config struct {
	Node       kafka.NodeID
	Image      func() *metadata.Image
	Replicas   Replicas
	Controller Controller
	// Broker returns the broker settings in force; a shard takes its own when it is loaded.
	Broker func() config.Broker
	// TopicConfig returns the settings in force for a topic: offsets live at least as long as the records they point to.
	TopicConfig func(*metadata.Topic) config.Topic
	// Sees says whether a reader, as heartbeats name it, may see a topic that an expression matches; nil: everybody sees all.
	Sees    func(reader, topic string) bool
	Wall    sys.Wall
	Log     *slog.Logger
	Metrics *metrics.Broker
}

// Coordinator runs the group shards of this node.
type Coordinator struct {
	cfg      Config
	tokens   atomic.Uint64
	loads    chan struct{} // a place for each shard that reads its log
	creation creation
	clock    clock
	backlogs backlogs
	widened  atomic.Uint64 // the version of the Image that growths were last looked for in
	patterns patternCache

	mu struct {
		sync.Mutex
		shards  map[int32]*shard // by partition
		version uint64           // of the newest Image seen
		purging map[kafka.TopicID]struct{}
		growths growths
		stopped bool
	}
}

// New returns a Coordinator that coordinates nothing until Update.
func New(c Config) *Coordinator {
	co := &Coordinator{cfg: c, loads: make(chan struct{}, loadsMax), clock: startClock(c.Wall)}
	co.mu.shards = map[int32]*shard{}
	return co
}

// Update brings the shards to what an Image says, after the host has been brought there: shards start, end, and learn which topics are
// purged. It is idempotent, and an Image older than the last one is ignored (I13).
func (c *Coordinator) Update(img *metadata.Image) {
	t := topicIn(img)
	grown := c.widen(img)
	over, purged, current := c.forget(img, t)
	for _, s := range over {
		s.end(ErrNotCoordinator)
	}
	if !current {
		return
	}
	if len(purged) > 0 {
		for _, s := range c.all() {
			s.push(item{purged: purged})
		}
	}
	if grown {
		for _, s := range c.all() {
			_ = s.push(item{}) // wakes it
		}
	}
	if t == nil {
		return
	}
	for p := range int32(len(t.Partitions)) {
		if c.leads(t, p) {
			_, _ = c.adopt(t, p) // where the host is not ready, the first request tries again
		}
	}
}

// forget takes out the shards that the Image gives to nobody here, and finds the topics whose purge is news. An epoch that the host
// has not taken up yet ends nothing: only what the Image says does.
func (c *Coordinator) forget(img *metadata.Image, t *metadata.Topic) (over []*shard, purged []kafka.TopicID, current bool) {
	purging := map[kafka.TopicID]struct{}{}
	for t := range img.AllTopics() {
		if t.State == metadata.StatePurging {
			purging[t.ID] = struct{}{}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.stopped || img.Version() < c.mu.version {
		return nil, nil, false
	}
	c.mu.version = img.Version()
	for id := range purging {
		if _, known := c.mu.purging[id]; !known {
			purged = append(purged, id)
		}
	}
	c.mu.purging = purging
	for p, s := range c.mu.shards {
		if t == nil || t.ID != s.tp.Topic || !c.leads(t, p) || t.Partitions[p].LeaderEpoch != s.epoch {
			delete(c.mu.shards, p)
			over = append(over, s)
		}
	}
	return over, purged, true
}

// leads says whether an Image gives a partition to this node.
func (c *Coordinator) leads(t *metadata.Topic, p int32) bool {
	return int(p) < len(t.Partitions) && t.Partitions[p].Leader == c.cfg.Node
}

// adopt returns the shard of a partition that the Image gives to this node, starting it once the host agrees. Errors: ErrLoading while
// it does not, ErrUnreadable when it cannot.
func (c *Coordinator) adopt(t *metadata.Topic, p int32) (*shard, error) {
	if s := c.shard(t, p); s != nil {
		return s, nil
	}
	tp, epoch := kafka.TopicPartition{Topic: t.ID, Partition: p}, t.Partitions[p].LeaderEpoch
	st, ok := c.cfg.Replicas.Describe(tp)
	switch {
	case ok && st.Role == replica.Offline:
		return nil, ErrUnreadable
	case !ok || st.Role != replica.Leading || st.Epoch != epoch:
		return nil, ErrLoading
	}
	s := newShard(c, tp, epoch)
	c.mu.Lock()
	if c.mu.stopped || c.mu.shards[p] != nil { // the latter: started meanwhile, or of an older epoch that Update has yet to end
		c.mu.Unlock()
		return nil, ErrLoading
	}
	c.mu.shards[p] = s
	c.mu.Unlock()
	s.start(0)
	return s, nil
}

// shard returns the shard of a partition in the Image's epoch, or nil.
func (c *Coordinator) shard(t *metadata.Topic, p int32) *shard {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.mu.shards[p]
	if s == nil || s.tp.Topic != t.ID || s.epoch != t.Partitions[p].LeaderEpoch {
		return nil
	}
	return s
}

// all returns the shards, in no order.
func (c *Coordinator) all() []*shard {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*shard, 0, len(c.mu.shards))
	for _, s := range c.mu.shards {
		out = append(out, s)
	}
	return out
}

// Submit hands an event of one group to its shard and returns at once. event builds it around the token it is given; it must hold
// no view of memory that others change.
func (c *Coordinator) Submit(groupID string, event func(token uint64) group.Event) *Wait {
	img := c.cfg.Image()
	if img.Version() > c.widened.Load() {
		c.widen(img) // what was asked may rest on this Image
	}
	t := topicIn(img)
	if t == nil {
		return refused(ErrNotCoordinator)
	}
	p := partitionOf(groupID, len(t.Partitions))
	if !c.leads(t, p) {
		return refused(ErrNotCoordinator)
	}
	return c.submit(t, p, event)
}

// SubmitAll hands an event to every shard that this node is to have, one Wait for each.
func (c *Coordinator) SubmitAll(event func(token uint64) group.Event) []*Wait {
	t := topicIn(c.cfg.Image())
	if t == nil {
		return nil
	}
	var out []*Wait
	for p := range int32(len(t.Partitions)) {
		if c.leads(t, p) {
			out = append(out, c.submit(t, p, event))
		}
	}
	return out
}

func (c *Coordinator) submit(t *metadata.Topic, p int32, event func(token uint64) group.Event) *Wait {
	s, err := c.adopt(t, p)
	if err != nil {
		return refused(err)
	}
	token := c.tokens.Add(1)
	w := newWait(s, token)
	ev, judged := event(token), judgement{}
	if beat, ok := ev.(group.ConsumerHeartbeat); ok && beat.Pattern != nil && *beat.Pattern != "" {
		judged = c.patterns.checkInTurn(c.cfg.Image(), *beat.Pattern) // here, so that the shard is not kept from its other groups
	}
	if err := s.push(item{event: ev, wait: w, judged: judged}); err != nil {
		return refused(err)
	}
	return w
}

// replace ends a shard that cannot go on and, unless its leadership is over, puts one in its place that loads after a pause.
func (c *Coordinator) replace(s *shard, cause error) {
	var next *shard
	c.mu.Lock()
	if c.mu.shards[s.tp.Partition] == s {
		delete(c.mu.shards, s.tp.Partition)
		if !isLost(cause) && !c.mu.stopped {
			next = newShard(c, s.tp, s.epoch)
			if !s.proved.Load() {
				next.attempt = s.attempt + 1
			}
			next.mu.why = ErrLoading
			if errors.Is(cause, ErrUnreadable) {
				next.mu.why = ErrUnreadable
			}
			c.mu.shards[s.tp.Partition] = next
		}
	}
	c.mu.Unlock()
	s.end(ErrNotCoordinator)
	if next == nil {
		return
	}
	pause := min(reloadMin<<min(next.attempt, 16), reloadMax)
	c.cfg.Log.Error("a group coordinator is loaded anew", "partition", s.tp.Partition, "epoch", s.epoch, "pause", pause, "error", cause)
	next.start(pause)
}

// isLost says whether an error means that the leadership is over: another shard starts when the Image gives it again.
func isLost(err error) bool {
	for _, over := range []error{replica.ErrNotLeader, replica.ErrFencedEpoch, replica.ErrUnknownPartition, replica.ErrStopped} {
		if errors.Is(err, over) {
			return true
		}
	}
	return false
}

// Close ends all shards; what is parked gets ErrNotCoordinator. Called before the host is closed.
func (c *Coordinator) Close() {
	c.mu.Lock()
	c.mu.stopped = true
	over := c.mu.shards
	c.mu.shards = map[int32]*shard{}
	c.mu.Unlock()
	for _, s := range over {
		s.end(ErrNotCoordinator)
	}
	for _, s := range over {
		<-s.idle
	}
}
