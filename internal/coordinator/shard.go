package coordinator

import (
	"sync"
	"sync/atomic"
	"time"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/replica"
)

// phase is where a shard is in its life.
type phase uint8

const (
	loading phase = iota
	serving
	ended
)

// shard is the reign of this node over the groups of one partition in one leader epoch.
type shard struct {
	c     *Coordinator
	tp    kafka.TopicPartition
	epoch kafka.LeaderEpoch
	// attempt counts the shards of this epoch that came to nothing before this one.
	attempt int
	// proved is set by the first commit: what fails later is not a failure to start.
	proved atomic.Bool
	gone   chan struct{} // closed by end
	loaded chan struct{} // closed when loading is over, well or badly
	idle   chan struct{} // closed when an ended shard has let go of everything

	mu struct {
		sync.Mutex
		phase    phase
		why      error // what requests are told while loading, and from the end on
		inbox    []item
		requests int  // of inbox
		due      bool // a timer of the core is due
		running  bool // the goroutine runs
	}

	// What follows belongs to the goroutine; running hands it over.
	core    *group.Shard
	waits   map[uint64]*Wait // requests that the core has not answered
	timer   *time.Timer
	batch   *record.Builder
	held    []answer // of this round: released together with its records
	flights []*replica.Produce
	last    *replica.Produce // the newest batch; nil once it is known to be committed
	since   bool             // something was appended since the round began, so after everything in it was asked
	broken  bool             // an append has failed: nothing may be decided any more
	notes   noteLimit
	grown   int // how many of the Coordinator's growths the core knows
}

// item is something in the inbox: a request, the cancellation of one, or topics that were purged.
type item struct {
	event  group.Event
	judged judgement // of the expression in it
	wait   *Wait
	cancel uint64
	purged []kafka.TopicID
}

// answer is a reply of the core on its way to who waits for it.
type answer struct {
	wait  *Wait
	reply group.Reply
}

func newShard(c *Coordinator, tp kafka.TopicPartition, epoch kafka.LeaderEpoch) *shard {
	s := &shard{
		c: c, tp: tp, epoch: epoch,
		gone: make(chan struct{}), loaded: make(chan struct{}), idle: make(chan struct{}),
		waits: map[uint64]*Wait{}, batch: record.NewBuilder(record.None),
	}
	s.mu.why = ErrLoading
	return s
}

// start begins to load after a pause.
func (s *shard) start(pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.phase == ended {
		return
	}
	if pause > 0 {
		s.timer = time.AfterFunc(pause, s.wake)
		return
	}
	s.runLocked()
}

// wake is what the timer does: there is something to do.
func (s *shard) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.due = true
	if s.mu.phase != ended {
		s.runLocked()
	}
}

// runLocked starts the goroutine unless it runs.
func (s *shard) runLocked() {
	if !s.mu.running {
		s.mu.running = true
		go s.run()
	}
}

// push puts an item into the inbox. Only requests are refused: while loading, after the end, and when too many wait.
func (s *shard) push(it item) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it.wait != nil {
		switch {
		case s.mu.phase != serving:
			return s.mu.why
		case s.mu.requests >= inboxMax:
			return ErrBusy
		}
		s.mu.requests++
	}
	if s.mu.phase != serving {
		return nil // nothing to cancel, and a load asks for the purged topics when it is done
	}
	s.mu.inbox = append(s.mu.inbox, it)
	s.runLocked()
	return nil
}

// end ends the shard: everything that waits is told why, by the goroutine.
func (s *shard) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.phase == ended {
		return
	}
	s.mu.phase, s.mu.why = ended, why
	close(s.gone)
	s.runLocked()
}

// run does what there is to do and ends.
func (s *shard) run() {
	if s.core == nil {
		s.open()
	}
	for {
		items, over := s.take()
		switch {
		case over:
			s.dismiss(items)
			return
		case items == nil:
			return
		}
		s.round(items)
	}
}

// take empties the inbox; nil when there is nothing to do. In both that case and the last one (over) the goroutine ends.
func (s *shard) take() (items []item, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items, s.mu.inbox, s.mu.requests = s.mu.inbox, nil, 0
	switch {
	case s.mu.phase == ended:
		s.mu.running = false
		return items, true
	case len(items) == 0 && !s.mu.due && !s.restsLocked():
		s.mu.running = false
		return nil, false
	}
	s.mu.due = false
	if items == nil {
		items = []item{}
	}
	return items, false
}

// round lets the core decide on everything that has come in and on the timers that are due, and appends what it says in as few
// batches as possible.
func (s *shard) round(items []item) {
	s.learnGrowth()
	for _, it := range items {
		if s.broken {
			if it.wait != nil {
				it.wait.decide(outcome{err: ErrNotCoordinator})
			}
			continue
		}
		switch now := s.now(); {
		case it.wait != nil:
			s.waits[it.wait.token] = it.wait
			s.step(s.withCatalog(it), now)
		case it.cancel != 0:
			if _, undecided := s.waits[it.cancel]; undecided {
				delete(s.waits, it.cancel)
				s.step(group.Cancel{Token: it.cancel}, now)
			}
		case it.purged != nil:
			s.step(group.TopicsDeleted{IDs: it.purged}, now)
		}
	}
	s.tick()
	s.send()
}

// dismiss tells everything that waits why the shard has ended.
func (s *shard) dismiss(items []item) {
	s.mu.Lock()
	why := s.mu.why
	s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	for _, it := range items {
		if it.wait != nil {
			it.wait.decide(outcome{err: why})
		}
	}
	for _, w := range s.waits {
		w.decide(outcome{err: why})
	}
	s.core, s.waits, s.flights, s.last, s.batch = nil, nil, nil, nil, nil
	close(s.idle)
}

// now is the time of an event on both clocks. The wall clock comes without its monotonic part, which would hide a step (C049).
func (s *shard) now() group.Moment {
	return group.Moment{Mono: time.Now(), Wall: s.c.cfg.Wall.Now().Round(0)}
}
