package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"strandline.dev/internal/metadata"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// logPath is the only segment of the tests' logs, copyPath its copy.
var (
	logPath  = metadataFile("00000000000000000001.log")
	copyPath = metadataFile(copyFileName)
)

// warnings collects log lines of level warn and above.
type warnings struct{ lines []string }

func (w *warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler           { return w }
func (w *warnings) WithGroup(string) slog.Handler                { return w }
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	w.lines = append(w.lines, r.Message)
	return nil
}

// voteDamages are the damages of a small file, and what else can happen to a vote.
func voteDamages() map[string]func(*systest.FS) error {
	file := metadataFile(voteFileName)
	cases := damages(file)
	cases["removed"] = func(fs *systest.FS) error { return fs.Remove(file) }
	cases["an older one put back"] = func(fs *systest.FS) error { return writeVote(fs, filepath.Dir(file), vote{}) }
	return cases
}

// addLearner puts a second directory into the table of voters of the newest snapshot.
func addLearner(t *testing.T, fs *systest.FS, n *testNode) {
	t.Helper()
	other := testVoter()
	other.Node = 2
	old := n.q.Image()
	table := append(slices.Clone(old.Voters()), other)
	image, err := metadata.Empty().Apply(old.Version(), []metadata.Record{metadata.ClusterRecord{ClusterID: old.ClusterID(), Voters: table}})
	if err != nil {
		t.Fatal(err)
	}
	conf := &raftpb.ConfState{Voters: []uint64{table[0].RaftID}, Learners: []uint64{other.RaftID}}
	s := &snapshots{fs: fs, dir: n.dir.MetadataDir()}
	id := snapshotID{Index: old.Version(), Term: n.q.Leadership().Term}
	if err := s.write(snapshot{snapshotID: id, Conf: conf, Image: image}); err != nil {
		t.Fatal(err)
	}
}

func TestC032_ADamagedVoteIsRefusedByNameWhereOthersMayVote(t *testing.T) {
	for name, damage := range voteDamages() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := systest.NewFS(1)
				n := startTestNode(t, fs, testOptions{})
				n.mustCommit(metadata.ProducerIDsRecord{Next: 1000})
				if err := n.close(); err != nil {
					t.Fatal(err)
				}
				addLearner(t, fs, n)
				again, err := openTestNode(t, fs, testOptions{})
				if err != nil {
					t.Fatalf("undamaged: %v", err)
				}
				_ = again.close()
				if err := damage(fs); err != nil {
					t.Fatal(err)
				}
				_, err = openTestNode(t, fs, testOptions{})
				mustBeCorrupt(t, err, metadataFile(voteFileName))
			})
		})
	}
}

func TestC032_ASoleVotersDamagedVoteIsRebuilt(t *testing.T) {
	for name, damage := range voteDamages() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModel()
				fs := damaged(t, m, damage)
				said := &warnings{}
				n := m.start(t, fs, testOptions{every: 4, log: slog.New(said)})
				l, ok := n.lead()
				if !ok || l.Term != 2 {
					t.Errorf("leadership %+v after term 1", l)
				}
				if v, err := decodeVote(fs.Files()[metadataFile(voteFileName)]); err != nil || v.Term != 2 || v.For != n.q.Image().Voters()[0].RaftID {
					t.Errorf("the vote on disk is %+v, %v", v, err)
				}
				if len(said.lines) != 1 || !strings.Contains(said.lines[0], "vote is rebuilt") {
					t.Errorf("warnings: %q", said.lines)
				}
				m.check(t, n.q)
				if err := n.close(); err != nil {
					t.Fatal(err)
				}
				settle(t, fs, m)
			})
		})
	}
}

