package quorum

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"strandline.dev/internal/sys/systest"
)

func TestACopyReadsBackOrIsRefused(t *testing.T) {
	log, begins := testLog(t, 3)
	good, n, err := appendCopyEntries(appendCopyHeader(nil, 1), log)
	if err != nil || n != 3 {
		t.Fatal(n, err)
	}
	c, err := decodeCopy(good)
	if err != nil || c.first != 1 || c.end() != 4 || c.at(0) != nil || c.at(4) != nil || len(c.from(3)) != 1 || len(c.from(4)) != 0 {
		t.Fatalf("read back %+v, %v", c, err)
	}
	for bit := range 8 * len(good) {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		if _, err := decodeCopy(bad); err == nil {
			t.Errorf("bit %d flipped: accepted", bit)
		}
	}
	for size := range len(good) {
		whole := false
		for i, at := range begins {
			whole = whole || size == copyHeaderSize+at+i*copyCRCSize
		}
		if _, err := decodeCopy(good[:size]); (err == nil) != whole {
			t.Errorf("cut to %d bytes: %v", size, err)
		}
	}
	for name, first := range map[string]uint64{"a gap": 2, "entries before the first": 0} {
		bad, _, _ := appendCopyEntries(appendCopyHeader(nil, first), log)
		if _, err := decodeCopy(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// step is what raft has a voter among several do: entries of some term from an index on, by the leader of leader's term.
type step struct {
	leader uint64
	first  uint64
	terms  []uint64
}

// elections: this voter's entries are replaced by those of other leaders, once by older ones that a newer leader had.
var elections = []step{
	{2, 2, []uint64{2, 2, 2}},
	{2, 5, []uint64{2, 2}},
	{5, 4, []uint64{5, 5}},
	{5, 6, []uint64{5}},
	{6, 3, []uint64{6}},
	{7, 4, []uint64{6, 7, 7, 7}},
	{9, 5, []uint64{8, 8}},
	{9, 7, []uint64{9}},
}

// newEntries are the entries of a step; no two steps have an entry in common.
func (s step) newEntries() (entries []*raftpb.Entry) {
	for i, term := range s.terms {
		e := testEntry(raftpb.EntryNormal, nil)
		e.Index, e.Term = proto.Uint64(s.first+uint64(i)), proto.Uint64(term)
		entries = append(entries, e)
	}
	return entries
}

// after is a log, given as terms from index 1 on, after the first n entries of a step.
func (s step) after(log []uint64, n int) []uint64 {
	return append(append([]uint64(nil), log[:s.first-1]...), s.terms[:n]...)
}

// elect carries the steps out on an appender until one fails, and returns how many were answered.
func elect(n *testNode) (answered int) {
	a := newAppender(n.q.start)
	for _, s := range elections {
		m := &raftpb.Message{Term: proto.Uint64(s.leader), Vote: proto.Uint64(1), Entries: s.newEntries()}
		if err := a.process(context.Background(), []job{{message: m}}); err != nil {
			return answered
		}
		answered++
	}
	return answered
}

// logTerms are the terms in a log from index 1 on.
func logTerms(b []byte) (terms []uint64) {
	for len(b) > 0 {
		batch, whole := wholeBatch(b)
		if !whole {
			return append(terms, 0)
		}
		terms, b = append(terms, uint64(batch.LeaderEpoch())), b[len(batch):]
	}
	return terms
}

// electionFS is a disk with one entry of term 1 in its log.
func electionFS(t *testing.T) *systest.FS {
	t.Helper()
	fs := systest.NewFS(1)
	n := startTestNode(t, fs, testOptions{every: 1000})
	n.lead()
	return n.crash(systest.KillProcess)
}

// TestI5_ACutTailIsCutInLogAndCopy crashes a voter whose entries are replaced by other leaders', at each file operation, with and
// without damage to one of the files: it has everything that it answered last, or a part of what comes next.
func TestI5_ACutTailIsCutInLogAndCopy(t *testing.T) {
	hurt := map[string]func(*systest.FS) error{"nothing": func(*systest.FS) error { return nil }}
	for _, file := range []string{logPath, copyPath} {
		for name, damage := range damages(file) {
			hurt[file+" "+name] = damage
		}
	}
	done := false
	for at := int64(1); !done; at += *crashStride {
		for _, mode := range []systest.CrashMode{systest.KillProcess, systest.LoseAll, systest.KeepAll, systest.Random} {
			for name, damage := range hurt {
				if mode != systest.KillProcess && name != "nothing" {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					fs := electionFS(t)
					n, err := openTestNode(t, fs, testOptions{every: 1000})
					if err != nil {
						t.Fatal(err)
					}
					fs.CrashAt(fs.Ops() + at)
					answered := elect(n)
					next := n.crash(mode)
					done = answered == len(elections)
					if err := damage(next); err != nil {
						t.Fatal(err)
					}
					again, err := openTestNode(t, next, testOptions{every: 1000, log: slog.New(slog.DiscardHandler)})
					if err != nil {
						t.Fatalf("operation %d, %s, %s damaged: %v", at, mode, name, err)
					}
					defer func() { _ = again.close() }()
					got := logTerms(next.Files()[logPath])
					if !electionState(answered, got, name != "nothing") {
						t.Errorf("operation %d, %s, %s damaged: after %d answers the log is %v", at, mode, name, answered, got)
					}
					if !sameEntries(t, next.Files()[logPath], next.Files()[copyPath]) {
						t.Errorf("operation %d, %s, %s damaged: log and copy differ", at, mode, name)
					}
				})
			}
		}
	}
}

// electionState says whether a voter may be in this state after it has answered so many steps. Where the next step replaces entries it
// proves that they were never committed, so damage may then take some of them.
func electionState(answered int, got []uint64, damaged bool) bool {
	log := []uint64{1}
	for _, s := range elections[:answered] {
		log = s.after(log, len(s.terms))
	}
	is := func(want []uint64) bool { return fmt.Sprint(want) == fmt.Sprint(got) }
	if is(log) {
		return true
	}
	if answered < len(elections) {
		s := elections[answered]
		for n := range len(s.terms) + 1 {
			if is(s.after(log, n)) {
				return true
			}
		}
		for n := int(s.first) - 1; damaged && n < len(log); n++ {
			if is(log[:n]) {
				return true
			}
		}
	}
	return false
}

func TestI11_AFailedSyncOfTheCopyIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel()
		fs := systest.NewFS(1)
		n := m.start(t, fs, testOptions{every: 1000})
		m.commit(n)
		fs.Hook(func(op systest.Op) error {
			if op.Kind == systest.OpSync && op.Name == copyPath {
				return systest.ErrNoSpace // whatever it says
			}
			return nil
		})
		if m.commit(n) {
			t.Error("an entry was confirmed after the sync of its copy failed")
		}
		next := fs.Crash(systest.KillProcess)
		if err := n.close(); err == nil || !strings.Contains(err.Error(), copyFileName) {
			t.Errorf("the quorum stopped with %v", err)
		}
		settle(t, next, m)
	})
}
