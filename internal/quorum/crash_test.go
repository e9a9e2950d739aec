package quorum

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys/systest"
)

// workload opens a directory several times and commits entries over several snapshots. It ends early when the disk fails.
// It returns the last Run error.
func workload(t *testing.T, fs *systest.FS, m *model) (err error) {
	for range 3 {
		n, err := openTestNode(t, fs, testOptions{every: 4})
		if err != nil {
			return err
		}
		m.reopened(t, n.q)
		n.run()
		for i := 0; i < 9; i++ {
			ok := m.commit(n)
			if i == 4 && ok {
				// Several entries that share a sync.
				m.next(n)
				m.next(n)
			}
			if !ok {
				break
			}
		}
		if err := n.close(); err != nil {
			return err
		}
	}
	return nil
}

// settle starts a node on a disk after a fault, checks the model, and goes on working.
func settle(t *testing.T, fs *systest.FS, m *model) {
	t.Helper()
	n := startTestNode(t, fs, testOptions{every: 4})
	m.reopened(t, n.q)
	if _, ok := n.lead(); !ok {
		t.Fatalf("no leader after the restart: %v", n.close())
	}
	m.check(t, n.q)
	for range 6 {
		if !m.commit(n) {
			t.Fatalf("not committed after the restart: %v", n.close())
		}
	}
	m.check(t, n.q)
	if err := n.close(); err != nil {
		t.Fatal(err)
	}
}

// countOps runs the workload without faults and returns how many file operations it takes.
func countOps(t *testing.T) int64 {
	fs := systest.NewFS(1)
	if err := workload(t, fs, newModel()); err != nil {
		t.Fatal(err)
	}
	return fs.Ops()
}

func TestC025_CommittedEntriesSurviveACrashAtEveryFileOperation(t *testing.T) {
	var ops int64
	synctest.Test(t, func(t *testing.T) { ops = countOps(t) })
	if ops < 100 {
		t.Fatalf("the workload has only %d file operations", ops)
	}
	for at := int64(1); at <= ops; at++ {
		for _, mode := range []systest.CrashMode{systest.LoseAll, systest.KeepAll, systest.Random, systest.KillProcess} {
			synctest.Test(t, func(t *testing.T) {
				defer func() {
					if t.Failed() {
						t.Logf("crash at operation %d of %d, mode %s", at, ops, mode)
					}
				}()
				fs := systest.NewFS(uint64(at))
				m := newModel()
				fs.CrashAt(at)
				_ = workload(t, fs, m)
				settle(t, fs.Crash(mode), m)
			})
		}
	}
}

func TestC031_NothingIsConfirmedAfterAFailedSync(t *testing.T) {
	var ops []systest.Op
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(1)
		fs.Hook(func(op systest.Op) error {
			inMetadata := strings.Contains(op.Name, "/metadata")
			if inMetadata && (op.Kind == systest.OpSync || op.Kind == systest.OpSyncDir) {
				ops = append(ops, op)
			}
			return nil
		})
		if err := workload(t, fs, newModel()); err != nil {
			t.Fatal(err)
		}
	})
	kinds := map[string]int{}
	for _, op := range ops {
		kinds[syncedThing(op)]++
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("failed operation %v", op)
				}
			}()
			fs := systest.NewFS(1)
			m := newModel()
			fs.FailAt(op.N, syscall.EIO)
			// The sync fails once; afterwards the disk says that all is well.
			err := workload(t, fs, m)
			if !errors.Is(err, syscall.EIO) && !errors.Is(err, storage.ErrSyncFailed) {
				t.Fatalf("the quorum went on after a failed sync: %v", err)
			}
			next := fs.Crash(systest.LoseAll)
			n, err := openTestNode(t, next, testOptions{})
			if err != nil {
				// A log whose sync failed stays marked across restarts (I11); with one replica it refuses by name.
				if !strings.Contains(err.Error(), dataDir) {
					t.Fatalf("a refusal that does not name the file: %v", err)
				}
				return
			}
			_ = n.close()
			settle(t, next, m)
		})
	}
	for _, want := range []string{"log", "vote", "snapshot", "directory"} {
		if kinds[want] == 0 {
			t.Errorf("no sync of a %s was made to fail; there were %v", want, kinds)
		}
	}
}

