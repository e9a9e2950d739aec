package check

import (
	"strings"
	"testing"
	"time"
)

var k = Key{"orders", 0}

// sent is an acknowledged send with acks=all of producer 1.
func sent(value uint64, offset int64, begin, end int) Send {
	return Send{Key: k, Value: value, Producer: 1, Begin: time.Duration(begin), End: time.Duration(end), Outcome: OK, Offset: offset, All: true}
}

func outcome(s Send, o Outcome) Send {
	s.Outcome = o
	if o != OK {
		s.Offset = -1
	}
	return s
}

func by(producer int, s Send) Send { s.Producer = producer; return s }

// log is a final log from offset 0 of the given values; 0 leaves a hole. Its high watermark is its end.
func log(node int32, values ...uint64) Replica {
	r := Replica{Key: k, Node: node, HighWatermark: int64(len(values))}
	for i, v := range values {
		if v != 0 {
			r.Entries = append(r.Entries, Entry{Offset: int64(i), Value: v})
		}
	}
	return r
}

func epochs(r Replica, of ...int32) Replica {
	for i := range r.Entries {
		r.Entries[i].Epoch = of[i]
	}
	return r
}

func below(hw int64, r Replica) Replica { r.HighWatermark = hw; return r }

func from(start int64, r Replica) Replica {
	r.Start = start
	for len(r.Entries) > 0 && r.Entries[0].Offset < start {
		r.Entries = r.Entries[1:]
	}
	return r
}

func poll(session int, offset int64, value uint64) Poll {
	return Poll{Key: k, Session: session, Offset: offset, Value: value}
}

func watch(client int, hw int64, begin, end int) Watch {
	return Watch{Key: k, Client: client, HighWatermark: hw, Begin: time.Duration(begin), End: time.Duration(end)}
}

func carrying(epoch int32, w Watch) Watch { w.Epoch = epoch; return w }

func commit(o Outcome, offset int64, begin, end int) Commit {
	return Commit{Key: k, Group: "g", Outcome: o, Offset: offset, Begin: time.Duration(begin), End: time.Duration(end)}
}

func fetched(offset int64, begin, end int) Commit {
	return Commit{Key: k, Group: "g", Outcome: OK, Offset: offset, Begin: time.Duration(begin), End: time.Duration(end), Fetched: true}
}

// three are values 1, 2, 3 acknowledged one after the other at offsets 0, 1, 2.
func three() []Send { return []Send{sent(1, 0, 0, 1), sent(2, 1, 2, 3), sent(3, 2, 4, 5)} }

// plain makes sends those of a writer without sequences.
func plain(sends []Send) []Send {
	for i := range sends {
		sends[i].Producer = 0
	}
	return sends
}

