package replica

import (
	"slices"
	"sync"

	"strandline.dev/internal/kafka"
)

// trash holds the replicas that the Image asks this node to delete. Deleting may take long, so Reconcile only notes them and
// Run does it. A deletion is confirmed again and again until the Image stops asking: the confirmation may be lost.
type trash struct {
	wake chan struct{}
	mu   *trashState
}

type trashState struct {
	sync.Mutex
	pending map[kafka.TopicPartition]bool // true: the directory is gone
	order   []kafka.TopicPartition
}

func newTrash() trash {
	return trash{wake: make(chan struct{}, 1), mu: &trashState{pending: map[kafka.TopicPartition]bool{}}}
}

// set replaces what is to be deleted.
func (t *trash) set(pending []kafka.TopicPartition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := make(map[kafka.TopicPartition]bool, len(pending))
	fresh := false
	for _, tp := range pending {
		gone, known := t.mu.pending[tp]
		next[tp] = gone
		fresh = fresh || !known
	}
	t.mu.pending, t.mu.order = next, pending
	if fresh {
		wake(t.wake)
	}
}

// list returns what is to be done, with whether the directory is gone already.
func (t *trash) list() (order []kafka.TopicPartition, gone map[kafka.TopicPartition]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone = make(map[kafka.TopicPartition]bool, len(t.mu.order))
	for _, tp := range t.mu.order {
		gone[tp] = t.mu.pending[tp]
	}
	return t.mu.order, gone
}

func (t *trash) done(tp kafka.TopicPartition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.mu.pending[tp]; ok {
		t.mu.pending[tp] = true
	}
}

// emptyTrash deletes what is to be deleted, also a quarantined copy, and reports what is gone.
func (h *Host) emptyTrash() {
	order, gone := h.trash.list()
	for batch := range slices.Chunk(order, purgeBatchMax) {
		var there, purged []kafka.TopicPartition
		for _, tp := range batch {
			if !gone[tp] {
				there = append(there, tp)
			}
		}
		failed := h.dir.DropLogs(there)
		for _, tp := range batch {
			if err := failed[tp]; err != nil {
				h.log.Warn("purge failed, will be tried again", "partition", tp.String(), "err", err)
				continue
			}
			if !gone[tp] {
				h.log.Debug("partition purged", "partition", tp.String())
				h.trash.done(tp)
			}
			purged = append(purged, tp)
		}
		if done := len(there) - len(failed); done > 0 {
			h.log.Info("partitions purged", "count", done, "first", there[0].String())
		}
		if len(purged) > 0 {
			h.purged(purged)
		}
	}
}
