package replica

import (
	"fmt"
	"time"
)

// A disk may stop answering without an error: then no sync finishes, the watermark stands, and every publish would hang until
// the client's time-out. The watchdog notices bytes that wait for a sync for stallMax without any progress. The partition
// then gives up what a leader does for publishers: parked ones fail with a retriable error and new ones are refused, so that
// clients know within seconds. Reading below the watermark goes on. The first stored end that moves ends it; the records are
// still there and become visible, as after any time-out. (With more nodes the leadership itself is resigned.)

// errStalled refuses publishes while the disk is stalled.
var errStalled = fmt.Errorf("%w: no sync has finished for %v", ErrStorage, stallMax)

// watchSyncs looks at every partition that may wait for a sync.
func (h *Host) watchSyncs() {
	if !h.env.unsynced.Swap(false) {
		return
	}
	now := time.Now() // monotonic
	waiting := false
	for _, p := range h.all() {
		waiting = p.watchSync(now) || waiting
	}
	if waiting {
		h.env.unsynced.Store(true)
	}
}

// watchSync reports whether the partition waits for a sync.
func (p *partition) watchSync(now time.Time) bool {
	p.mu.Lock()
	defer p.unlock()
	if p.mu.core == nil {
		return false
	}
	stored := p.mu.log.StoredEnd()
	w := &p.mu.watch
	w.progress(stored)
	switch {
	case stored >= p.mu.log.End():
		*w = stallWatch{stored: stored}
		return false
	case w.since.IsZero():
		w.since = now
	case !w.stalled && now.Sub(w.since) > stallMax:
		w.stalled = true
		p.env.log.Error("disk stalled: publishes are refused", "partition", p.tp.String(), "stored", stored, "end", p.mu.log.End())
		p.failProducesLocked(errStalled)
	}
	return true
}
