package recordid

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

const testWindow = 100 * time.Second

// carry lists ids as one batch carries them, one a record; "" is a record without.
func carry(ids ...string) (out []Carried) {
	for i, id := range ids {
		if id != "" {
			out = append(out, Carried{ID: Hash([]byte(id)), Delta: int32(i), Content: 7})
		}
	}
	return out
}

// TestI12_TableIsTheLog: whatever is appended, cut off, deleted and forgotten, the table finds what a walk over the log would find: the
// newest record of an id that is in the log and whose window has not passed.
func TestI12_TableIsTheLog(t *testing.T) {
	type stored struct {
		id     string
		offset kafka.Offset
		at     time.Duration
	}
	rapid.Check(t, func(t *rapid.T) {
		var log []stored
		table, now, end, start := NewTable(testWindow), time.Duration(0), kafka.Offset(0), kafka.Offset(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				end = kafka.Offset(rapid.Int64Range(int64(start), int64(end)).Draw(t, "cut"))
				log = slices.DeleteFunc(log, func(s stored) bool { return s.offset >= end })
				table.TruncateTo(end)
			case 1:
				start = kafka.Offset(rapid.Int64Range(int64(start), int64(end)).Draw(t, "start"))
				log = slices.DeleteFunc(log, func(s stored) bool { return s.offset < start })
				table.AdvanceStart(start)
			case 2:
				table.Expire(now)
			default:
				ids := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e"}), 1, 5).Draw(t, "ids")
				for i, id := range ids {
					if id != "" {
						log = append(log, stored{id, end + kafka.Offset(i), now})
					}
				}
				table.Note(end, carry(ids...), now)
				end += kafka.Offset(len(ids))
			}
			for _, id := range []string{"a", "b", "c", "d", "e"} {
				want := kafka.NoOffset
				for _, s := range log {
					if s.id == id && now-s.at < testWindow {
						want = s.offset
					}
				}
				got := kafka.NoOffset
				if e := table.find(Hash([]byte(id)), now); e != nil {
					got = e.offset
				}
				if got != want {
					t.Fatalf("%s: found at %d, want %d", id, got, want)
				}
			}
		}
	})
}

// TestI14_TableIsBoundedAndShrinks: at its bound the table says so; what it is told beyond goes in at the cost of the oldest, and when most is
// forgotten the memory goes too.
func TestI14_TableIsBoundedAndShrinks(t *testing.T) {
	table := NewTable(testWindow)
	for i := range IDsMax {
		table.Note(kafka.Offset(i), []Carried{{ID: ID{byte(i), byte(i >> 8), byte(i >> 16)}}}, 0)
	}
	if table.Len() != IDsMax || table.Room(1) || !table.Room(0) {
		t.Fatalf("%d ids, room %v", table.Len(), table.Room(1))
	}
	table.Note(IDsMax, carry("new"), 0)
	if table.Len() != IDsMax || table.find(ID{}, 0) != nil || table.find(Hash([]byte("new")), 0) == nil {
		t.Error("the oldest did not make room for the newest")
	}
	table.Note(IDsMax+1, carry("newest"), testWindow)
	table.Expire(testWindow)
	if table.Len() != 1 || len(table.ring) > 2*ringMin || len(table.byID) != 1 || table.find(Hash([]byte("newest")), testWindow) == nil {
		t.Errorf("%d ids in a ring of %d and a map of %d", table.Len(), len(table.ring), len(table.byID))
	}
}

// TestFollow: what was noted while an older stretch was read comes behind it.
func TestFollow(t *testing.T) {
	older, newer := NewTable(testWindow), NewTable(testWindow)
	older.Note(0, carry("a", "b"), 1)
	newer.Note(2, carry("b", "c"), 2)
	older.Follow(newer)
	for id, want := range map[string]kafka.Offset{"a": 0, "b": 2, "c": 3} {
		if e := older.find(Hash([]byte(id)), 3); e == nil || e.offset != want {
			t.Errorf("%s: %+v, want offset %d", id, e, want)
		}
	}
}

