package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"strandline.dev/internal/kafka"
)

// TestI14_GroupsAndPendingMembersAreBounded: what clients can make a shard keep ends at a named limit with an error.
func TestI14_GroupsAndPendingMembersAreBounded(t *testing.T) {
	w := newWorld(t, Config{})
	w.fast = true
	ev := goodJoin
	ev.RequireMemberID = true
	for i := range pendingMax {
		binary.BigEndian.PutUint32(ev.Random[:], uint32(i))
		if code := joinCode(w, ev); code != kafka.MemberIDRequired {
			t.Fatalf("pending %d: %v", i, code)
		}
	}
	ev.Random[15] = 1
	if code := joinCode(w, ev); code != kafka.GroupMaxSizeReached {
		t.Errorf("one too many: %v", code)
	}
	for i := len(w.shard.groups); i < groupsMax; i++ {
		w.shard.groups[fmt.Sprint("g", i)] = w.shard.groups["G"]
	}
	ev.Group = "one more"
	if code := joinCode(w, ev); code != kafka.PolicyViolation {
		t.Errorf("one group too many: %v", code)
	}
	e := w.do(CommitOffsets{Group: "one more", Generation: NoGeneration, Topics: []CommitTopic{{Name: "t", Partitions: []CommitPartition{{}}}}})
	if code := e.Replies[0].Response.(*CommitReply).Topics[0].Partitions[0].Code; code != kafka.PolicyViolation {
		t.Errorf("one group too many by a commit: %v", code)
	}
}

// TestI14_ExpiryAndPurgesGoInBatches: many offsets go in several steps, none is forgotten, and the next step is due at once.
func TestI14_ExpiryAndPurgesGoInBatches(t *testing.T) {
	const offsets = 2*recordsMax + 500
	commit := CommitOffsets{Group: "G", Generation: NoGeneration, Topics: []CommitTopic{{Name: "t", ID: testID(1)}}}
	for p := range int32(offsets) {
		commit.Topics[0].Partitions = append(commit.Topics[0].Partitions, CommitPartition{Partition: p, Offset: 1})
	}
	for name, remove := range map[string]func(w *world) Effects{
		"expiry": func(w *world) Effects {
			w.now.Mono, w.now.Wall = w.now.Mono.Add(20*24*time.Hour), w.now.Wall.Add(20*24*time.Hour)
			return w.do(Tick{})
		},
		"purge": func(w *world) Effects { return w.do(TopicsDeleted{IDs: []kafka.TopicID{testID(1), {}}}) },
	} {
		w := newWorld(t, Config{})
		w.fast = true
		w.do(commit)
		e := remove(w)
		steps := 1
		for removed := 0; ; steps++ {
			if len(e.Records) > recordsMax+1 {
				t.Fatalf("%s: %d records in one step", name, len(e.Records))
			}
			removed += len(e.Records)
			if at, ok := w.shard.NextDeadline(); removed == offsets {
				break
			} else if !ok || at.After(w.now.Mono) {
				t.Fatalf("%s: %d of %d removed, and nothing is due", name, removed, offsets)
			}
			e = w.do(Tick{})
		}
		if steps != 3 || len(w.shard.groups) != 0 {
			t.Errorf("%s: %d steps, %d groups left", name, steps, len(w.shard.groups))
		}
	}
}