func TestJudge_RefusesBadHistories(t *testing.T) {
	for _, c := range []struct {
		name, want string
		h          History
	}{
		{"an acknowledged record is on no replica", "P1", History{Sends: three(), Replicas: []Replica{log(1, 1, 2)}}},
		{"an acknowledged record is missing on one replica", "P1", History{Sends: three(), Replicas: []Replica{log(1, 1, 2, 3), log(2, 1, 0, 3)}}},
		{"all is lost", "P1", History{Sends: three(), Replicas: []Replica{log(1)}}},
		{"there is no log at all", "P1", History{Sends: three()}},
		{"lost above the deleted records", "P1", History{Sends: three(), Cuts: []Cut{{k, 1, OK}}, Replicas: []Replica{from(2, log(1, 1, 2, 3))}}},
		{"two replicas hold different records", "P2", History{Sends: append(three(), outcome(sent(4, 0, 0, 9), Unknown)), Replicas: []Replica{log(1, 1, 2, 3), log(2, 1, 4, 3)}}},
		{"a reader saw another record than is there now", "P2", History{Sends: append(three(), outcome(sent(4, 0, 0, 9), Unknown)), Polls: []Poll{poll(1, 1, 4)}, Replicas: []Replica{log(1, 1, 2, 3)}}},
		{"two acknowledgements of one offset", "P2", History{Sends: []Send{sent(1, 0, 0, 1), sent(2, 0, 2, 3)}, Replicas: []Replica{log(1, 1)}}},
		{"a record that nobody sent", "P3", History{Sends: three(), Replicas: []Replica{log(1, 1, 2, 3, 9)}}},
		{"a refused record is there", "P3", History{Sends: append(three(), outcome(sent(4, 0, 6, 7), Failed)), Replicas: []Replica{log(1, 1, 2, 3, 4)}}},
		{"a record of another partition", "P3", History{Sends: append(three(), Send{Key: Key{"orders", 1}, Value: 4}), Replicas: []Replica{log(1, 1, 2, 3, 4)}}},
		{"a record twice", "P4", History{Sends: three(), Replicas: []Replica{log(1, 1, 2, 3, 3)}}},
		{"an unconfirmed record twice", "P4", History{Sends: append(three(), outcome(sent(4, 0, 6, 7), Unknown)), Replicas: []Replica{log(1, 1, 2, 3, 4, 4)}}},
		{"a producer's records in another order", "P5", History{Sends: []Send{outcome(sent(1, 0, 0, 9), Unknown), outcome(sent(2, 0, 0, 9), Unknown)}, Replicas: []Replica{log(1, 2, 1)}}},
		{"sent after, stored before", "P6", History{Sends: []Send{by(1, sent(1, 1, 0, 1)), by(2, sent(2, 0, 2, 3))}, Replicas: []Replica{log(1, 2, 1)}}},
		{"a reader skips a record", "P7", History{Sends: three(), Polls: []Poll{poll(1, 0, 1), poll(1, 2, 3)}, Replicas: []Replica{log(1, 1, 2, 3)}}},
		{"a reader goes back", "P7", History{Sends: three(), Polls: []Poll{poll(1, 1, 2), poll(1, 0, 1)}, Replicas: []Replica{log(1, 1, 2, 3)}}},
		{"a reader saw a record that is gone", "P8", History{Sends: append(three(), outcome(sent(4, 0, 6, 7), Unknown)), Polls: []Poll{poll(1, 3, 4)}, Replicas: []Replica{log(1, 1, 2, 3)}}},
		{"the end shown is below an acknowledged record", "P9", History{Sends: plain(three()), Watches: []Watch{watch(1, 2, 6, 7)}, Replicas: []Replica{log(1, 1, 2, 3)}}},
		{"the end shown in the newest epoch is below an acknowledged record", "P9", History{Sends: plain(three()), Watches: []Watch{carrying(1, watch(1, 2, 6, 7))}, Replicas: []Replica{epochs(log(1, 1, 2, 3), 0, 0, 1)}}},
		{"the end shown goes back", "P10", History{Sends: []Send{outcome(sent(1, 0, 0, 9), Unknown)}, Watches: []Watch{watch(1, 3, 1, 2), watch(1, 2, 3, 4)}}},
		{"replicas disagree about who wrote a record", "P12", History{Sends: three(), Replicas: []Replica{epochs(log(1, 1, 2, 3), 0, 0, 1), epochs(log(2, 1, 2, 3), 0, 1, 1)}}},
		{"the leader epoch falls along the log", "P13", History{Sends: three(), Replicas: []Replica{epochs(log(1, 1, 2, 3), 0, 2, 1)}}},
		{"acknowledged below the minimum", "P18", History{Sends: []Send{{Key: k, Value: 1, Outcome: OK, All: true, Replicas: 1, Needed: 2}}, Replicas: []Replica{log(1, 1)}}},
		{"the log begins where nobody asked for", "P19", History{Sends: three(), Replicas: []Replica{from(1, log(1, 1, 2, 3))}}},
		{"an offset holds two records", "P19", History{Sends: three(), Replicas: []Replica{{Key: k, Node: 1, HighWatermark: 3, Entries: []Entry{{0, 1, 0}, {1, 2, 0}, {1, 2, 0}, {2, 3, 0}}}}}},
		{"the start is above the watermark", "P19", History{Cuts: []Cut{{k, 3, OK}}, Replicas: []Replica{below(1, from(3, log(1, 1, 2, 3)))}}},
		{"a committed offset goes back", "P30", History{Commits: []Commit{commit(OK, 5, 0, 1), fetched(4, 2, 3)}}},
		{"a committed offset is invented", "P30", History{Commits: []Commit{commit(OK, 5, 0, 1), fetched(6, 2, 3)}}},
		{"a committed offset is forgotten", "P30", History{Commits: []Commit{commit(OK, 5, 0, 1), fetched(-1, 2, 3)}}},
	} {
		bad := Judge(&c.h)
		if !strings.Contains("\n"+strings.Join(bad, "\n"), "\n"+c.want+" ") {
			t.Errorf("%s: want %s, got %q", c.name, c.want, bad)
		}
	}
}