// TestI12_Judge: what of a batch is stored already. The table holds a at 10, b at 11, c at 12, d at 20.
func TestI12_Judge(t *testing.T) {
	table := NewTable(testWindow)
	table.Note(10, carry("a", "b", "c"), 0)
	table.Note(20, carry("d"), 0)
	none := kafka.NoOffset
	many := make([]string, twinsByScan+5)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for _, c := range []struct {
		what             string
		ids              []string
		cut              []int32
		all              bool
		base, first, end kafka.Offset
		fresh            int
	}{
		{"nothing known", []string{"x", "", "y"}, nil, false, none, none, none, 2},
		{"no ids", []string{"", ""}, nil, false, none, none, none, 0},
		{"the same batch again", []string{"a", "b", "c"}, []int32{0, 1, 2}, true, 10, 10, 13, 0},
		{"a part of it", []string{"b", "c"}, []int32{0, 1}, true, 11, 11, 13, 0},
		{"one of it", []string{"d"}, []int32{0}, true, 20, 20, 21, 0},
		{"in another order", []string{"b", "a"}, []int32{0, 1}, true, none, 10, 12, 0},
		{"with a gap", []string{"a", "c"}, []int32{0, 1}, true, none, 10, 13, 0},
		{"of two batches", []string{"c", "d"}, []int32{0, 1}, true, none, 12, 21, 0},
		{"one twice", []string{"a", "a"}, []int32{0, 1}, true, none, 10, 11, 0},
		{"a repeat and a new one", []string{"a", "x"}, []int32{0}, false, none, 10, 11, 1},
		{"a repeat and one without id", []string{"", "a"}, []int32{1}, false, none, 10, 11, 0},
		{"a twin in the batch", []string{"x", "y", "x"}, []int32{2}, false, none, none, none, 2},
		{"twins in a large batch", append(slices.Clone(many), "3", "a"), []int32{twinsByScan + 5, twinsByScan + 6}, false, none, 10, 11, len(many)},
	} {
		v := table.Judge(carry(c.ids...), int32(len(c.ids)), 1)
		if !slices.Equal(v.Cut, c.cut) || v.All != c.all || v.Base != c.base || v.First != c.first || v.End != c.end || v.Fresh != c.fresh || v.OtherContent {
			t.Errorf("%s: %+v", c.what, v)
		}
	}
	if v := table.Judge(carry("a"), 1, testWindow); v.All {
		t.Error("R24: a repeat is recognised after its window")
	}
	other := carry("a", "x", "x")
	other[0].Content++
	if v := table.Judge(other[:1], 1, 1); !v.OtherContent {
		t.Error("an id with other content passes for the same record")
	}
	other[2].Content++
	if v := table.Judge(other[1:], 2, 1); !v.OtherContent {
		t.Error("a twin with other content passes for the same record")
	}
}

// TestRead: null and empty, key and value, are told apart in the content, and nothing else of a record counts.
func TestRead(t *testing.T) {
	bu := record.NewBuilder(record.LZ4)
	id := []record.Header{{Key: "id", Value: []byte("one")}}
	for _, kv := range [][2][]byte{{nil, nil}, {{}, nil}, {nil, {}}, {[]byte("ab"), []byte("c")}, {[]byte("a"), []byte("bc")}} {
		bu.Add(5, kv[0], kv[1], id)
	}
	bu.Add(9, []byte("a"), []byte("bc"), append(id, record.Header{Key: "other", Value: []byte("x")}))
	bu.Add(9, []byte("a"), []byte("bc"), nil)
	got, err := Read(bu.Build(), "id", 0)
	if err != nil || len(got) != 6 {
		t.Fatalf("%d ids, %v", len(got), err)
	}
	seen := map[uint32]bool{}
	for i, c := range got {
		if c.ID != Hash([]byte("one")) || c.Delta != int32(i) || (i < 5 && seen[c.Content]) {
			t.Errorf("record %d: %+v", i, c)
		}
		seen[c.Content] = true
	}
	if got[4].Content != got[5].Content {
		t.Error("time or headers count as content")
	}
}

// BenchmarkIDs is what a record with an id costs: reading it from its batch, judging it, remembering it, forgetting it.
func BenchmarkIDs(b *testing.B) {
	const records = 1000
	bu := record.NewBuilder(record.None)
	for i := range records {
		bu.Add(0, nil, make([]byte, 1024), []record.Header{{Key: "record-id", Value: fmt.Appendf(nil, "order-%d/%d", i, i)}})
	}
	batch := bu.Build()
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Read(batch, "record-id", 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("judge and note", func(b *testing.B) {
		carried, err := Read(batch, "record-id", 0)
		if err != nil {
			b.Fatal(err)
		}
		table, base, now := NewTable(testWindow), kafka.Offset(0), time.Duration(0)
		b.ReportAllocs()
		for b.Loop() {
			for i := range carried {
				carried[i].ID[0]++
				carried[i].ID[1] += byte(base)
			}
			table.Expire(now)
			if v := table.Judge(carried, records, now); v.Fresh == 0 {
				b.Fatal("nothing fresh")
			}
			table.Note(base, carried, now)
			base += records
			now += time.Second
		}
	})
}
