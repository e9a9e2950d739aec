package replica

import (
	"fmt"
	"time"

	"strandline.dev/internal/kafka"
)

// A disk may stop answering without an error: then no sync finishes, the watermark stands, and every publish would hang until
// the client's time-out. The watchdog notices a round of the syncer that lasts longer than stallMax. Partitions with bytes that
// wait for a sync then give up what a leader does for publishers: parked ones fail with a retriable error and new ones are
// refused, so that clients know within seconds. Reading below the watermark goes on. The first stored end that moves ends it;
// the records are still there and become visible, as after any time-out. With more nodes this one has itself fenced, once for each hanging
// round, so that others lead; it leads again what it is given when it has registered anew.

// errStalled refuses publishes while the disk is stalled.
var errStalled = fmt.Errorf("%w: no sync has finished for %v", ErrStorage, stallMax)

// stall says that a partition refuses publishes until its stored end has moved on from where it was.
type stall struct {
	on     bool
	stored kafka.Offset
}

// progress notes a stored end.
func (s *stall) progress(stored kafka.Offset) {
	if s.on && stored != s.stored {
		*s = stall{}
	}
}

// Stalled says since when the disk has not finished a sync, or is nil. A node whose disk hangs does not register again until a sync completes: it
// would be given leaderships it cannot serve.
func (h *Host) Stalled() error {
	began, syncing := h.dir.Syncer().RoundSince()
	if !syncing || time.Since(began) <= stallMax {
		return nil
	}
	return fmt.Errorf("%w, since %s", errStalled, began.Format(time.RFC3339))
}

// watchSyncs looks at the syncer, and at the partitions only if that hangs.
func (h *Host) watchSyncs() {
	began, _ := h.dir.Syncer().RoundSince()
	if h.Stalled() == nil {
		return
	}
	shared := false
	for _, p := range h.all() {
		shared = p.noteStall() || shared
	}
	if shared && h.repl.submit != nil && !h.resignedFor.Equal(began) {
		h.resignedFor = began
		h.log.Error("disk stalled: leaderships are given up", "since", began)
		h.repl.running.Go(func() { h.repl.resign(h.repl.life) })
	}
}

// noteStall says whether the partition is led here, is stalled, and has other replicas.
func (p *partition) noteStall() (shared bool) {
	p.mu.Lock()
	defer p.unlock()
	if p.mu.core == nil || p.mu.stall.on {
		return false
	}
	stored, end := p.mu.log.StoredEnd(), p.mu.log.End()
	if stored >= end {
		return false
	}
	p.mu.stall = stall{on: true, stored: stored}
	p.env.log.Error("disk stalled: publishes are refused", "partition", p.tp.String(), "stored", stored, "end", end)
	p.failProducesLocked(errStalled)
	return len(p.mu.state.Replicas) > 1
}
