package replica

import (
	"sync/atomic"
	"time"

	"strandline.dev/internal/kafka"
)

// Produce is a publish that has been appended and may be parked. Each of its items is decided once, under the lock of its
// partition: committed, failed, or given up by Expire or Cancel.
type Produce struct {
	acks     int16
	deadline time.Time
	results  []AppendResult
	waits    []wait // nil until the first item is parked
	ready    chan struct{}
	// open counts the undecided items, plus one while Append still runs.
	open atomic.Int32

	// One item is the common case and costs no further allocation.
	oneResult [1]AppendResult
	oneWait   [1]wait
}

// decided is the Ready channel of publishes that never parked.
var decided = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func newProduce(items int, acks int16, timeout time.Duration) *Produce {
	pr := &Produce{acks: acks, ready: decided}
	pr.open.Store(1)
	if acks == AcksAll {
		pr.deadline = time.Now().Add(timeout)
	}
	if items == 1 {
		pr.results = pr.oneResult[:]
	} else {
		pr.results = make([]AppendResult, items)
	}
	return pr
}

// Ready is closed when all items are decided.
func (pr *Produce) Ready() <-chan struct{} { return pr.ready }

// Deadline is when Expire is due, on the monotonic clock; the zero time when nothing waits for replicas (acks 0 and 1).
func (pr *Produce) Deadline() time.Time { return pr.deadline }

// Results are the answers in the order of the items; complete after Ready, Expire or Cancel.
func (pr *Produce) Results() []AppendResult { return pr.results }

// Expire gives up what is still parked with ErrTimedOut. The records stay and may still be committed.
func (pr *Produce) Expire() { pr.giveUp(ErrTimedOut) }

// Cancel gives up what is still parked: nobody reads the answer.
func (pr *Produce) Cancel() { pr.giveUp(ErrStopped) }

func (pr *Produce) giveUp(err error) {
	for i := range pr.waits {
		w := &pr.waits[i]
		if w.p == nil {
			continue // this item never parked
		}
		w.p.mu.Lock()
		if w.listed {
			w.p.mu.waits.remove(w)
			pr.fail(i, err)
			w.p.mu.woken.add(w)
		}
		w.p.unlock()
	}
}

// park lists item i until the watermark of p reaches end. The lock of p is held.
func (pr *Produce) park(p *partition, i int, end kafka.Offset) {
	if pr.waits == nil {
		if len(pr.results) == 1 {
			pr.waits = pr.oneWait[:]
		} else {
			pr.waits = make([]wait, len(pr.results))
		}
		pr.ready = make(chan struct{})
	}
	pr.open.Add(1)
	w := &pr.waits[i]
	*w = wait{p: p, epoch: p.mu.core.Epoch(), at: end, produce: pr, index: i}
	p.mu.waits.insert(w)
}

// fail writes the outcome of item i. The lock of its partition is held. An error never comes with an offset (C062).
func (pr *Produce) fail(i int, err error) {
	r := &pr.results[i]
	r.Base, r.LogStart, r.TimestampMs, r.Err = kafka.NoOffset, kafka.NoOffset, -1, err
}

// done counts one decided item. Called without locks.
func (pr *Produce) done() {
	if pr.open.Add(-1) == 0 && pr.waits != nil {
		close(pr.ready)
	}
}
