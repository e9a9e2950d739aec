package replica

import (
	"math"
	"sync/atomic"
	"time"

	"strandline.dev/internal/kafka"
)

// FetchWait is a parked fetch. It wakes once: when enough bytes may be visible, or when a partition has something else to
// say (another epoch, deletion, damage). What it says is found by Read.
type FetchWait struct {
	ready chan struct{}
	fired atomic.Bool
	// missing is how many visible bytes are still wanted, over all partitions.
	missing       atomic.Int64
	readCommitted bool
	waits         []wait
	// rest is when a wide fetch may wake at the earliest; zero for others.
	rest time.Time
}

// Park lists a fetch that found less than minBytes. It looks again while listing, so nothing that happened since Read is
// missed. The caller calls Cancel when done with it, woken or not.
func (h *Host) Park(items []FetchItem, o FetchOptions, minBytes int) *FetchWait {
	f := &FetchWait{ready: make(chan struct{}), readCommitted: o.ReadCommitted, waits: make([]wait, len(items))}
	f.missing.Store(int64(max(1, minBytes)))
	if len(items) > wideFetch {
		f.rest = time.Now().Add(time.Duration(len(items)) * widePause)
	}
	for i := range items {
		p := h.partition(items[i].TP)
		if p == nil || !p.parkFetch(&f.waits[i], f, &items[i]) {
			f.fire()
			break // what is listed already goes with Cancel
		}
	}
	return f
}

// parkFetch lists w, or reports false when there is something to answer now.
func (p *partition) parkFetch(w *wait, f *FetchWait, it *FetchItem) bool {
	p.mu.Lock()
	defer p.unlock()
	if p.leadsLocked(it.CurrentEpoch) != nil {
		return false
	}
	if it.Offset < p.mu.log.Start() || it.Offset > p.mu.log.End() {
		return false
	}
	limit := int64(it.MaxBytes)
	if limit <= 0 {
		limit = math.MaxInt64
	}
	*w = wait{p: p, epoch: p.mu.core.Epoch(), fetch: f, from: it.Offset, limit: limit}
	if p.countLocked(w) {
		return false
	}
	p.mu.waits.insert(w)
	return true
}

// Ready is closed when it is worth reading again.
func (f *FetchWait) Ready() <-chan struct{} { return f.ready }

// Cancel takes the fetch off every list. It may be called more than once.
func (f *FetchWait) Cancel() {
	for i := range f.waits {
		w := &f.waits[i]
		if w.p == nil {
			continue
		}
		w.p.mu.Lock()
		if w.listed {
			w.p.mu.waits.remove(w)
		}
		w.p.unlock()
	}
}

// enough counts more visible bytes and reports whether the fetch has what it wants.
func (f *FetchWait) enough(grown int64) bool { return f.missing.Add(-grown) <= 0 }

// fire wakes the fetch. A wide one rests first: each time it wakes, thousands of partitions are looked at, and a record that arrives
// here and there would keep a core busy; what arrives meanwhile goes into the same answer.
func (f *FetchWait) fire() {
	if !f.fired.CompareAndSwap(false, true) {
		return
	}
	if !f.rest.IsZero() {
		if pause := time.Until(f.rest); pause > 0 {
			time.AfterFunc(pause, func() { close(f.ready) })
			return
		}
	}
	close(f.ready)
}

// visibleLocked is the end of what a client may read (I6).
func (p *partition) visibleLocked(readCommitted bool) kafka.Offset {
	hw := p.mu.core.HighWatermark()
	if readCommitted {
		return p.mu.log.LastStable(hw)
	}
	return hw
}