// TestI3_ARebuiltVoteIsOnDiskBeforeItsTermIs crashes a start with a damaged vote at each file operation: no log may hold a term that
// the vote file does not know, or the next damaged vote could lead to a second leader in it.
func TestI3_ARebuiltVoteIsOnDiskBeforeItsTermIs(t *testing.T) {
	for _, mode := range []systest.CrashMode{systest.LoseAll, systest.KeepAll, systest.KillProcess} {
		ended := false
		for at := int64(1); !ended; at += *crashStride {
			synctest.Test(t, func(t *testing.T) {
				m := newModel()
				fs := damaged(t, m, func(fs *systest.FS) error { return fs.Cut(metadataFile(voteFileName), 7) })
				fs.CrashAt(fs.Ops() + at)
				if n, err := openTestNode(t, fs, testOptions{every: 4}); err == nil {
					m.reopened(t, n.q)
					n.run()
					ended = m.commit(n)
					_ = n.close()
				}
				next := fs.Crash(mode)
				r := &recovered{machine: systest.Machine(next, nil, nil), dir: filepath.Dir(logPath)}
				err := r.readVote()
				if r.voteDamage == nil {
					r.tail.term = r.vote.Term
				} else {
					r.tail.term = 1 // of the run that was damaged
				}
				if err == nil {
					err = newestTermAtMost(next, r.tail.term)
				}
				if err != nil {
					t.Errorf("crash at operation %d, mode %s: %v", at, mode, err)
				}
				settle(t, next, m)
			})
		}
	}
}

func newestTermAtMost(fs *systest.FS, term uint64) error {
	b := fs.Files()[logPath]
	for len(b) > 0 {
		batch, whole := wholeBatch(b)
		if !whole {
			return nil
		}
		if got := uint64(batch.LeaderEpoch()); got > term {
			return fmt.Errorf("the log holds term %d, the vote file knows %d", got, term)
		}
		b = b[len(batch):]
	}
	return nil
}

// logDamages are what can happen to the log while the node is down.
func logDamages() map[string]func(*systest.FS) error {
	size := func(fs *systest.FS) int64 { return int64(len(fs.Files()[logPath])) }
	return map[string]func(*systest.FS) error{
		"emptied": func(fs *systest.FS) error { return fs.Cut(logPath, 0) },
		"zeroed":  func(fs *systest.FS) error { return fs.Zero(logPath, 0, size(fs)) },
		"halved":  func(fs *systest.FS) error { return fs.Cut(logPath, size(fs)/2) },
		"cut":     func(fs *systest.FS) error { return fs.Cut(logPath, size(fs)-1) },
		"flipped": func(fs *systest.FS) error { return fs.FlipBit(logPath, size(fs)/2, 3) },
		"removed": func(fs *systest.FS) error { return fs.Remove(logPath) },
		// Whole entries are gone from the end, and nothing of the rest says so.
		"shorter by entries": func(fs *systest.FS) error { return fs.Cut(logPath, entriesSize(fs.Files()[logPath], 3)) },
	}
}

// entriesSize is the size of the first n entries of a log.
func entriesSize(b []byte, n int) int64 {
	size := int64(0)
	for range n {
		batch, _ := wholeBatch(b[size:])
		size += int64(len(batch))
	}
	return size
}

func TestC032_ALogLostAfterACleanStopIsRebuilt(t *testing.T) {
	for name, damage := range logDamages() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := systest.NewFS(1)
				m := newModel()
				n := m.start(t, fs, testOptions{})
				for range 9 {
					m.commit(n)
				}
				n.closeClean()
				if err := damage(fs); err != nil {
					t.Fatal(err)
				}
				settle(t, fs, m)
				settle(t, fs, m)
			})
		})
	}
}

