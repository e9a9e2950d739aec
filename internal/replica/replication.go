package replica

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/storage"
)

// replication is what the partitions of a host share for having copies on other nodes. Its locks are leaves: they are taken under a
// partition's lock, and nothing is called while they are held.
type replication struct {
	node    kafka.NodeID
	dir     *storage.Dir
	log     *slog.Logger
	metrics *metrics.Broker
	peers   *peer.Peers // nil on a node that is alone
	submit  Submit      // nil where nothing is to be proposed
	lagMax  time.Duration
	now     func() time.Time // wall clock, for events
	lookUp  func(kafka.TopicPartition) *partition

	// broker is the registration of this process.
	broker atomic.Int64
	// sequence numbers what this process says about partitions, to leaders and in one order for each partition.
	sequence atomic.Uint64
	// brokers are the registrations of the newest Image.
	brokers atomic.Pointer[map[kafka.NodeID]registration]

	sessions sessions
	fetchers fetchers
	pace     pace

	// changes are partitions whose ISR may have to change, damages those whose damage is to be reported, repairs those to be built anew,
	// starts those whose log start is behind their leader's.
	// ids those whose record ids are to be read from the log.
	changes, damages, repairs, starts, ids chores

	// life ends with the host.
	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup // fetchers
}

// Submit puts an event to the active controller, wherever that is, and returns its reply when it is committed. After an error the event may
// have been decided or not.
type Submit func(ctx context.Context, ev metadata.Event) (reply any, version uint64, err error)

// registration is what is known of a broker.
type registration struct {
	epoch kafka.BrokerEpoch
	// up: it is not fenced and not about to stop, so it may enter an ISR.
	up bool
}

func newReplication(c Config, lookUp func(kafka.TopicPartition) *partition) *replication {
	r := &replication{
		node: c.Node, dir: c.Dir, log: c.Log, metrics: c.Metrics, peers: c.Peers, submit: c.Submit, lagMax: c.LagMax, now: c.Machine.Wall.Now,
		lookUp:  lookUp,
		changes: newChores(), damages: newChores(), repairs: newChores(), starts: newChores(), ids: newChores(),
	}
	if r.lagMax <= 0 {
		r.lagMax = lagMaxDefault
	}
	if r.pace.rate = c.CopyRate; r.pace.rate == nil {
		r.pace.rate = func() int64 { return paceFree }
	}
	r.broker.Store(int64(unregistered))
	r.brokers.Store(&map[kafka.NodeID]registration{})
	r.sessions.heard, r.sessions.begun = map[kafka.NodeID]time.Time{}, time.Now()
	r.sessions.by, r.fetchers.by = map[kafka.NodeID]*session{}, map[kafka.NodeID]*fetcher{}
	r.life, r.end = context.WithCancel(context.Background())
	if r.peers != nil {
		r.peers.HandleRequest(peer.KindReplicaFetch, newFetchRequest, r.serveFetch)
		r.peers.HandleOneWay(peer.KindReplicaProgress, func() peer.Message { return &progressReport{} }, r.takeProgress)
	}
	return r
}

// stop ends the fetchers.
func (r *replication) stop() {
	r.fetchers.mu.Lock()
	r.end() // under the lock: no fetcher begins afterwards
	r.fetchers.mu.Unlock()
	r.running.Wait()
}

// know takes in the registrations of an Image.
func (r *replication) know(img *metadata.Image) {
	next := map[kafka.NodeID]registration{}
	for b := range img.Brokers() {
		next[b.ID] = registration{epoch: b.Epoch, up: !b.Fenced && !b.Stopping}
	}
	r.brokers.Store(&next)
}

// mayJoin is the registration of a node that may enter an ISR.
func (r *replication) mayJoin(n kafka.NodeID) (kafka.BrokerEpoch, bool) {
	b, ok := (*r.brokers.Load())[n]
	return b.epoch, ok && b.up
}

// chores are partitions that wait for work that is not done under their lock, each at most once.
type chores struct {
	wake chan struct{}
	mu   *choreList
}

type choreList struct {
	sync.Mutex
	list []*partition
	in   map[*partition]struct{}
}

func newChores() chores {
	return chores{wake: make(chan struct{}, 1), mu: &choreList{in: map[*partition]struct{}{}}}
}

// add lists a partition. Its lock may be held.
func (c chores) add(p *partition) {
	c.mu.Lock()
	_, listed := c.mu.in[p]
	if !listed {
		c.mu.in[p] = struct{}{}
		c.mu.list = append(c.mu.list, p)
	}
	c.mu.Unlock()
	if !listed {
		wake(c.wake)
	}
}

// take returns at most limit partitions. If more are left it wakes whoever takes them.
func (c chores) take(limit int) []*partition {
	c.mu.Lock()
	n := min(limit, len(c.mu.list))
	ps := c.mu.list[:n:n]
	c.mu.list = c.mu.list[n:]
	for _, p := range ps {
		delete(c.mu.in, p)
	}
	more := len(c.mu.list) > 0
	c.mu.Unlock()
	if more {
		wake(c.wake)
	}
	return ps
}

// run does the chores as they come, until ctx ends. After f has failed for some, which it adds again, there is a pause that grows.
func (c chores) run(ctx context.Context, limit int, f func(context.Context, []*partition) (failed bool)) {
	pause := chorePauseMin
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		ps := c.take(limit)
		if len(ps) == 0 {
			continue
		}
		if !f(ctx, ps) {
			pause = chorePauseMin
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, chorePauseMax)
	}
}
