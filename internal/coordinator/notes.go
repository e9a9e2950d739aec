package coordinator

import (
	"time"

	"strandline.dev/internal/group"
)

// noteLimit bounds the lines about rebalances.
type noteLimit struct {
	since      time.Time
	lines      int
	suppressed int
}

// admit says whether one more line may be written, and how many were not since the last time that one was.
func (l *noteLimit) admit(now time.Time) (suppressed int, ok bool) {
	if now.Sub(l.since) > noteLinesEvery {
		suppressed, l.suppressed = l.suppressed, 0
		l.since, l.lines = now, 0
	}
	if l.lines >= noteLinesMax {
		l.suppressed++
		return 0, false
	}
	l.lines++
	return suppressed, true
}

// tell logs and counts what the core noticed. Expiry is logged always (I10: it is never silent), rebalances as far as the limit allows.
func (s *shard) tell(notes []group.Note) {
	for _, n := range notes {
		log := s.c.cfg.Log.With("group", clip(n.Group))
		switch n.Kind {
		case group.OffsetExpired:
			s.c.cfg.Metrics.OffsetsExpired.Inc()
			log.Info("a committed offset has expired", "topic", clip(n.Topic), "topic_partition", n.Partition, "why", clip(n.Why))
			continue
		case group.RebalanceStarted:
			s.c.cfg.Metrics.Rebalances.Inc()
		}
		suppressed, ok := s.notes.admit(time.Now())
		if !ok {
			continue
		}
		if suppressed > 0 {
			log = log.With("lines_left_out", suppressed)
		}
		switch n.Kind {
		case group.RebalanceStarted:
			log.Info("a group rebalances", "generation", n.Generation, "why", clip(n.Why))
		case group.RebalanceCompleted:
			log.Info("a group has its assignments", "generation", n.Generation)
		case group.MemberRemoved:
			log.Info("a member left its group", "member", clip(n.Member), "why", clip(n.Why))
		case group.GroupConverted:
			log.Info("a group with members changed its protocol", "generation", n.Generation, "why", clip(n.Why))
		case group.GroupNotConverted:
			log.Warn("a group stays with the classic protocol: a member of the consumer protocol was refused", "generation", n.Generation, "why", clip(n.Why))
		case group.OffsetsMoved:
			log.Info("a group was moved", "partitions", n.Count, "why", clip(n.Why))
		case group.PartitionsAdded:
			log.Info("a group reads new partitions from their start", "topic", clip(n.Topic), "from_partition", n.Partition, "partitions", n.Count)
		case group.GroupRemoved:
			log.Info("a group is removed", "why", clip(n.Why))
		}
	}
}

// clip cuts client-chosen text for a log line; slog quotes what is not printable.
func clip(s string) string {
	if len(s) > loggedTextMax {
		return s[:loggedTextMax] + "..."
	}
	return s
}
