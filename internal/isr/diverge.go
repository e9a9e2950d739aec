package isr

import "strandline.dev/internal/kafka"

// Extent is what must be known of the leader's log to judge a follower's.
type Extent struct {
	Start, End kafka.Offset
	// Known is the largest epoch of the leader's log at or below the follower's last one, and where it ends; {NoEpoch, NoOffset} when
	// there is none.
	Known kafka.EpochEnd
}

// Verdict is how a follower's log relates to its leader's.
type Verdict uint8

const (
	// Agrees: below the fetch offset both logs are the same.
	Agrees Verdict = iota
	// Diverges: they part below the fetch offset.
	Diverges
	// TooOld: the follower's end lies below the leader's start, so it has nothing that the leader still has.
	TooOld
)

// Compare judges a fetch at an offset, the end of the follower's log, whose last record was written in epoch last (NoEpoch for an
// empty log). With Diverges comes the point that the follower is told (I5): an epoch, and where it ends in the leader's log. The
// follower may not have that epoch; then it cuts further by its own epochs and asks again (C002).
func Compare(at kafka.Offset, last kafka.LeaderEpoch, log Extent) (Verdict, kafka.EpochEnd) {
	none := kafka.EpochEnd{Epoch: kafka.NoEpoch, End: kafka.NoOffset}
	switch {
	case at < log.Start:
		return TooOld, none
	case last == kafka.NoEpoch && at <= log.End:
		return Agrees, none // an empty log; not for an end above ours: what it stands for is not here
	case log.Known.Epoch == kafka.NoEpoch:
		// They share nothing above the leader's start, and below it nobody knows: the follower begins anew there.
		return Diverges, kafka.EpochEnd{Epoch: kafka.NoEpoch, End: log.Start}
	case log.Known.Epoch < last || log.Known.End < at:
		return Diverges, log.Known
	}
	return Agrees, none
}