func TestJudge_AcceptsGoodHistories(t *testing.T) {
	for _, c := range []struct {
		name string
		h    History
	}{
		{"nothing happened", History{}},
		{"all there", History{Sends: three(), Replicas: []Replica{log(1, 1, 2, 3), log(2, 1, 2, 3)}}},
		{"an unconfirmed record is there", History{Sends: append(three(), outcome(sent(4, 0, 6, 7), Unknown)), Replicas: []Replica{log(1, 1, 2, 3, 4)}}},
		{"an unconfirmed record is not there", History{Sends: append(three(), outcome(sent(4, 0, 6, 7), Unknown)), Replicas: []Replica{log(1, 1, 2, 3)}}},
		{"a refused record is not there", History{Sends: append(three(), outcome(sent(4, 0, 6, 7), Failed)), Replicas: []Replica{log(1, 1, 2, 3)}}},
		{"unconfirmed records of two producers in either order", History{Sends: []Send{by(1, outcome(sent(1, 0, 0, 9), Unknown)), by(2, outcome(sent(2, 0, 0, 9), Unknown))}, Replicas: []Replica{log(1, 2, 1)}}},
		{"confirmed at the same time, in either order", History{Sends: []Send{by(1, sent(1, 1, 0, 5)), by(2, sent(2, 0, 1, 4))}, Replicas: []Replica{log(1, 2, 1)}}},
		{"an unconfirmed record is stored long after", History{Sends: []Send{by(1, outcome(sent(1, 0, 0, 1), Unknown)), by(2, sent(2, 0, 5, 6))}, Replicas: []Replica{log(1, 2, 1)}}},
		{"a producer without idempotence stored a record twice", History{Sends: []Send{by(0, sent(1, 0, 0, 1))}, Replicas: []Replica{log(1, 1, 1)}}},
		{"holes in the offsets", History{Sends: []Send{sent(1, 0, 0, 1), sent(3, 2, 4, 5)}, Polls: []Poll{poll(1, 0, 1), poll(1, 2, 3)}, Replicas: []Replica{log(1, 1, 0, 3)}}},
		{"deleted records are gone", History{Sends: three(), Cuts: []Cut{{k, 2, OK}}, Replicas: []Replica{from(2, log(1, 1, 2, 3))}}},
		{"a deletion without an answer took place", History{Sends: three(), Cuts: []Cut{{k, 2, Unknown}}, Replicas: []Replica{from(2, log(1, 1, 2, 3))}}},
		{"a reader over deleted records", History{Sends: three(), Cuts: []Cut{{k, 2, OK}}, Polls: []Poll{poll(1, 0, 1), poll(1, 2, 3)}, Replicas: []Replica{from(2, log(1, 1, 2, 3))}}},
		{"replicas differ above the watermark", History{Sends: append(three(), outcome(sent(4, 0, 6, 7), Unknown), outcome(sent(5, 0, 6, 7), Unknown)), Replicas: []Replica{log(1, 1, 2, 3, 4), below(3, log(2, 1, 2, 3, 5))}}},
		{"another session begins again", History{Sends: three(), Polls: []Poll{poll(1, 0, 1), poll(1, 1, 2), poll(2, 0, 1), poll(1, 2, 3)}, Replicas: []Replica{log(1, 1, 2, 3)}}},
		{"a reader that is behind", History{Sends: three(), Polls: []Poll{poll(1, 0, 1)}, Replicas: []Replica{log(1, 1, 2, 3)}}},
		{"an end asked for while a record is acknowledged", History{Sends: plain(three()), Watches: []Watch{watch(1, 2, 4, 9), watch(1, 3, 10, 11)}, Replicas: []Replica{log(1, 1, 2, 3)}}},
		{"a deposed leader's end, to a client that has not heard of the next", History{Sends: plain(three()), Watches: []Watch{carrying(0, watch(1, 2, 6, 7))}, Replicas: []Replica{epochs(log(1, 1, 2, 3), 0, 0, 1)}}},
		{"a deposed leader's end, the record of the next one deleted since", History{Sends: plain(three()), Cuts: []Cut{{k, 3, OK}}, Watches: []Watch{watch(1, 2, 6, 7)}, Replicas: []Replica{from(3, log(1, 1, 2, 3))}}},
		{"a deposed leader's end, after the next one confirmed a repeat of the last record", History{Sends: three(), Watches: []Watch{watch(1, 2, 6, 7)}, Replicas: []Replica{log(1, 1, 2, 3)}}},
		{"two clients are shown different ends", History{Sends: []Send{outcome(sent(1, 0, 0, 9), Unknown)}, Watches: []Watch{watch(1, 3, 1, 2), watch(2, 2, 3, 4)}}},
		{"questions that overlap are answered in any order", History{Sends: []Send{outcome(sent(1, 0, 0, 9), Unknown)}, Watches: []Watch{watch(1, 3, 1, 5), watch(1, 2, 2, 4)}}},
		{"acks=1 is lost", History{Sends: []Send{{Key: k, Value: 1, Outcome: OK, Offset: 0}}, Replicas: []Replica{log(1)}}},
		{"acknowledged at the minimum", History{Sends: []Send{{Key: k, Value: 1, Outcome: OK, All: true, Replicas: 2, Needed: 2}}, Replicas: []Replica{log(1, 1)}}},
		{"leader epochs rise", History{Sends: three(), Replicas: []Replica{epochs(log(1, 1, 2, 3), 0, 0, 4), epochs(log(2, 1, 2, 3), 0, 0, 4)}}},
		{"a commit without an answer counts", History{Commits: []Commit{commit(OK, 5, 0, 1), commit(Unknown, 9, 2, 3), fetched(9, 4, 5)}}},
		{"a commit without an answer does not count", History{Commits: []Commit{commit(OK, 5, 0, 1), commit(Unknown, 9, 2, 3), fetched(5, 4, 5)}}},
		{"a commit under way", History{Commits: []Commit{commit(OK, 5, 0, 1), commit(OK, 9, 2, 8), fetched(5, 4, 5), fetched(9, 9, 10)}}},
		{"nothing was committed", History{Commits: []Commit{fetched(-1, 0, 1)}}},
	} {
		if bad := Judge(&c.h); len(bad) != 0 {
			t.Errorf("%s: refused: %q", c.name, bad)
		}
	}
}