// TestC032_ALogAndItsCopyLostAfterAKillAreRefusedByName: nobody knows whether the lost tail held an acknowledged change. The refusal
// stands at every start, and with the log put back everything is there.
func TestC032_ALogAndItsCopyLostAfterAKillAreRefusedByName(t *testing.T) {
	for name, damage := range logDamages() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := systest.NewFS(1)
				m := newModel()
				n := m.start(t, fs, testOptions{every: 1000})
				for range 9 {
					m.commit(n)
				}
				if err := n.dir.SavePoints(nil); err != nil {
					t.Fatal(err)
				}
				fs = n.crash(systest.KillProcess)
				whole := fs.Files()[logPath]
				if err := errors.Join(damage(fs), fs.FlipBit(copyPath, 99, 5)); err != nil {
					t.Fatal(err)
				}
				for start := range 3 {
					_, err := openTestNode(t, fs, testOptions{})
					var storageDamage *storage.CorruptError
					var damage *CorruptError
					if err == nil || !strings.Contains(err.Error(), filepath.Dir(logPath)) || !errors.As(err, &storageDamage) && !errors.As(err, &damage) {
						t.Fatalf("start %d: %v", start+1, err)
					}
					if name != "removed" && !strings.Contains(err.Error(), logPath) {
						t.Errorf("start %d does not name the file: %v", start+1, err)
					}
				}
				if err := sys.WriteFileAtomic(fs, logPath, whole); err != nil {
					t.Fatal(err)
				}
				settle(t, fs, m)
			})
		})
	}
}

// TestC032_ALogLostBehindItsSyncPointIsRefusedByName: the snapshot holds all that the sync point knows, and yet there was more.
func TestC032_ALogLostBehindItsSyncPointIsRefusedByName(t *testing.T) {
	for _, name := range []string{"emptied", "zeroed", "halved", "removed"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := startTestNode(t, systest.NewFS(1), testOptions{})
				n.mustCommit(metadata.ProducerIDsRecord{Next: 1000})
				time.Sleep(2 * time.Second)
				if err := n.dir.SavePoints(nil); err != nil {
					t.Fatal(err)
				}
				n.mustCommit(metadata.ProducerIDsRecord{Next: 2000})
				fs := n.crash(systest.KillProcess)
				if err := errors.Join(logDamages()[name](fs), fs.Remove(copyPath)); err != nil {
					t.Fatal(err)
				}
				if _, err := openTestNode(t, fs, testOptions{}); !errors.Is(err, errHole) {
					t.Errorf("opened with %v", err)
				}
			})
		})
	}
}

// TestC032_ALogItsCopyAndTheSnapshotThatCoversItAreNotAllReplaced: after a clean stop too, only a snapshot of everything stands in for a
// log without a copy.
func TestC032_ALogItsCopyAndTheSnapshotThatCoversItAreNotAllReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(1)
		n := startTestNode(t, fs, testOptions{})
		n.mustCommit(metadata.ProducerIDsRecord{Next: 1000})
		n.closeClean()
		names := snapshotFiles(fs)
		slices.Sort(names)
		if err := errors.Join(fs.Cut(logPath, 0), fs.Cut(metadataFile(names[len(names)-1]), 9), fs.Cut(copyPath, 0)); err != nil {
			t.Fatal(err)
		}
		if _, err := openTestNode(t, fs, testOptions{}); !errors.Is(err, errHole) {
			t.Errorf("opened with %v", err)
		}
	})
}

// quietInBubble is the disk of a node that was killed in a quiet moment.
func quietInBubble(t *testing.T, m *model, saved bool) *systest.FS {
	t.Helper()
	n := m.start(t, systest.NewFS(1), testOptions{every: 1000})
	for range 3 {
		m.commit(n)
	}
	time.Sleep(2 * time.Second)
	synctest.Wait()
	if saved {
		if err := n.dir.SavePoints(nil); err != nil {
			t.Fatal(err)
		}
	}
	return n.crash(systest.KillProcess)
}

func TestC032_NoBitOfAQuietNodesLogMatters(t *testing.T) {
	for _, saved := range []bool{false, true} {
		size := 1
		for at := 0; at < size; at += int(*crashStride) {
			synctest.Test(t, func(t *testing.T) {
				m := newModel()
				fs := quietInBubble(t, m, saved)
				size = len(fs.Files()[logPath])
				if err := fs.FlipBit(logPath, int64(at), uint(at)); err != nil {
					t.Fatal(err)
				}
				defer func() {
					if t.Failed() {
						t.Logf("sync point saved: %v, byte %d of %d", saved, at, size)
					}
				}()
				settle(t, fs, m)
				settle(t, fs, m)
			})
		}
	}
}