// TestI14_TicksAreBounded: a Tick stops looking at offsets after a while, and does not come back for each offset.
func TestI14_TicksAreBounded(t *testing.T) {
	w := newWorld(t, Config{})
	w.fast = true
	commit := CommitOffsets{Generation: NoGeneration, Topics: []CommitTopic{{Name: "t", ID: testID(1)}}}
	for p := range int32(5000) {
		commit.Topics[0].Partitions = append(commit.Topics[0].Partitions, CommitPartition{Partition: p, Offset: 1})
	}
	for g := range 10 {
		commit.Group = fmt.Sprint("g", g)
		w.do(commit)
	}
	ticks := w.advance(expiryCheckMax)
	if len(ticks) < 2 {
		t.Errorf("%d ticks looked at %d offsets", len(ticks), 10*5000)
	}
	w = newWorld(t, Config{})
	w.fast = true
	commit.Group = "G"
	commit.Topics[0].Partitions = make([]CommitPartition, 1)
	for p := range int32(1000) {
		commit.Topics[0].Partitions[0].Partition = p
		w.do(commit)
		w.advance(time.Second)
	}
	if ticks := w.advance(15 * 24 * time.Hour); len(ticks) > 25 || len(w.shard.groups) != 0 {
		t.Errorf("%d ticks for offsets that grow old one after the other, %d groups left", len(ticks), len(w.shard.groups))
	}
}

// TestMemberNearTheLimitRejoins: what a member takes already is not counted twice when it joins again.
func TestMemberNearTheLimitRejoins(t *testing.T) {
	w := newWorld(t, Config{RecordBytesMax: 2000, ProtocolBytesMax: 2000})
	ev := goodJoin
	ev.Protocols = []Protocol{{Name: "range", Metadata: make([]byte, 1500)}}
	m := w.do(ev).Replies[0].Response.(*JoinReply)
	ev.MemberID, ev.Protocols = m.MemberID, []Protocol{{Name: "range", Metadata: make([]byte, 1600)}}
	if code := joinCode(w, ev); code != kafka.None {
		t.Error(code)
	}
	ev.MemberID, ev.Random = "", kafka.ID{1}
	if code := joinCode(w, ev); code != kafka.GroupMaxSizeReached {
		t.Error(code)
	}
}

func TestNextGenerationIsNeverNegative(t *testing.T) {
	for gen, want := range map[Generation]Generation{0: 1, 7: 8, math.MaxInt32: 1, -1: 1, math.MinInt32: 1} {
		if got := (&classicGroup{generation: gen}).nextGeneration(); got != want {
			t.Errorf("after %d comes %d, want %d", gen, got, want)
		}
	}
}

