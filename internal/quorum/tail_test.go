package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// testLog is a log of n entries, and where each begins.
func testLog(t *testing.T, n int) (log []byte, begins []int) {
	t.Helper()
	for i := range n {
		begins = append(begins, len(log))
		e := testEntry(raftpb.EntryNormal, fmt.Appendf(nil, "records of entry %d", i+1))
		e.Index = proto.Uint64(uint64(i + 1))
		var err error
		if log, err = appendEntry(log, e); err != nil {
			t.Fatal(err)
		}
	}
	return log, append(begins, len(log))
}

func TestWhatLiesBehindASnapshotIsReadOrKnownToBeMissing(t *testing.T) {
	zero := func(from, to int) func([]byte, []int) []byte {
		return func(b []byte, begins []int) []byte { clear(b[begins[from-1]:begins[to]]); return b }
	}
	flip := func(entry, at int, bit byte) func([]byte, []int) []byte {
		return func(b []byte, begins []int) []byte { b[begins[entry-1]+at] ^= bit; return b }
	}
	const all, hole = 8, -1
	for _, c := range []struct {
		name     string
		damage   func(log []byte, begins []int) []byte
		snapshot uint64 // index of its last entry
		reached  int    // last entry, or hole
	}{
		{"nothing", zero(1, 0), 5, all},
		{"nothing, all in the snapshot", zero(1, 0), 8, all},
		{"bytes of several entries in the snapshot", zero(2, 4), 5, all},
		{"bytes up to the last in the snapshot", zero(2, 5), 5, all},
		{"bytes across the snapshot's end", zero(4, 6), 5, hole},
		{"the first behind the snapshot", zero(6, 6), 5, hole},
		{"the last behind the snapshot", zero(8, 8), 5, hole},
		{"bytes to the end, all in the snapshot or not", zero(7, 8), 8, hole},
		{"length of one in the snapshot", flip(3, lengthAt+2, 1), 5, all},
		{"length of the last, in the snapshot", flip(8, lengthAt+2, 1), 8, all},
		{"length of the last, small", flip(8, lengthAt+3, 1), 8, all},
		{"content of the last, in the snapshot", flip(8, 70, 1), 8, all},
		{"content of the last, behind the snapshot", flip(8, 70, 1), 7, hole},
		{"index of one in the snapshot", flip(3, 6, 1), 5, all},
		{"index of one behind the snapshot", flip(7, 6, 1), 5, hole},
		{"index of the next good one", func(b []byte, begins []int) []byte { return flip(4, 6, 1)(zero(3, 3)(b, begins), begins) }, 8, hole},
		{"last one cut", func(b []byte, _ []int) []byte { return b[:len(b)-1] }, 8, hole},
		{"last one gone", func(b []byte, begins []int) []byte { return b[:begins[7]] }, 8, 7},
		{"a last one of another kind", func(b []byte, begins []int) []byte {
			binary.BigEndian.PutUint32(b[begins[7]+57:], 2) // record count
			return b
		}, 7, hole},
	} {
		log, begins := testLog(t, 8)
		s := tailScan{next: c.snapshot + 1, at: 1}
		err := s.scan("log", c.damage(slices.Clone(log), begins))
		if c.reached == hole {
			if !errors.Is(err, errHole) {
				t.Errorf("%s: %v, at %d", c.name, err, s.at)
			}
			continue
		}
		if err != nil || s.at != uint64(c.reached+1) || len(s.entries) != max(c.reached-int(c.snapshot), 0) {
			t.Errorf("%s: reached %d with %d entries, %v; want %d", c.name, s.at-1, len(s.entries), err, c.reached)
		}
		for i, e := range s.entries {
			if e.GetIndex() != c.snapshot+1+uint64(i) {
				t.Errorf("%s: entry %d has index %d", c.name, i, e.GetIndex())
			}
		}
	}
}

func TestATailIsWholeOnlyIfItReachesWhatIsKnown(t *testing.T) {
	log, begins := testLog(t, 8)
	const first, second = "/d/00000000000000000001.log", "/d/00000000000000000006.log"
	for _, c := range []struct {
		name     string
		files    map[string][]byte
		snapshot uint64
		synced   kafka.Offset
		voted    bool
		entries  int // or -1 for a hole
	}{
		{"one file", map[string][]byte{first: log}, 5, 9, true, 3},
		{"two files", map[string][]byte{first: log[:begins[5]], second: log[begins[5]:]}, 3, 9, true, 5},
		{"a damaged file below the snapshot", map[string][]byte{first: nil, second: log[begins[5]:]}, 5, 9, true, 3},
		{"the first file cut", map[string][]byte{first: log[:begins[4]], second: log[begins[5]:]}, 3, 9, true, -1},
		{"the first file gone, in the snapshot", map[string][]byte{second: log[begins[5]:]}, 5, 9, true, 3},
		{"the first file gone, behind the snapshot", map[string][]byte{second: log[begins[5]:]}, 4, 9, true, -1},
		{"the second file gone", map[string][]byte{first: log[:begins[5]]}, 3, 9, true, -1},
		{"nothing known of the end", map[string][]byte{first: log[:begins[5]]}, 3, kafka.NoOffset, true, 2},
		{"shorter than the snapshot", map[string][]byte{first: log[:begins[2]]}, 3, kafka.NoOffset, true, -1},
		{"empty, never voted", map[string][]byte{first: nil}, 0, kafka.NoOffset, false, 0},
		{"empty, voted", map[string][]byte{first: nil}, 0, kafka.NoOffset, true, -1},
		{"no file", nil, 0, kafka.NoOffset, false, -1},
	} {
		fs := systest.NewFS(1)
		if err := fs.MkdirAll("/d", 0o700); err != nil {
			t.Fatal(err)
		}
		for name, b := range c.files {
			if err := sys.WriteFileAtomic(fs, name, b); err != nil {
				t.Fatal(err)
			}
		}
		r := &recovered{machine: systest.Machine(fs, nil, nil), dir: "/d", voted: c.voted, last: lastRun{synced: c.synced}}
		r.snapshot.Index = c.snapshot
		entries, err := r.readTail()
		if c.entries < 0 && !errors.Is(err, errHole) || c.entries >= 0 && (err != nil || len(entries) != c.entries) {
			t.Errorf("%s: %d entries, %v; want %d", c.name, len(entries), err, c.entries)
		}
	}
}

func TestAMembershipChangeBehindTheSnapshotIsKeptAndNotApplied(t *testing.T) {
	e := testEntry(raftpb.EntryConfChangeV2, []byte{0x08, 0x00})
	r := &recovered{tail: tail{entries: []*raftpb.Entry{e}}}
	if got, err := r.behind(); err != nil || len(got) != 1 || got[0] != e {
		t.Errorf("behind the snapshot: %v, %v", got, err)
	}
	r.snapshot, r.self = testSnapshot(t), testVoter().RaftID
	if !r.soleVoter() {
		t.Error("not the sole voter")
	}
	if r.tail.changes = true; r.soleVoter() {
		t.Error("the sole voter, although a change of the voters may be committed")
	}
}
