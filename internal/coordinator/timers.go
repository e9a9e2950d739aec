package coordinator

import (
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/sys"
)

// restsLocked prepares an idle shard for its next timer; true when one is due already. The monotonic clock decides, so that a step of
// the wall clock neither delays nor hurries anything (C049).
func (s *shard) restsLocked() bool {
	at, ok := s.core.NextDeadline()
	if !ok {
		return false
	}
	left := time.Until(at)
	if left <= 0 {
		return true
	}
	if s.timer == nil {
		s.timer = time.AfterFunc(left, s.wake)
	} else {
		s.timer.Reset(left)
	}
	return false
}

// tick lets the timers of the core act that are due.
func (s *shard) tick() {
	if s.broken {
		return
	}
	now := s.now()
	if at, ok := s.core.NextDeadline(); ok && !at.After(now.Mono) {
		s.step(group.Tick{RecordsKept: s.c.recordsKept}, now)
	}
}

// clock is one look at both clocks; it shows later how far the wall clock has stepped.
type clock struct{ wall, mono time.Time }

func startClock(w sys.Wall) clock { return clock{wall: w.Now().Round(0), mono: time.Now()} }

// isSane says whether the wall clock still agrees with the time that has passed.
func (k clock) isSane(w sys.Wall) bool {
	step := w.Now().Round(0).Sub(k.wall) - time.Since(k.mono)
	return step.Abs() <= clockStepMax
}

// recordsKept says how long a topic keeps its records: offsets of groups without members live as long. Negative is for ever, 0 stands
// for a topic that is gone. While the wall clock cannot be trusted nothing expires: ages are differences of its times.
func (c *Coordinator) recordsKept(id kafka.TopicID) time.Duration {
	if !c.clock.isSane(c.cfg.Wall) {
		return -1
	}
	t := c.cfg.Image().TopicByID(id)
	if t == nil || t.State == metadata.StatePurging {
		return 0
	}
	cfg := c.cfg.TopicConfig(t)
	if cfg.Retention == config.Unlimited {
		return -1
	}
	return cfg.Retention
}
