package client

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// partition is one assigned partition: records that wait, in lanes, and what is done of it. A lane is a queue with at most one goroutine,
// which ends when the queue is empty; records of one key are in one lane.
type partition struct {
	w      *Worker
	topic  string
	id     int32
	ctx    context.Context // of the functions; ends when the partition is given up
	cancel context.CancelFunc
	seed   maphash.Seed

	mu       sync.Mutex
	frontier frontier
	lanes    []lane
	waiting  int   // records in all lanes
	working  int   // lanes with a goroutine
	saved    int64 // the position that a commit has acknowledged; -1: none
	expected int64 // the offset after the last delivered record; -1: none
	paused   bool  // its fetches are, for a while
	halted   bool  // no record begins any more
	stopped  error // why for good, or nil
	closed   bool  // given up: halted, and idle is closed with the last function
	idle     chan struct{}
}

type lane struct {
	queue   []*kgo.Record
	working bool
}

func (w *Worker) newPartition(topic string, id int32) *partition {
	p := &partition{
		w: w, topic: topic, id: id, seed: maphash.MakeSeed(), lanes: make([]lane, w.o.KeyConcurrency), saved: -1, expected: -1,
		idle: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(w.base)
	return p
}

// push takes records in the order of offsets.
func (p *partition) push(records []*kgo.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.halted {
		return // they are not processed and so not committed
	}
	for _, r := range records {
		p.frontier.deliver(r.Offset, r.LeaderEpoch)
		i := p.laneOf(r)
		l := &p.lanes[i]
		l.queue = append(l.queue, r)
		p.waiting++
		if !l.working {
			l.working = true
			p.working++
			go p.work(l)
		}
	}
	p.expected = records[len(records)-1].Offset + 1
	if p.waiting >= waitingMax && !p.paused {
		p.paused = true
		p.w.client.PauseFetchPartitions(p.asMap())
	}
}

// laneOf keeps a key in its lane. Records without a key have no order to keep.
func (p *partition) laneOf(r *kgo.Record) int {
	lanes := uint64(len(p.lanes))
	if r.Key == nil {
		return int(uint64(r.Offset) % lanes)
	}
	return int(maphash.Bytes(p.seed, r.Key) % lanes)
}

// take takes the next records of a lane: one, or those to be committed ahead. None: the lane has ended.
func (p *partition) take(l *lane, count int) []*kgo.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.halted || len(l.queue) == 0 {
		l.working = false
		p.working--
		p.maybeIdleLocked()
		return nil
	}
	count = min(count, len(l.queue))
	taken := l.queue[:count:count]
	l.queue = l.queue[count:]
	p.waiting -= count
	if p.paused && p.waiting <= waitingMax/2 {
		p.paused = false
		p.w.client.ResumeFetchPartitions(p.asMap())
	}
	return taken
}

func (p *partition) maybeIdleLocked() {
	if p.closed && p.working == 0 {
		select {
		case <-p.idle:
		default:
			close(p.idle)
		}
	}
}

// finish notes that a record needs nothing more.
func (p *partition) finish(r *kgo.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frontier.finish(r.Offset)
}

// halt lets no further record begin; false: so it was.
func (p *partition) halt() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.halted
	p.haltLocked()
	return !was
}

func (p *partition) haltLocked() {
	if p.halted {
		return
	}
	p.halted, p.paused, p.waiting = true, false, 0
	p.w.client.PauseFetchPartitions(p.asMap())
}

// stop ends the work on the partition before offset, for the reason given, and reports it. A partition that was given up has another owner,
// who finds the same.
func (p *partition) stop(offset int64, reason error) {
	p.mu.Lock()
	was := p.stopped != nil || p.closed
	p.haltLocked()
	fault := &PartitionError{Topic: p.topic, Partition: p.id, Offset: offset, Err: reason}
	if !was {
		p.stopped = fault
	}
	p.mu.Unlock()
	if was {
		return
	}
	w := p.w
	w.o.Log.Error("a partition is stopped; the others go on", "topic", p.topic, "partition", p.id, "offset", offset, "error", reason)
	w.mu.Lock()
	w.stops = append(w.stops, fault)
	w.mu.Unlock()
	if w.o.OnStopped != nil {
		w.o.OnStopped(fault)
	}
}

// close gives the partition up: no further record begins, and idle is closed when the functions in progress have ended.
func (p *partition) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.haltLocked()
	p.closed = true
	p.maybeIdleLocked()
}

// position is the next offset to be delivered.
func (p *partition) position() int64 {
	p.mu.Lock()
	expected := p.expected
	p.mu.Unlock()
	if expected < 0 {
		if at, ok := p.w.client.CommittedOffsets()[p.topic][p.id]; ok {
			return at.Offset
		}
	}
	return expected
}

// unsaved is the position to commit, if it is past what is committed.
func (p *partition) unsaved() (kgo.EpochOffset, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.frontier.position()
	return at, ok && at.Offset > p.saved
}

// save notes an acknowledged commit.
func (p *partition) save(offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.saved = max(p.saved, offset)
}

// isSaved says whether a position is acknowledged as committed.
func (p *partition) isSaved(offset int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.saved >= offset
}

func (p *partition) asMap() map[string][]int32 { return map[string][]int32{p.topic: {p.id}} }
