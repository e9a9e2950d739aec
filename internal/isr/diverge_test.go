package isr

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"strandline.dev/internal/kafka"
)

// history is a log as the epochs of its records, from offset start on.
type history struct {
	start  kafka.Offset
	epochs []kafka.LeaderEpoch
}

func (h history) end() kafka.Offset { return h.start + kafka.Offset(len(h.epochs)) }

// last is the epoch of the last record.
func (h history) last() kafka.LeaderEpoch {
	if len(h.epochs) == 0 {
		return kafka.NoEpoch
	}
	return h.epochs[len(h.epochs)-1]
}

// known is the largest epoch at or below e, and where it ends.
func (h history) known(e kafka.LeaderEpoch) kafka.EpochEnd {
	out := kafka.EpochEnd{Epoch: kafka.NoEpoch, End: kafka.NoOffset}
	for i, x := range h.epochs {
		if x <= e {
			out = kafka.EpochEnd{Epoch: x, End: h.start + kafka.Offset(i) + 1}
		}
	}
	return out
}

func (h history) cut(at kafka.Offset) history {
	if at <= h.start {
		return history{start: at}
	}
	return history{h.start, h.epochs[:at-h.start]}
}

// align lets a follower ask and cut until it agrees with the leader, and returns its log and the number of cuts.
func align(leader, follower history) (history, int, error) {
	for cuts := 0; ; cuts++ {
		v, at := Compare(follower.end(), follower.last(), Extent{leader.start, leader.end(), leader.known(follower.last())})
		switch v {
		case Agrees:
			return follower, cuts, nil
		case TooOld:
			if !Outdated(leader.start, follower.end()) {
				return follower, cuts, fmt.Errorf("too old, and not outdated: leader %v, follower %v", leader, follower)
			}
			return history{start: leader.start}, cuts, nil
		}
		to, anew := CutAt(at, follower.known(at.Epoch), follower.start, follower.end())
		if anew {
			follower.start, follower.epochs = to, nil
			continue
		}
		if to > follower.end() || to == follower.end() && follower.last() == kafka.NoEpoch {
			return follower, cuts, fmt.Errorf("cut at %d changes nothing: leader %v, follower %v", to, leader, follower)
		}
		if follower = follower.cut(to); cuts > 20 {
			return follower, cuts, fmt.Errorf("never agree: leader %v, follower %v", leader, follower)
		}
	}
}

// TestC002_EpochsThatTheLeaderNeverHad: leader {1: 0-2, 3: 3-}, follower {1: 0-1, 2: 2-5}: the follower cuts at 2.
func TestC002_EpochsThatTheLeaderNeverHad(t *testing.T) {
	leader := history{0, []kafka.LeaderEpoch{1, 1, 1, 3, 3}}
	got, cuts, err := align(leader, history{0, []kafka.LeaderEpoch{1, 1, 2, 2, 2, 2}})
	if err != nil || got.end() != 2 || cuts != 1 {
		t.Fatalf("%v after %d cuts, %v", got, cuts, err)
	}
	// Two in a row: {1, 3, 5} against {1, 2, 4}.
	leader = history{0, []kafka.LeaderEpoch{1, 1, 3, 3, 5, 5}}
	got, cuts, err = align(leader, history{0, []kafka.LeaderEpoch{1, 1, 2, 4, 4, 4, 4}})
	if err != nil || got.end() != 2 || cuts != 2 {
		t.Fatalf("%v after %d cuts, %v", got, cuts, err)
	}
}

// TestC014_FollowerAheadOfItsLeaderIsCut: same epoch, end 10 against 5.
func TestC014_FollowerAheadOfItsLeaderIsCut(t *testing.T) {
	got, cuts, err := align(history{0, slices.Repeat([]kafka.LeaderEpoch{1}, 5)}, history{0, slices.Repeat([]kafka.LeaderEpoch{1}, 10)})
	if err != nil || got.end() != 5 || cuts != 1 {
		t.Fatalf("%v after %d cuts, %v", got, cuts, err)
	}
}

// TestI5_CutsKeepExactlyWhatBothLogsHave: random logs that share a beginning. What the follower keeps is in the leader's log, and
// nothing that both logs have in common is cut, so nothing committed is: all of it is common.
func TestI5_CutsKeepExactlyWhatBothLogsHave(t *testing.T) {
	twice := 0
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 2))
		var common []kafka.LeaderEpoch
		e := kafka.LeaderEpoch(0)
		for range r.IntN(8) {
			e += kafka.LeaderEpoch(r.IntN(2))
			common = append(common, e)
		}
		// Two reigns never share an epoch: the leader's own have even numbers, the follower's odd ones.
		grow := func(odd int) history {
			log := slices.Clone(common)
			x := 2*(int(e)+1+r.IntN(2)) + odd
			for range r.IntN(6) {
				log = append(log, kafka.LeaderEpoch(x))
				x += 2 * r.IntN(2)
			}
			return history{0, log}
		}
		leader, follower := grow(0), grow(1)
		if r.IntN(3) == 0 { // retention on the leader
			from := kafka.Offset(r.IntN(len(leader.epochs) + 1))
			leader = history{from, leader.epochs[from:]}
		}
		got, cuts, err := align(leader, follower)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if cuts > 1 {
			twice++
		}
		shared := max(kafka.Offset(len(common)), leader.start)
		if got.end() != min(shared, leader.end()) || (got.last() > leader.last() && len(leader.epochs) > 0) {
			t.Fatalf("seed %d: leader %v, follower %v: kept up to %d, common up to %d", seed, leader, follower, got.end(), shared)
		}
	}
	if twice < 100 {
		t.Fatalf("a second cut was needed %d times only", twice)
	}
}

// TestC005_WatermarkOfAFollower: never beyond its end, never back, never below its start.
func TestC005_WatermarkOfAFollower(t *testing.T) {
	for _, c := range []struct{ known, leader, start, end, want kafka.Offset }{
		{0, 6, 0, 5, 5}, {3, 6, 0, 10, 6}, {7, 6, 0, 10, 7}, {7, 6, 0, 5, 5}, {0, 2, 4, 9, 4}, {0, kafka.NoOffset, 0, 9, 0},
	} {
		if got := FollowerWatermark(c.known, c.leader, c.start, c.end); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
