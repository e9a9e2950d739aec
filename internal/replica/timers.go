package replica

import (
	"context"
	"sync"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/storage"
)

// Run does what recurs, until ctx ends: retention, compaction, the sync-point file, the trash, the reserve, the room on the disk, and the watch over stalled syncs. Each
// has its own goroutine, because each but the last may be held up by the disk.
func (h *Host) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { every(ctx, retentionEvery, nil, h.retain) })
	wg.Go(func() { every(ctx, compactEvery, nil, func() { h.compact(ctx) }) })
	wg.Go(func() { every(ctx, purgeEvery, h.trash.wake, h.emptyTrash) })
	wg.Go(func() { every(ctx, stallCheckEvery, nil, h.watchSyncs) })
	// Not at once: a start is not to wait for a disk that is busy with the reserve.
	wg.Go(func() { every(ctx, reserveEvery, nil, func() { h.dir.KeepReserve(ctx) }) })
	wg.Go(func() { every(ctx, measureEvery, nil, h.dir.MeasureRoom) })
	wg.Go(func() { h.keepPoints(ctx) })
	wg.Go(func() { h.repl.starts.run(ctx, choresMax, h.repl.raiseStarts) })
	wg.Go(func() { h.repl.repairs.run(ctx, choresMax, h.repl.repair) })
	wg.Go(func() { h.repl.ids.run(ctx, choresMax, h.repl.loadIDs) })
	if h.repl.submit != nil {
		wg.Go(func() { every(ctx, h.repl.lagMax/ticksPerLag, nil, h.tick) })
		wg.Go(func() { h.repl.changes.run(ctx, changesMax, h.repl.proposeISR) })
		wg.Go(func() { every(ctx, yieldEvery, nil, func() { h.yield(ctx) }) })
		wg.Go(func() { h.repl.damages.run(ctx, damagesMax, h.repl.reportDamages) })
	}
	wg.Wait()
}

// every calls f after each interval, and when woken. A slow f delays the next call, calls never pile up.
func every(ctx context.Context, interval time.Duration, woken <-chan struct{}, f func()) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-woken:
		}
		f()
	}
}

// keepPoints writes the sync-point file when offsets moved, at most every pointsEvery; at once when a log is about to report
// under another policy.
func (h *Host) keepPoints(ctx context.Context) {
	hw := map[kafka.TopicPartition]kafka.Offset{}
	every(ctx, pointsEvery, h.pointsDue, func() { h.savePoints(hw) })
}

// savePoints writes the file, using hw as scratch space.
func (h *Host) savePoints(hw map[kafka.TopicPartition]kafka.Offset) {
	if !h.env.touched.Swap(false) {
		h.dir.CloseIdle()
		return
	}
	clear(hw)
	all := h.all()
	for _, p := range all {
		p.mu.Lock()
		hw[p.tp] = p.hwLocked()
		p.unlock()
	}
	// Collected before: storage must not call back into partitions (lock order).
	if err := h.dir.SavePoints(func(tp kafka.TopicPartition) kafka.Offset { return known(hw, tp) }); err != nil {
		h.env.touched.Store(true)
		h.log.Warn("sync-point file not written", "err", err)
		return
	}
	for _, p := range all {
		p.recount()
	}
}

func known(hw map[kafka.TopicPartition]kafka.Offset, tp kafka.TopicPartition) kafka.Offset {
	if at, ok := hw[tp]; ok {
		return at
	}
	return kafka.NoOffset
}

// recount asks the log for its stored end: once the sync-point file names the policy `replicated`, what is written counts.
func (p *partition) recount() {
	p.mu.Lock()
	defer p.unlock()
	if p.mu.core != nil && p.mu.settings.policy == storage.Replicated {
		p.storedLocked()
	}
}
