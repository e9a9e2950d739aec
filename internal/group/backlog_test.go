package group

import (
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
)

// TestR176_R177_R183_Judge: each state by its rule, in the order in which an operator has to know.
func TestR176_R177_R183_Judge(t *testing.T) {
	base := BacklogFacts{Committed: 50, Members: 2, Known: true, Start: 10, End: 60, Unread: true, Oldest: 5 * time.Second, LossIn: time.Hour, Expires: true}
	for _, c := range []struct {
		name   string
		change func(*BacklogFacts)
		state  BacklogState
		lag    int64
		lost   LostRange
		rule   string
	}{
		{name: "behind", state: Behind, lag: 10},
		{name: "caught up", change: func(f *BacklogFacts) { f.Committed = 60 }, state: CaughtUp, lag: 0},
		{name: "caught up without members", change: func(f *BacklogFacts) { f.Committed, f.Members = 60, 0 }, state: CaughtUp, lag: 0},
		{name: "only gaps of compaction are left", change: func(f *BacklogFacts) { f.Unread, f.Oldest = false, 0 }, state: CaughtUp, lag: 0},
		{name: "no members", change: func(f *BacklogFacts) { f.Members = 0 }, state: NoMembers, lag: 10},
		{name: "unknown is not 0", change: func(f *BacklogFacts) { f.Known, f.Why = false, "node 2 is away" }, state: BacklogUnknown, lag: -1, rule: "node 2"},
		{name: "losing data: passed", change: func(f *BacklogFacts) { f.Committed = 4 }, state: LosingData, lag: 50, lost: LostRange{4, 10}, rule: "4 to 9"},
		{name: "passed to the end", change: func(f *BacklogFacts) { f.Committed, f.Start, f.Unread = 4, 60, false }, state: LosingData, lag: 0, lost: LostRange{4, 60}},
		{name: "losing data: at any moment", change: func(f *BacklogFacts) { f.LossIn = 0 }, state: LosingData, lag: 10},
		{name: "losing data: cut above the end", change: func(f *BacklogFacts) { f.Committed = 70 }, state: LosingData, lag: 0, lost: LostRange{60, 70}},
		{name: "kept for ever", change: func(f *BacklogFacts) { f.LossIn, f.Expires = 0, false }, state: Behind, lag: 10},
		{name: "stuck", change: func(f *BacklogFacts) { f.SinceMove, f.Oldest = time.Minute, 2*time.Minute }, state: Stuck, lag: 10, rule: "1m0s"},
		{name: "not stuck: it only just got work", change: func(f *BacklogFacts) { f.SinceMove = time.Hour }, state: Behind, lag: 10},
		{name: "falling behind", change: func(f *BacklogFacts) { f.Before, f.Ago = 4, time.Minute }, state: FallingBehind, lag: 10, rule: "6 records"},
		{name: "catching up", change: func(f *BacklogFacts) { f.Before, f.Ago = 40, time.Minute }, state: Behind, lag: 10},
		{name: "too early for a trend", change: func(f *BacklogFacts) { f.Before, f.Ago = 4, time.Second }, state: Behind, lag: 10},
		{name: "nothing committed: counted from the start", change: func(f *BacklogFacts) { f.Committed = kafka.NoOffset }, state: Behind, lag: 50},
	} {
		f := base
		if c.change != nil {
			c.change(&f)
		}
		b := Judge(f)
		if b.State != c.state || b.Lag != c.lag || b.Lost != c.lost || b.Rule == "" || !strings.Contains(b.Rule, c.rule) {
			t.Errorf("%s: %+v, want %v, lag %d, lost %v", c.name, b, c.state, c.lag, c.lost)
		}
	}
	if b := Judge(BacklogFacts{Known: true, Unread: true, End: 30, Before: 10, Ago: 2 * time.Minute}); !b.HasTrend || b.Trend != 10 {
		t.Errorf("trend %+v, want 10 records a minute", b)
	}
	var r Report
	if _, has := r.Trend(); has {
		t.Error("a group without partitions has a trend")
	}
	r.Partitions = []PartitionReport{{}, {Backlog: Backlog{Trend: 7, HasTrend: true}}}
	if sum, has := r.Trend(); has {
		t.Errorf("trend of a group of which one partition's is not known: %d", sum)
	}
	r.Partitions = []PartitionReport{{Backlog: Backlog{HasTrend: true}}, {Backlog: Backlog{Trend: 7, HasTrend: true}}, {Backlog: Backlog{Trend: -9, HasTrend: true}}}
	if sum, has := r.Trend(); !has || sum != -2 {
		t.Errorf("trend of a group: %d, %v", sum, has)
	}
	if names := BacklogStates(); len(names) != int(LosingData)+1 || names[0] != "none" || names[LosingData] != "losing data" || names[CaughtUp] != "caught up" {
		t.Errorf("states %q", names)
	}
}