// behindSnapshotInBubble is the disk of a node that was killed with entries 1 to 4 in its newest snapshot and three behind it.
func behindSnapshotInBubble(t *testing.T, m *model) *systest.FS {
	t.Helper()
	n := m.start(t, systest.NewFS(1), testOptions{every: 1000})
	for range 3 {
		m.commit(n)
	}
	time.Sleep(2 * time.Second)
	for range 3 {
		m.commit(n)
	}
	return n.crash(systest.KillProcess)
}

func TestC032_DamageBelowASnapshotCostsNoEntryBehindIt(t *testing.T) {
	var log []byte
	synctest.Test(t, func(t *testing.T) { log = behindSnapshotInBubble(t, newModel()).Files()[logPath] })
	for at := int64(0); at < entriesSize(log, 4); at += *crashStride {
		synctest.Test(t, func(t *testing.T) {
			m := newModel()
			fs := behindSnapshotInBubble(t, m)
			if err := fs.FlipBit(logPath, at, uint(at)); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if t.Failed() {
					t.Logf("byte %d", at)
				}
			}()
			settle(t, fs, m)
		})
	}
}

func TestAQuietMomentGetsOneSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(1)
		n := startTestNode(t, fs, testOptions{})
		n.lead()
		newest := func() string {
			synctest.Wait()
			names := snapshotFiles(fs)
			slices.Sort(names)
			return names[len(names)-1][:indexDigits]
		}
		holds := func(index uint64) {
			t.Helper()
			if want := fmt.Sprintf("%0*d", indexDigits, index); newest() != want {
				t.Errorf("the newest snapshot holds %s, want %s", newest(), want)
			}
		}
		for range 10 {
			time.Sleep(700 * time.Millisecond)
			n.mustCommit(metadata.ProducerIDsRecord{Next: 1000})
		}
		holds(0) // never quiet
		time.Sleep(1100 * time.Millisecond)
		holds(n.q.Image().Version())
		ops := fs.Ops()
		time.Sleep(time.Hour)
		synctest.Wait()
		if more := fs.Ops() - ops; more != 0 {
			t.Errorf("%d file operations in a quiet hour", more)
		}
		index := n.mustCommit(metadata.ProducerIDsRecord{Next: 2000})
		time.Sleep(1100 * time.Millisecond)
		holds(index)
		if names := snapshotFiles(fs); len(names) != snapshotsKept {
			t.Errorf("snapshots %v", names)
		}
		_ = n.close()
	})
}

// TestC032_AVoterThatLostLogAndCopyComesBackWiped: what such a voter had promised is not known, so it takes no part under its old name, whatever
// the others could give it: it refuses at every start and the majority goes on. With an empty directory it is a new voter that has promised nothing.
func TestC032_AVoterThatLostLogAndCopyComesBackWiped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		c.start(1, 2, 3)
		c.agree(c.fill(20))
		old := c.nodes[3].q.Image().Voters()
		if err := c.nodes[3].dir.SavePoints(nil); err != nil { // as replicas do every 5 s: it says how long the log was
			t.Fatal(err)
		}
		c.crash(systest.KillProcess, 3)
		if err := errors.Join(c.disks[3].Cut(logPath, 0), c.disks[3].FlipBit(copyPath, 99, 5)); err != nil {
			t.Fatal(err)
		}
		for start := range 2 {
			if _, err := c.open(3); err == nil || !strings.Contains(err.Error(), logPath) {
				t.Fatalf("start %d: %v", start+1, err)
			}
			c.fill(3)
		}
		if got := c.nodes[1].q.Image().Voters(); !slices.Equal(got, old) {
			t.Fatalf("the table changed although nobody emptied the directory: %v", got)
		}
		c.wipe(3)
		c.start(3)
		c.eventually("the new directory votes", time.Minute, func() bool { return c.nodes[3].isVoter() })
		c.agree(c.fill(3))
		c.crash(systest.LoseAll, 2) // it counts
		c.fill(2)
		c.end()
	})
}
