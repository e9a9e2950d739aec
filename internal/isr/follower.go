package isr

import "strandline.dev/internal/kafka"

// The rules of a follower. It decides nothing about its partition: where to cut, what is committed and where the log starts is what
// its leader says, applied to what it has.

// CutAt is where a follower cuts its log when the leader has named the point at which they part (I5). own is the follower's largest
// epoch at or below the leader's, and where that ends; start and end are the follower's log. When the follower does not have the epoch,
// it cuts everything newer than what it has below it, and the next fetch goes on from there: in each step at least one epoch goes, so
// it ends where the logs agree (C002). anew says that nothing of the follower's log is in the leader's, so that it begins anew at that point:
// the leader has no epoch as old as the follower's last, so what the follower has below the leader's start, nobody can vouch for. A log without
// records that stays where it is has nothing to begin anew: only its epoch goes. Of a node's idle partitions, all that it led come to this when
// another leads them.
func CutAt(leader, own kafka.EpochEnd, start, end kafka.Offset) (to kafka.Offset, anew bool) {
	at := min(leader.End, end)
	switch {
	case leader.Epoch == kafka.NoEpoch:
		return at, start < end || at < end
	case own.Epoch == kafka.NoEpoch: // all that is here is newer than the leader's epoch
		at = min(at, start)
	default:
		at = min(at, own.End)
	}
	return max(at, 0), at < start
}

// FollowerWatermark is the high watermark that a follower knows after an answer of its leader whose log it agrees with: what the leader
// says, as far as it has it, and never less than it knew. Everything below its log start was committed. A leader fresh in office may
// name a lower one than the last leader did; what was committed then is committed still, if the log has it.
func FollowerWatermark(known, leader, start, end kafka.Offset) kafka.Offset {
	return min(max(known, min(leader, end), start), end)
}

// Outdated says that the leader's log begins above the follower's end, so that nothing here is of use: the one case in which a
// follower drops everything and begins anew at the leader's start. That its end lies above the leader's is never one (C014).
func Outdated(leaderStart, end kafka.Offset) bool { return leaderStart > end }
