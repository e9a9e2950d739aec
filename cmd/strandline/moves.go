package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// sampleEvery is the time between two looks at the sizes of replicas that are being copied: the difference is the speed.
const sampleEvery = time.Second

// move is a partition on its way to other replicas.
type move struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Adding    []int32 `json:"adding"`
	Removing  []int32 `json:"removing"`
	// Bytes are to be copied to all of Adding together, Copied are there.
	Bytes  int64 `json:"bytes"`
	Copied int64 `json:"copied"`
	// Rate is in bytes a second; ETASeconds is -1 while nothing moves or the sizes are not known.
	Rate       int64 `json:"bytesPerSecond"`
	ETASeconds int64 `json:"etaSeconds"`
}

// measureMoves looks twice at the sizes of what is being copied. Without moves it asks nothing.
func (s *session) measureMoves(ctx context.Context, v *clusterView) []move {
	var moving []*viewPartition
	for i := range v.Partitions {
		if v.Partitions[i].moving() {
			moving = append(moving, &v.Partitions[i])
		}
	}
	if len(moving) == 0 {
		return nil
	}
	first := s.replicaSizes(ctx, moving)
	begun := time.Now()
	select {
	case <-time.After(sampleEvery):
	case <-ctx.Done():
		return estimate(moving, first, first, 0)
	}
	second := s.replicaSizes(ctx, moving)
	return estimate(moving, first, second, time.Since(begun))
}

// estimate says how far moves are and when they will be done at the speed between two looks. The largest replica is what there is to copy.
func estimate(moving []*viewPartition, first, second sizes, between time.Duration) []move {
	var out []move
	for _, p := range moving {
		m := move{Topic: p.Topic, Partition: p.Partition, Adding: p.Adding, Removing: p.Removing, ETASeconds: -1}
		now, before := second[p.name()], first[p.name()]
		whole := int64(0)
		for _, n := range p.Replicas {
			whole = max(whole, now[n])
		}
		was := int64(0)
		for _, n := range p.Adding {
			m.Bytes += whole
			m.Copied += min(now[n], whole)
			was += before[n]
		}
		if between > 0 {
			m.Rate = max(0, int64(float64(m.Copied-was)/between.Seconds()))
		}
		switch left := m.Bytes - m.Copied; {
		case left == 0:
			m.ETASeconds = 0
		case m.Rate > 0:
			m.ETASeconds = (left + m.Rate - 1) / m.Rate
		}
		out = append(out, m)
	}
	return out
}

func (m move) eta() string {
	switch {
	case m.ETASeconds < 0:
		return "unknown"
	case m.ETASeconds == 0:
		return "copied"
	}
	return (time.Duration(m.ETASeconds) * time.Second).String()
}

func (m move) share() string {
	if m.Bytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%d%%", m.Copied*100/m.Bytes)
}

func (p printer) printMoves(moves []move) error {
	var rows [][]string
	for _, m := range moves {
		rows = append(rows, []string{
			fmt.Sprintf("%s-%d", m.Topic, m.Partition), strings.Trim(fmt.Sprint(m.Adding), "[]"), strings.Trim(fmt.Sprint(m.Removing), "[]"), m.share(),
			fmt.Sprintf("%d of %d", m.Copied, m.Bytes), fmt.Sprint(m.Rate), m.eta(),
		})
	}
	return p.table([]string{"MOVING", "TO", "FROM", "DONE", "BYTES", "BYTES/S", "ETA"}, rows)
}

// summary is one line about many moves.
func summary(moves []move) string {
	var bytes, copied, rate int64
	for _, m := range moves {
		bytes, copied, rate = bytes+m.Bytes, copied+m.Copied, rate+m.Rate
	}
	eta := "unknown"
	if rate > 0 {
		eta = (time.Duration((bytes-copied+rate-1)/rate) * time.Second).String()
	}
	return fmt.Sprintf("%d partitions are moving: %d of %d bytes copied, %d bytes/s, ready in %s", len(moves), copied, bytes, rate, eta)
}

// follow waits until done says that a view is as it should be, and tells meanwhile how far the moves are. The wait may be interrupted; what was begun
// goes on in the cluster. idle says what there is to say while nothing moves.
func (a *app) follow(ctx context.Context, s *session, done func(*clusterView) bool, idle func(*clusterView) string) error {
	said := "waiting for the moves to begin"
	lines := make(chan string, 1)
	stop := a.progress(func() string {
		select {
		case said = <-lines:
		default:
		}
		return said
	})
	defer stop()
	for {
		within, cancel := s.bounded(ctx)
		v, err := s.view(within)
		if err == nil && done(v) {
			cancel()
			return nil
		}
		if err == nil {
			line := idle(v)
			if moves := s.measureMoves(within, v); len(moves) > 0 {
				line = summary(moves)
			}
			select {
			case <-lines:
			default:
			}
			lines <- line
		}
		cancel()
		select {
		case <-ctx.Done():
			return &failure{what: "stopped waiting", why: ctx.Err(), todo: "what was begun goes on; see `strandline cluster health`"}
		case <-time.After(sampleEvery):
		}
	}
}

// settled says that the named partitions are not moving any more.
func settled(names []string) func(*clusterView) bool {
	return func(v *clusterView) bool {
		return !slices.ContainsFunc(v.Partitions, func(p viewPartition) bool { return p.moving() && slices.Contains(names, p.name()) })
	}
}