func syncedThing(op systest.Op) string {
	name := strings.TrimSuffix(filepath.Base(op.Name), ".tmp")
	switch {
	case op.Kind == systest.OpSyncDir:
		return "directory"
	case name == voteFileName:
		return "vote"
	case strings.HasSuffix(name, snapshotSuffix):
		return "snapshot"
	case strings.HasSuffix(name, ".log"):
		return "log"
	}
	return name
}

// damaged runs a node over some snapshots and closes it, applies damage to one file, and returns the disk.
func damaged(t *testing.T, m *model, damage func(fs *systest.FS) error) *systest.FS {
	t.Helper()
	fs := systest.NewFS(1)
	n := startTestNode(t, fs, testOptions{every: 4})
	m.reopened(t, n.q)
	for range 14 {
		if !m.commit(n) {
			t.Fatal("not committed")
		}
	}
	if err := n.close(); err != nil {
		t.Fatal(err)
	}
	if err := damage(fs); err != nil {
		t.Fatal(err)
	}
	return fs
}

func metadataFile(name string) string { return filepath.Join(dataDir, "metadata", name) }

// damages are what can happen to a small file.
func damages(name string, size int64) map[string]func(*systest.FS) error {
	return map[string]func(*systest.FS) error{
		"emptied": func(fs *systest.FS) error { return fs.Cut(name, 0) },
		"zeroed":  func(fs *systest.FS) error { return fs.Zero(name, 0, size) },
		"cut":     func(fs *systest.FS) error { return fs.Cut(name, size-1) },
		"flipped": func(fs *systest.FS) error { return fs.FlipBit(name, size/2, 3) },
	}
}

func TestC032_ADamagedVoteIsRefusedByName(t *testing.T) {
	vote := metadataFile(voteFileName)
	cases := damages(vote, voteSize)
	cases["removed"] = func(fs *systest.FS) error { return fs.Remove(vote) }
	cases["an older one put back"] = func(fs *systest.FS) error { return writeVote(fs, filepath.Dir(vote), vote0()) }
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := openTestNode(t, damaged(t, newModel(), damage), testOptions{})
				mustBeCorrupt(t, err, vote)
			})
		})
	}
}

func vote0() vote { return vote{} }

func TestC032_ADamagedSnapshotIsReplacedByTheOneBefore(t *testing.T) {
	newest, size := newestSnapshot(t)
	for name, damage := range damages(newest, size) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModel()
				settle(t, damaged(t, m, damage), m)
			})
		})
	}
}

// newestSnapshot runs what damaged runs and returns the path and size of the newest snapshot.
func newestSnapshot(t *testing.T) (name string, size int64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		for file, b := range damaged(t, newModel(), func(*systest.FS) error { return nil }).Files() {
			if strings.HasSuffix(file, snapshotSuffix) && file > name {
				name, size = file, int64(len(b))
			}
		}
	})
	return name, size
}

func TestC032_WithoutAnyReadableSnapshotTheNodeRefusesByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := func(do func(fs *systest.FS, name string) error) func(*systest.FS) error {
			return func(fs *systest.FS) error {
				for _, name := range snapshotFiles(fs) {
					if err := do(fs, metadataFile(name)); err != nil {
						return err
					}
				}
				return nil
			}
		}
		_, err := openTestNode(t, damaged(t, newModel(), all(func(fs *systest.FS, name string) error { return fs.Cut(name, 0) })), testOptions{})
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || !strings.HasSuffix(corrupt.File, snapshotSuffix) {
			t.Errorf("all snapshots emptied: %v", err)
		}
		// Never a new cluster over old data.
		_, err = openTestNode(t, damaged(t, newModel(), all(func(fs *systest.FS, name string) error { return fs.Remove(name) })), testOptions{})
		mustBeCorrupt(t, err, filepath.Join(dataDir, "metadata"))
	})
}

func TestC025_AcknowledgedEntriesSurviveAHundredKills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(25)
		m := newModel()
		for round := range 100 {
			n := startTestNode(t, fs, testOptions{every: 16})
			m.reopened(t, n.q)
			if _, ok := n.lead(); !ok {
				t.Fatal(fmt.Sprintf("round %d: no leader", round))
			}
			m.check(t, n.q)
			for range round % 5 {
				if !m.commit(n) {
					t.Fatalf("round %d: not committed", round)
				}
			}
			m.next(n)
			fs = n.crash([]systest.CrashMode{systest.KillProcess, systest.LoseAll, systest.Random}[round%3])
		}
		settle(t, fs, m)
	})
}
