package replica

import (
	"slices"
	"sync/atomic"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
)

// clock compares the wall clock with the monotonic one. Ages of records are differences of wall times: after a step of the
// wall clock they mean nothing, and deleting by them would break the promise of I9.
type clock struct {
	wall    sys.Wall
	wallAt  time.Time
	monoAt  time.Time
	stepped *atomic.Bool // whether the last look found a step, for the log only
}

func startClock(w sys.Wall) clock {
	return clock{wall: w, wallAt: w.Now().Round(0), monoAt: time.Now(), stepped: new(atomic.Bool)}
}

// now returns the wall time, and whether it still agrees with the time that has passed since the start.
func (c *clock) now() (wall time.Time, step time.Duration, sane bool) {
	wall = c.wall.Now().Round(0) // without the monotonic part, which would hide a step
	step = wall.Sub(c.wallAt) - time.Since(c.monoAt)
	return wall, step, step.Abs() <= clockStepMax
}

// retain applies retention to the partitions led here.
func (h *Host) retain() {
	wall, step, sane := h.clock.now()
	if h.clock.stepped.Swap(!sane) != !sane {
		if sane {
			h.log.Info("retention goes on: the wall clock is back")
		} else {
			h.log.Error("retention is paused: the wall clock has stepped", "step", step.String())
		}
	}
	if !sane {
		return
	}
	for _, p := range h.all() {
		p.retain(wall)
	}
}

// retain removes whole segments by age and size. Only the leader does; a topic in the trash keeps everything.
func (p *partition) retain(wall time.Time) {
	p.mu.Lock()
	leading, l, topic, hw := p.mu.role == Leading, p.mu.log, p.mu.topic, p.hwLocked()
	p.unlock()
	if !leading || !slices.Contains(topic.CleanupPolicy, "delete") {
		return
	}
	before := l.Start()
	// Outside the lock: this syncs and unlinks. The watermark only rises meanwhile.
	start, err := l.ApplyRetention(retentionPolicy(topic), hw, wall)
	if err != nil {
		p.env.log.Warn("retention failed", "partition", p.tp.String(), "err", err)
	}
	if start > before { // on disk, so it may be told (P19)
		p.touch()
		p.startMoved()
		p.env.log.Info("retention advanced the log start", "partition", p.tp.String(), "from", before, "to", start)
	}
}

// retentionPolicy translates the topic's settings. There 0 means "nothing is kept" and a negative value "no limit"; storage
// takes 0 for "no limit" too.
func retentionPolicy(t config.Topic) storage.RetentionPolicy {
	p := storage.RetentionPolicy{Age: t.Retention, MinimumAge: t.MinimumRetention, Bytes: t.RetentionBytes}
	if p.Age == 0 {
		p.Age = 1
	}
	if p.Bytes == 0 {
		p.Bytes = 1
	}
	if p.Age > 0 {
		p.MinimumAge = min(p.MinimumAge, p.Age)
	}
	// A record whose id is remembered stays: the answer to a repeat names it (I12).
	p.MinimumAge = max(p.MinimumAge, t.DedupWindow)
	return p
}
