package audit

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata")

func testEntry() Entry {
	at := time.UnixMilli(1_700_000_000_123).UTC()
	return Entry{
		Sequence: 7, Previous: HashOf([]byte("before")), Node: 2, Run: kafka.ID{1, 2, 3}, Number: 9, Of: 8, At: at, Until: at.Add(900 * time.Millisecond),
		Count: 3, What: auth.Denied, Principal: "User:alice", Peer: "10.0.0.1:4711", Client: "app", API: "Produce", Resource: "Write on Topic:orders",
		Before: "b", After: "a", Outcome: "no ACL allows it",
	}
}

// TestGolden_Entry: the bytes of an entry are those of docs/formats/audit.md, for ever.
func TestGolden_Entry(t *testing.T) {
	e := testEntry()
	got := hex.EncodeToString(e.Append(nil)) + "\n"
	const file = "testdata/entry.hex"
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Fatalf("%v\n%s", err, got)
	}
	var back Entry
	if err := back.Decode(e.Append(nil)); err != nil || !reflect.DeepEqual(back, e) {
		t.Fatalf("%v\n%+v\n%+v", err, back, e)
	}
	m := delivery{Chain: 2, Entries: []Entry{e, e}}
	var there delivery
	if err := there.Decode(m.Append(nil)); err != nil || !reflect.DeepEqual(m, there) {
		t.Fatalf("%v\n%+v", err, there)
	}
}

func FuzzEntry(f *testing.F) {
	e := testEntry()
	f.Add(e.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e, again Entry
		if e.Decode(b) == nil && (again.Decode(e.Append(nil)) != nil || !reflect.DeepEqual(e, again)) {
			t.Fatalf("%+v\n%+v", e, again)
		}
		var m delivery
		_ = m.Decode(b)
	})
}

// testChain is a chain of n entries as it is stored.
func testChain(n int) (stored [][]byte) {
	var last Hash
	for i := range n {
		e := Entry{Sequence: uint64(i), Previous: last, Number: uint64(i + 1), At: time.UnixMilli(0), Until: time.UnixMilli(0), What: auth.Change, After: fmt.Sprint(i)}
		stored = append(stored, e.Append(nil))
		last = HashOf(stored[i])
	}
	return stored
}

// TestP45_ChainShowsWhatWasChanged: an entry that was altered, taken out, put in or exchanged breaks the chain, wherever it was.
func TestP45_ChainShowsWhatWasChanged(t *testing.T) {
	follow := func(from int, stored [][]byte) (breaks int) {
		var c Chain
		for i, v := range stored {
			if _, err := c.Follow(int64(from+i), v); err != nil {
				if !errors.Is(err, ErrBroken) {
					t.Fatal(err)
				}
				breaks++
			}
		}
		return breaks
	}
	if follow(0, testChain(9)) != 0 || follow(4, testChain(9)[4:]) != 0 {
		t.Error("a sound chain is broken")
	}
	for at := range 8 {
		altered := testChain(9)
		altered[at] = []byte(strings.Replace(string(altered[at]), fmt.Sprint(at), "X", 1))
		without := append(testChain(9)[:at], testChain(9)[at+1:]...)
		exchanged := testChain(9)
		exchanged[at], exchanged[at+1] = exchanged[at+1], exchanged[at]
		unreadable := testChain(9)
		unreadable[at] = []byte("no entry")
		for name, stored := range map[string][][]byte{"altered": altered, "without": without, "exchanged": exchanged, "unreadable": unreadable} {
			if follow(0, stored) == 0 {
				t.Errorf("%s at %d: not noticed", name, at)
			}
		}
	}
	var c Chain
	stored := testChain(3)
	_, _ = c.Follow(0, stored[0])
	if _, err := c.Follow(2, stored[2]); !errors.Is(err, ErrBroken) {
		t.Error("a missing offset is not noticed", err)
	}
}

// TestP45_FoldingLeavesNothingOut: equal events become one entry with a count; a flood of different ones is counted, in few entries.
func TestP45_FoldingLeavesNothingOut(t *testing.T) {
	var f folding
	now, total := time.UnixMilli(0), 0
	add := func(port int, resource string) {
		ev := auth.Event{What: auth.Denied, Principal: kafka.Principal{Type: "User", Name: "eve"}, Peer: fmt.Sprintf("10.0.0.1:%d", port), API: "Produce", Resource: resource}
		f.add(entryOf(ev, now), now)
		total++
	}
	for i := range 500 {
		add(i, "Topic:orders")
	}
	if len(f.order) != 1 || f.order[0].Count != 500 {
		t.Fatalf("%d entries, %+v", len(f.order), f.order[0])
	}
	for i := range 50_000 {
		add(1, fmt.Sprint("Topic:", i))
	}
	if f.due(now) || !f.due(now.Add(foldEvery)) {
		t.Error("it ends at the wrong time")
	}
	entries, sum := f.take(), 0
	for _, e := range entries {
		sum += int(e.Count)
	}
	if sum != total || len(entries) > foldMax+3 || len(entries) < foldMax || f.due(now.Add(time.Hour)) {
		t.Errorf("%d of %d events in %d entries", sum, total, len(entries))
	}
	e := entryOf(auth.Event{Resource: strings.Repeat("x", 1<<20)}, now)
	if len(e.Resource) > textMax+3 {
		t.Error("a text is not cut")
	}
}

// TestP45_AFloodDoesNotFillTheDisk: for a day somebody is denied other things each second, with long names. The trail grows by little, every
// event is counted, and what somebody else is denied meanwhile, again and again, is named once the flood is over.
func TestP45_AFloodDoesNotFillTheDisk(t *testing.T) {
	var f folding
	now, total, sum, bytes := time.UnixMilli(0), 0, 0, 0
	add := func(who, resource string) {
		f.add(entryOf(auth.Event{What: auth.Denied, Principal: kafka.Principal{Type: "User", Name: who}, Peer: "10.0.0.1:1", API: "Produce", Resource: resource}, now), now)
		total++
	}
	named := false
	take := func() {
		if !f.due(now) {
			return
		}
		for _, e := range f.take() {
			var b []byte
			b = e.Append(b)
			sum, bytes = sum+int(e.Count), bytes+len(b)
			named = named || e.Principal == "User:bob"
		}
	}
	long := strings.Repeat("x", 2000)
	const seconds = 24 * 60 * 60
	for s := range seconds {
		for i := range 3 {
			add("eve", fmt.Sprint(long, s, i))
		}
		now = now.Add(time.Second)
		take()
	}
	if most := floodBytes + seconds*floodBytesPerSecond + seconds/60*1000; bytes > most {
		t.Errorf("the trail grew by %d bytes, at most %d are allowed", bytes, most)
	}
	for range 600 {
		add("bob", "Topic:orders")
		now = now.Add(time.Second)
		take()
	}
	now = now.Add(foldFlooded)
	take()
	if sum != total || !named {
		t.Errorf("%d of %d events are counted; bob is named: %v", sum, total, named)
	}
}
