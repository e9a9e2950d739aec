package isr

import (
	"time"

	"strandline.dev/internal/kafka"
)

// In sync means: the stored end has reached, within replica.lag.max, the leader's end of that moment. So what counts at any time is
// one number, the same for all replicas: the end that the leader had replica.lag.max ago.

// mark is the leader's written end at some time.
type mark struct {
	at  time.Time
	end kafka.Offset
}

// marks are ends of the leader in the order of time, one for each end that Tick saw; an idle partition has one. Two are never less
// than a marksMax-th of the lag apart, so there are at most marksMax+2.
type marks struct {
	list []mark
	// required is the end that a replica in sync has stored.
	required kafka.Offset
	// begun and now are the first and the last Tick, lag is what the last one was told.
	begun, now time.Time
	lag        time.Duration
}

// marksMax bounds the marks of one leadership: lag is measured to a 64th of replica.lag.max, or as often as Tick is called.
const marksMax = 64

// note takes in the leader's end of now. A leadership demands nothing before it is lag old: its followers may just be finding out.
func (m *marks) note(now time.Time, end kafka.Offset, lag time.Duration) {
	if m.begun.IsZero() {
		m.begun = now
	}
	m.now, m.lag = now, lag
	if n := len(m.list); n == 0 || end > m.list[n-1].end && now.Sub(m.list[n-1].at) >= lag/marksMax {
		m.list = append(m.list, mark{now, end})
	}
	due := 0
	for due < len(m.list) && now.Sub(m.list[due].at) >= lag {
		m.required = m.list[due].end
		due++
	}
	if due > 1 { // the newest of those due stays: nothing new may follow it
		m.list = append(m.list[:0], m.list[due-1:]...)
	}
}

// Tick takes in the time and the leader's written end, some ten times in each replica.lag.max. An open change that is still open
// asks again: its answer may be lost.
func (l *Leader) Tick(now time.Time, end kafka.Offset, lag time.Duration) Effects {
	l.marks.note(now, end, lag)
	return Effects{Change: l.wantsChange()}
}