func TestClipKeepsCharactersWhole(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"aé", 2, "a"}, {"é", 1, ""}, {"日本", 4, "日"}, {"", 0, ""}} {
		if got := clip(c.text, c.n); got != c.want {
			t.Errorf("%q cut to %d is %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

// TestPurgeLeavesOffsetsWithoutAnID: an offset of before topic ids names no topic for good, so no purge can mean it (I10).
func TestPurgeLeavesOffsetsWithoutAnID(t *testing.T) {
	w := newWorld(t, Config{})
	w.do(CommitOffsets{Group: "G", Generation: NoGeneration, Topics: []CommitTopic{{Name: "t", Partitions: []CommitPartition{{Offset: 5}}}}})
	w.do(TopicsDeleted{IDs: []kafka.TopicID{{}, testID(1)}})
	if got := w.stored("G", "t", 0); got != 5 {
		t.Errorf("the offset is %d", got)
	}
}

// TestShellContract: a shell that goes on without applying, or before the log is read, is stopped.
func TestShellContract(t *testing.T) {
	stops := func(f func()) (stopped bool) {
		defer func() { stopped = recover() != nil }()
		f()
		return false
	}
	now := newWorld(t, Config{}).now
	s := NewShard(Config{})
	if !stops(func() { s.Step(Tick{}, now) }) {
		t.Error("a tick before the log is read")
	}
	s.Step(Loaded{}, now)
	if !stops(func() { s.Step(Loaded{}, now) }) {
		t.Error("loaded twice")
	}
	e := s.Step(CommitOffsets{Group: "G", Generation: NoGeneration, Topics: []CommitTopic{{Name: "t", Partitions: []CommitPartition{{}}}}}, now)
	if !stops(func() { s.Step(Tick{}, now) }) {
		t.Error("a step before the records of the last one are applied")
	}
	if err := s.Apply(e.Records[0].Key, e.Records[0].Value, now.Wall); err != nil {
		t.Fatal(err)
	}
	if stops(func() { s.Step(Tick{}, now) }) {
		t.Error("stopped without reason")
	}
}

// TestI8_UnknownRecordsStopTheReplay: a record that this release does not know, or cannot read, is an error and changes nothing.
func TestI8_UnknownRecordsStopTheReplay(t *testing.T) {
	offset, group := offsetKey("G", topicPartition{"t", 0}), groupKey("G")
	w := newWorld(t, Config{})
	m := w.do(goodJoin).Replies[0].Response.(*JoinReply)
	good := w.do(Sync{Token: 1, Group: "G", MemberID: m.MemberID, Generation: 1}).Records[0].Value
	for name, c := range map[string]struct {
		key, value []byte
		want       error
	}{
		"no key":                       {nil, nil, ErrMalformed},
		"a key of a newer release":     {[]byte{0, 99, 0, 1, 'G'}, nil, ErrUnknownRecord},
		"half a consumer group's key":  {[]byte{0, 3, 0, 2, 'G'}, nil, ErrMalformed},
		"a member's key without it":    {[]byte{0, 5, 0, 1, 'G'}, nil, ErrMalformed},
		"an epoch value of version 1":  {[]byte{0, 3, 0, 1, 'G'}, []byte{0, 1, 0, 0, 0, 1, 0}, ErrUnknownRecord},
		"half an epoch value":          {[]byte{0, 3, 0, 1, 'G'}, []byte{0, 0, 0, 0, 0}, ErrMalformed},
		"an epoch value and a byte":    {[]byte{0, 3, 0, 1, 'G'}, []byte{0, 0, 0, 0, 0, 1, 0, 7}, ErrMalformed},
		"a member in state 3":          {[]byte{0, 8, 0, 1, 'G', 0, 1, 'm'}, []byte{0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 3, 1, 1, 0}, ErrMalformed},
		"a negative key version":       {[]byte{255, 255, 0, 1, 'G'}, nil, ErrUnknownRecord},
		"half an offset key":           {offset[:7], nil, ErrMalformed},
		"half a group key":             {group[:4], nil, ErrMalformed},
		"an offset value of version 5": {offset, []byte{0, 5, 0, 0}, ErrUnknownRecord},
		"an empty offset value":        {offset, []byte{}, ErrMalformed},
		"half an offset value":         {offset, []byte{0, 4, 0, 0}, ErrMalformed},
		"a group value of version 5":   {group, []byte{0, 5, 0, 0}, ErrUnknownRecord},
		"half a group value":           {group, good[:len(good)-1], ErrMalformed},
		"a group value of nothing":     {group, []byte{0}, ErrMalformed},
	} {
		s := replay(t, Config{}, w.log)
		before := fmt.Sprint(hardState(s))
		if err := s.Apply(c.key, c.value, w.now.Wall); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if after := fmt.Sprint(hardState(s)); after != before {
			t.Errorf("%s: the state changed", name)
		}
	}
}

// TestTimersAgainstModel: the heap gives the timers in the order of their times, and of their arming.
func TestTimersAgainstModel(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(rt *rapid.T) {
		var h timers
		all := make([]*timer, 12)
		for i := range all {
			all[i] = &timer{}
		}
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			tm := all[rapid.IntRange(0, len(all)-1).Draw(rt, "timer")]
			if rapid.IntRange(0, 2).Draw(rt, "what") == 0 {
				h.disarm(tm)
			} else {
				h.arm(tm, start.Add(time.Duration(rapid.IntRange(0, 5).Draw(rt, "at"))))
			}
			var least *timer
			armed := 0
			for _, o := range all {
				if o.isArmed() {
					armed++
					if least == nil || o.before(least) {
						least = o
					}
				}
			}
			if h.first() != least || len(h.heap) != armed {
				rt.Fatalf("first is %+v, want %+v; %d armed, want %d", h.first(), least, len(h.heap), armed)
			}
		}
	})
}
