package group

import (
	"fmt"
	"time"

	"strandline.dev/internal/kafka"
)

// BacklogState says how a group does in a partition, or as a whole: there it is the worst of its partitions.
type BacklogState int8

// The states, in the order of what an operator has to know first.
const (
	CaughtUp BacklogState = iota + 1
	Behind
	BacklogUnknown
	FallingBehind
	Stuck
	NoMembers
	LosingData
)

// String returns the state in words.
func (s BacklogState) String() string {
	switch s {
	case CaughtUp:
		return "caught up"
	case Behind:
		return "behind"
	case BacklogUnknown:
		return "unknown"
	case FallingBehind:
		return "falling behind"
	case Stuck:
		return "stuck"
	case NoMembers:
		return "no members"
	case LosingData:
		return "losing data"
	}
	return "none"
}

// BacklogStates are the names of the states, each at its number's place; what no state has is "none".
func BacklogStates() []string {
	names := make([]string, LosingData+1)
	for s := range names {
		names[s] = BacklogState(s).String()
	}
	return names
}

const (
	// stuckAfter is how old the oldest unread record and the newest commit of a group with members must be for it to be stuck: clients
	// commit every five seconds, and an hour would be too late to say it.
	stuckAfter = time.Minute
	// TrendOver is the time over which a trend is looked at; with less there is none.
	TrendOver = 30 * time.Second
)

// BacklogFacts is what is known of a group in one partition.
type BacklogFacts struct {
	Committed kafka.Offset  // NoOffset: nothing is committed
	SinceMove time.Duration // since the last commit
	Members   int           // of the group
	// Known says that the partition's leader has answered; the rest is from it. Why says why not.
	Known      bool
	Why        string
	Start, End kafka.Offset
	Unread     bool          // a record is there to be read
	Oldest     time.Duration // age of the oldest one
	LossIn     time.Duration // when retention passes it
	Expires    bool          // whether it ever does
	// Before is the lag Ago; Ago is 0 when it is not known.
	Before int64
	Ago    time.Duration
}

// Backlog is what a group has not read of one partition, and what that means.
type Backlog struct {
	State BacklogState
	Rule  string // why it is in this state
	Lag   int64  // records; -1: unknown
	// Lost is the range of records that the group can no longer read; empty when From is NoOffset.
	Lost LostRange
	// Trend is the change of the lag in whole records a minute, since Ago; HasTrend is false when there is none to be told.
	Trend    int64
	HasTrend bool
}

// LostRange is [From, To).
type LostRange struct{ From, To kafka.Offset }

// IsEmpty says that nothing is lost.
func (r LostRange) IsEmpty() bool { return r.To <= r.From }

// Judge applies the rules to the facts. The first that fits decides.
func Judge(f BacklogFacts) Backlog {
	b := Backlog{Lag: -1}
	if !f.Known {
		b.State, b.Rule = BacklogUnknown, f.Why
		return b
	}
	from := f.Committed
	if from == kafka.NoOffset {
		from = f.Start
	}
	if f.Unread { // else what is left of the log has no records: compaction has removed them
		b.Lag = max(int64(f.End-max(from, f.Start)), 0)
	} else {
		b.Lag = 0
	}
	if f.Ago >= TrendOver {
		b.Trend, b.HasTrend = int64(float64(b.Lag-f.Before)/f.Ago.Minutes()), true
	}
	switch {
	case from < f.Start:
		b.State, b.Lost = LosingData, LostRange{from, f.Start}
		b.Rule = fmt.Sprintf("the first record kept is %d: records %d to %d are gone unread", f.Start, from, f.Start-1)
	case from > f.End:
		b.State, b.Lost = LosingData, LostRange{f.End, from}
		b.Rule = fmt.Sprintf("committed %d is above the end %d: records that were read are gone from the log, or more was committed than there was", from, f.End)
	case b.Lag == 0:
		b.State, b.Rule = CaughtUp, "everything is read"
	case f.Expires && f.LossIn <= 0:
		b.State, b.Rule = LosingData, fmt.Sprintf("retention may remove record %d at any moment", from)
	case f.Members == 0:
		b.State, b.Rule = NoMembers, "records wait and the group has no members"
	case f.SinceMove >= stuckAfter && f.Oldest >= stuckAfter:
		b.State, b.Rule = Stuck, fmt.Sprintf("nothing was committed for %v while records wait", f.SinceMove.Round(time.Second))
	case b.HasTrend && b.Trend > 0:
		b.State, b.Rule = FallingBehind, fmt.Sprintf("the lag grew by %d records in %v", b.Lag-f.Before, f.Ago.Round(time.Second))
	default:
		b.State, b.Rule = Behind, "records wait and the group reads"
	}
	return b
}
