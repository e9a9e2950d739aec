package replica

import (
	"context"
	"errors"
	"slices"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/storage"
)

// compact compacts the copies on this node that are due, one after the other. Every replica compacts by itself: which records a copy still
// holds below the watermark differs, what its readers may rely on does not. A copy that fails holds up no other (C047).
func (h *Host) compact(ctx context.Context) {
	for _, p := range h.all() {
		// Each time: a pass may take minutes, and a clock that has stepped makes tombstones old at once.
		wall, _, sane := h.clock.now()
		if !sane || ctx.Err() != nil {
			return
		}
		p.compact(ctx, wall)
	}
}

// compact makes as many passes over the log as there is to do, up to a bound.
func (p *partition) compact(ctx context.Context, wall time.Time) {
	p.mu.Lock()
	l, topic, hw := p.mu.log, p.mu.topic, p.hwLocked()
	serving := p.mu.role == Leading || p.mu.role == Following
	p.unlock()
	if !serving || l == nil || !slices.Contains(topic.CleanupPolicy, "compact") {
		return
	}
	// Outside the lock: this reads and writes whole segments. The watermark only rises meanwhile.
	policy := compactionPolicy(topic, l.LastStable(hw))
	for range compactPassesMax {
		began := time.Now()
		done, err := l.Compact(ctx, policy, wall)
		if err != nil {
			p.compactFailed(err)
			return
		}
		if !done.Ran {
			return
		}
		p.touch()
		p.env.log.Info("a log was compacted", "partition", p.tp.String(), "from", int64(done.From), "to", int64(done.UpTo),
			"records", done.Records, "tombstones", done.Tombstones, "before", done.Before, "after", done.After, "took", time.Since(began))
		if !done.More || ctx.Err() != nil {
			return
		}
	}
}

// compactFailed sorts out the errors of compaction: what makes the log useless takes it offline, the rest is tried again at the next visit.
func (p *partition) compactFailed(err error) {
	if errors.Is(err, storage.ErrClosed) {
		return
	}
	p.mu.Lock()
	defer p.unlock()
	if final(err) {
		p.failLocked(err)
		return
	}
	if times, due := p.mu.failing.note(errors.Is(err, storage.ErrNoSpace), time.Now()); due {
		p.env.log.Warn("a log cannot be compacted", "partition", p.tp.String(), "times", times, "err", err)
	}
}

// compactionPolicy translates the topic's settings. Records younger than the window of record ids stay, so that a repeat finds its original.
func compactionPolicy(t config.Topic, upper kafka.Offset) storage.CompactionPolicy {
	return storage.CompactionPolicy{
		Upper: upper, MinDirtyRatio: t.MinDirtyRatio, MinAge: max(t.MinCompactionLag, t.DedupWindow), MaxAge: t.MaxCompactionLag,
		TombstoneRetention: t.DeleteRetention, Merge: !slices.Contains(t.CleanupPolicy, "delete"),
	}
}
