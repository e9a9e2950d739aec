package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
)

// Host holds the partitions of this node. Life: NewHost, Recover, (the node registers) SetBrokerEpoch, Reconcile with every new
// Image while Run runs, Close after Run has returned.
type Host struct {
	dir         *storage.Dir
	machine     sys.Machine
	log         *slog.Logger
	topicConfig func(*metadata.Topic) config.Topic
	purged      func([]kafka.TopicPartition)
	expiry      time.Duration // of idempotent producers
	env         *surroundings
	repl        *replication
	clock       clock
	trash       trash
	// pointsDue asks for a sync-point file now: a log may report under the policy `replicated` only once that file says so.
	pointsDue chan struct{}
	rec       reconciled
	// resignedFor is the hanging round of syncs for which leaderships were given up last. The watchdog's.
	resignedFor time.Time
	// yielded: others are to lead, because the disk is full (yield.go).
	yielded bool

	mu struct {
		sync.RWMutex
		partitions  map[kafka.TopicPartition]*partition
		brokerEpoch kafka.BrokerEpoch
		applied     uint64
		changed     chan struct{} // closed when applied rises, or at Close
		stopped     bool
	}
}

// NewHost returns a Host that holds nothing yet.
func NewHost(c Config) (*Host, error) {
	if c.Dir == nil || c.Machine.Wall == nil || c.Log == nil || c.Metrics == nil || c.TopicConfig == nil || c.Purged == nil {
		return nil, errors.New("replica: incomplete configuration")
	}
	if c.ProducerExpiry == 0 {
		c.ProducerExpiry = producerExpiryDefault
	}
	h := &Host{
		dir: c.Dir, machine: c.Machine, log: c.Log, topicConfig: c.TopicConfig, purged: c.Purged, expiry: c.ProducerExpiry,
		env:       &surroundings{node: c.Node, log: c.Log, metrics: c.Metrics},
		clock:     startClock(c.Machine.Wall),
		trash:     newTrash(),
		pointsDue: make(chan struct{}, 1),
		rec:       newReconciled(),
	}
	h.mu.partitions = map[kafka.TopicPartition]*partition{}
	h.mu.brokerEpoch = unregistered
	h.mu.changed = make(chan struct{})
	h.repl = newReplication(c, h.partition)
	if c.Peers != nil {
		h.serveBacklogs(c.Peers)
	}
	h.env.repl = h.repl
	return h, nil
}

// unregistered is the broker epoch before this process has registered; no registration has it.
const unregistered kafka.BrokerEpoch = -1

// SetBrokerEpoch tells the epoch under which this process has registered. Before it, and until an Image holds that very
// registration, this node leads nothing and sets nothing aside (I3, I10).
func (h *Host) SetBrokerEpoch(e kafka.BrokerEpoch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.brokerEpoch = e
	h.repl.broker.Store(int64(e))
}

func (h *Host) partition(tp kafka.TopicPartition) *partition {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.mu.partitions[tp]
}

// absent says why partition found nothing.
func (h *Host) absent() error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.mu.stopped {
		return ErrStopped
	}
	return ErrUnknownPartition
}

// all returns the partitions, in no order.
func (h *Host) all() []*partition {
	h.mu.RLock()
	defer h.mu.RUnlock()
	all := make([]*partition, 0, len(h.mu.partitions))
	for _, p := range h.mu.partitions {
		all = append(all, p)
	}
	return all
}

// WaitApplied waits until an Image of at least that version has been reconciled: what it created may be written to then.
func (h *Host) WaitApplied(ctx context.Context, version uint64) error {
	for {
		h.mu.RLock()
		applied, changed, stopped := h.mu.applied, h.mu.changed, h.mu.stopped
		h.mu.RUnlock()
		if applied >= version {
			return nil
		}
		if stopped {
			return ErrStopped
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for metadata version %d, have %d: %w", version, applied, ctx.Err())
		}
	}
}

// publish makes a version known to WaitApplied.
func (h *Host) publish(version uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.applied = version
	close(h.mu.changed)
	h.mu.changed = make(chan struct{})
}

// Close ends all partitions and everything parked, after Run has returned. With clean, every log is synced and the sync-point
// file holds the true ends; an error then means that the directory must not be marked as cleanly shut down.
func (h *Host) Close(clean bool) error {
	h.mu.Lock()
	if h.mu.stopped {
		h.mu.Unlock()
		return nil
	}
	h.mu.stopped = true
	close(h.mu.changed)
	all := h.mu.partitions
	h.mu.partitions = map[kafka.TopicPartition]*partition{}
	h.mu.Unlock()

	h.dir.HurryFiles()
	h.repl.stop()
	ends := make([]closing, 0, len(all))
	for _, p := range all {
		ends = append(ends, p.closing())
	}
	errs := make([]error, len(ends))
	if clean {
		parallel(len(ends), func(i int) { errs[i] = ends[i].flush() })
	}
	h.closeLogs(ends, errs)
	if clean {
		if err := h.dir.SavePoints(nil); err != nil && !sys.IsNoSpace(err) {
			// On a full disk it is left to Dir.Close, which may spend the reserve; the directory remembers the points.
			errs = append(errs, fmt.Errorf("sync-point: %w", err))
		}
	}
	return first(errs)
}

// closeLogs closes all logs together; an error goes where none is yet.
func (h *Host) closeLogs(ends []closing, errs []error) {
	var logs []*storage.Log
	var of []int
	hw := make(map[kafka.TopicPartition]kafka.Offset, len(ends))
	for i, e := range ends {
		hw[e.tp] = e.hw
		if e.log != nil {
			logs, of = append(logs, e.log), append(of, i)
		}
	}
	for n, err := range h.dir.CloseLogs(logs, func(tp kafka.TopicPartition) kafka.Offset { return known(hw, tp) }) {
		if i := of[n]; err != nil && errs[i] == nil {
			errs[i] = fmt.Errorf("close %v: %w", ends[i].tp, err)
		}
	}
}

// closing is what is left of a partition at Close.
type closing struct {
	tp      kafka.TopicPartition
	log     *storage.Log
	hw      kafka.Offset
	problem error
}

// closing ends the partition.
func (p *partition) closing() closing {
	p.mu.Lock()
	c := closing{tp: p.tp, log: p.mu.log, hw: p.hwLocked(), problem: p.mu.problem}
	p.unlock()
	p.retire(ErrStopped)
	return c
}

// flush syncs the log of an ended partition. One that is offline was reported when it went offline and does not make the stop a
// failure; storage writes no clean-shutdown marker while a log is not flushed.
func (c *closing) flush() error {
	if c.problem != nil {
		return nil
	}
	if err := c.log.Sync(); err != nil {
		return fmt.Errorf("sync %v: %w", c.tp, err)
	}
	c.hw = max(c.hw, c.log.Start())
	return nil
}

// parallel runs f(0) to f(n-1), openParallel at a time.
func parallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, openParallel) {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// first joins the first few errors.
func first(errs []error) error {
	var some []error
	for _, err := range errs {
		if err != nil && len(some) < errorsMax {
			some = append(some, err)
		}
	}
	return errors.Join(some...)
}
