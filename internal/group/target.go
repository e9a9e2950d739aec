package group

import (
	"math"
	"strings"
	"time"

	"strandline.dev/internal/kafka"
)

// Target is where a seek goes; a relative one counts from what the group has committed.
type Target struct {
	Position
	Relative bool
}

// ParseTarget reads start, end, N, @TIME, and +N and -N, which are relative.
func ParseTarget(v string, now time.Time) (Target, error) {
	p, err := ParsePosition(v, now)
	return Target{Position: p, Relative: strings.HasPrefix(v, "+") || strings.HasPrefix(v, "-")}, err
}

// In resolves the target in a partition that holds [start, end). committed is nil when nothing is; at is the first offset of the target's
// time. The note says what was asked for and cannot be; to is nil when there is nothing to count from.
func (t Target) In(start, end int64, committed *int64, at int64) (to *int64, note string) {
	n := t.N
	switch {
	case t.Relative && committed == nil:
		return nil, "nothing is committed to count from: left alone"
	case t.Relative && t.Kind == PositionEnd:
		n = *committed - t.N
	case t.Relative:
		n = *committed + min(t.N, math.MaxInt64-*committed)
	case t.Kind == PositionStart:
		n = start
	case t.Kind == PositionEnd:
		n = end
	case t.Kind == PositionTime:
		if n = at; at >= end && end > start {
			note = "no record is as late: the end"
		}
	}
	switch {
	case n < start:
		n, note = start, "before the first record kept: the start"
	case n > end:
		n, note = end, "past the end: the end"
	}
	return &n, note
}

// Move is what a seek does to one partition.
type Move struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      *int64 `json:"from" doc:"null: nothing is committed"`
	To        *int64 `json:"to" doc:"null: nothing will be"`
	Skips     *int64 `json:"skips" doc:"records; below 0 they are read again; null: there is no place to count from"`
	Note      string `json:"note,omitempty" doc:"what was asked for and cannot be"`
}

// Moves says whether the group's place changes.
func (m *Move) Moves() bool {
	return (m.From == nil) != (m.To == nil) || m.From != nil && *m.From != *m.To
}

// Place is a partition by its topic's name.
type Place struct {
	Topic     string
	Partition int32
}

// Places are the partitions of a report.
func (r *Report) Places() map[Place]*PartitionReport {
	out := make(map[Place]*PartitionReport, len(r.Partitions))
	for i := range r.Partitions {
		out[Place{r.Partitions[i].Topic, r.Partitions[i].Partition}] = &r.Partitions[i]
	}
	return out
}

// MoveOf is the move to a target in a partition that holds [start, end); now is the group there, nil where it is not.
func (t Target) MoveOf(at Place, now *PartitionReport, start, end, first int64) Move {
	m := Move{Topic: at.Topic, Partition: at.Partition}
	if now != nil {
		from := int64(now.Committed)
		m.From = &from
	}
	if m.To, m.Note = t.In(start, end, m.From, first); m.To == nil {
		m.To = m.From
	}
	m.Skips = Skips(start, end, m.From, m.To)
	return m
}

// Skips is the number of records between two places, of those that are kept; below 0 they are read again.
func Skips(start, end int64, from, to *int64) *int64 {
	if from == nil || to == nil {
		return nil
	}
	inside := func(o int64) int64 { return min(max(o, start), end) }
	n := inside(*to) - inside(*from)
	return &n
}

// Undoing says where the partitions were before the last seek.
func (r *Report) Undoing() []Move {
	now, out := r.Places(), make([]Move, 0, len(r.Undo))
	for _, o := range r.Undo {
		m := Move{Topic: o.Topic, Partition: o.Partition, Note: "nothing was committed"}
		if o.Offset != kafka.NoOffset {
			to := int64(o.Offset)
			m.To, m.Note = &to, ""
		}
		if at := now[Place{o.Topic, o.Partition}]; at != nil {
			from := int64(at.Committed)
			m.From = &from
			if at.Known {
				m.Skips = Skips(int64(at.Start), int64(at.End), m.From, m.To)
			}
			if at.Known && m.To != nil && o.Offset < at.Start {
				m.Note = "before the first record kept: the next read is out of range"
			}
		}
		out = append(out, m)
	}
	return out
}
