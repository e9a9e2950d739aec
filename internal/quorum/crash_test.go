package quorum

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"strandline.dev/internal/metadata"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys/systest"
)

// workload opens a directory several times and commits entries over several snapshots. It ends early when the disk fails.
func workload(t *testing.T, fs *systest.FS, m *model) (err error) {
	for range 3 {
		n, err := openTestNode(t, fs, testOptions{every: 4})
		if err != nil {
			return err
		}
		m.reopened(t, n.q)
		m.node.Store(n)
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
		err = n.close()
		m.node.Store(nil)
		if err != nil || m.limit.Load() > 0 {
			return err
		}
	}
	return nil
}

// settle starts a node on a disk after a fault, checks the model, and goes on working.
func settle(t *testing.T, fs *systest.FS, m *model) {
	t.Helper()
	n := m.start(t, fs, testOptions{every: 4})
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
	for at := int64(1); at <= ops; at += *crashStride {
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
	kinds := map[string]int{}
	reached := true
	for k := 1; reached; k++ {
		for _, mode := range []systest.CrashMode{systest.LoseAll, systest.KillProcess} {
			synctest.Test(t, func(t *testing.T) {
				fs := systest.NewFS(1)
				m := newModel()
				kind, stopped := failSync(t, fs, m, k)
				reached = kind != ""
				if stopped {
					kinds[kind]++
				}
				next := fs.Crash(mode)
				n, err := openTestNode(t, next, testOptions{})
				if err != nil {
					// A power cut after a failed sync: the bytes that are gone were never confirmed, but that does not show.
					var damage *storage.CorruptError
					if kind != "log" && kind != "directory" || mode != systest.LoseAll || !errors.As(err, &damage) || !strings.HasPrefix(damage.File, dataDir) {
						t.Fatalf("sync %d, of the %s, failed; after %s the restart is refused: %v", k, kind, mode, err)
					}
					return
				}
				_ = n.close()
				settle(t, next, m)
			})
		}
	}
	for _, want := range []string{"log", "copy", "vote", "snapshot", "directory"} {
		if kinds[want] == 0 {
			t.Errorf("no failed sync of a %s stopped the quorum; those that did: %v", want, kinds)
		}
	}
}

// failSync runs the workload and lets the k-th sync that metadata depends on fail; afterwards the disk says that all is well.
// It reports what was synced, "" if there were fewer syncs, and whether the quorum stopped for that.
func failSync(t *testing.T, fs *systest.FS, m *model, k int) (kind string, stopped bool) {
	t.Helper()
	renamed := ""
	var two sync.Mutex // log and copy are synced side by side
	fs.Hook(func(op systest.Op) error {
		two.Lock()
		defer two.Unlock()
		if !strings.HasPrefix(op.Name, metadataFile("")) {
			return nil
		}
		if op.Kind == systest.OpRename || op.Kind == systest.OpCreate {
			renamed = op.To
		}
		this := syncedThing(op, renamed)
		if this == "" {
			return nil
		}
		if k--; k != 0 {
			return nil
		}
		kind = this
		// An opening or closing node confirms nothing; a running one may confirm what is on its way.
		limit := uint64(1) << 62
		if n := m.node.Load(); n != nil {
			limit = n.q.LogEnd()
		}
		m.limit.Store(limit)
		return syscall.EIO
	})
	err := workload(t, fs, m)
	m.limit.Store(0)
	return kind, errors.Is(err, syscall.EIO) || errors.Is(err, storage.ErrSyncFailed)
}

// syncedThing says what an operation syncs, or "" for no sync and for caches. renamed is the last name that changed.
func syncedThing(op systest.Op, renamed string) string {
	name := strings.TrimSuffix(filepath.Base(op.Name), ".tmp")
	authoritative := func(name string) bool {
		return name == voteFileName || name == copyFileName || strings.HasSuffix(name, snapshotSuffix)
	}
	switch {
	case op.Kind == systest.OpSyncDir && authoritative(filepath.Base(renamed)):
		return "directory"
	case op.Kind != systest.OpSync:
		return ""
	case name == voteFileName:
		return "vote"
	case name == copyFileName:
		return "copy"
	case strings.HasSuffix(name, snapshotSuffix):
		return "snapshot"
	case strings.HasSuffix(name, ".log"):
		return "log"
	}
	return ""
}

// damaged runs a node over some snapshots and closes it, applies damage to one file, and returns the disk.
func damaged(t *testing.T, m *model, damage func(fs *systest.FS) error) *systest.FS {
	t.Helper()
	fs := systest.NewFS(1)
	n := m.start(t, fs, testOptions{every: 4})
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
func damages(name string) map[string]func(*systest.FS) error {
	size := func(fs *systest.FS) int64 { return int64(len(fs.Files()[name])) }
	return map[string]func(*systest.FS) error{
		"emptied": func(fs *systest.FS) error { return fs.Cut(name, 0) },
		"zeroed":  func(fs *systest.FS) error { return fs.Zero(name, 0, size(fs)) },
		"cut":     func(fs *systest.FS) error { return fs.Cut(name, size(fs)-1) },
		"flipped": func(fs *systest.FS) error { return fs.FlipBit(name, size(fs)/2, 3) },
	}
}

func TestC032_ADamagedSnapshotIsReplacedByTheOneBefore(t *testing.T) {
	for name, damage := range damages(newestSnapshot(t)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModel()
				settle(t, damaged(t, m, damage), m)
			})
		})
	}
}

// newestSnapshot runs what damaged runs and returns the path of the newest snapshot.
func newestSnapshot(t *testing.T) (name string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		for file := range damaged(t, newModel(), func(*systest.FS) error { return nil }).Files() {
			if strings.HasSuffix(file, snapshotSuffix) && file > name {
				name = file
			}
		}
	})
	return name
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

func TestC032_DamageBelowTheNewestSnapshotCostsNothing(t *testing.T) {
	log := metadataFile("00000000000000000001.log")
	for at := range int64(20) {
		synctest.Test(t, func(t *testing.T) {
			m := newModel()
			fs := damaged(t, m, func(fs *systest.FS) error { return fs.FlipBit(log, 61+at*60, uint(at)) })
			settle(t, fs, m)
			settle(t, fs, m)
		})
	}
}

func TestC032_DamageBehindTheNewestSnapshotInLogAndCopyIsRefusedByName(t *testing.T) {
	log := metadataFile("00000000000000000001.log")
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(1)
		n := startTestNode(t, fs, testOptions{})
		for next := range int64(5) {
			n.mustCommit(metadata.ProducerIDsRecord{Next: next * 1000})
		}
		fs = n.crash(systest.KillProcess)
		if err := errors.Join(fs.FlipBit(log, 200, 3), fs.FlipBit(copyPath, 200, 3)); err != nil {
			t.Fatal(err)
		}
		_, err := openTestNode(t, fs, testOptions{})
		var damage *storage.CorruptError
		if !errors.As(err, &damage) || damage.File != log || !errors.Is(err, errHole) {
			t.Fatalf("got %v, want a refusal that names %s", err, log)
		}
		// Nothing was changed: the bit set right again, everything is there.
		if err := fs.FlipBit(log, 200, 3); err != nil {
			t.Fatal(err)
		}
		if err := fs.Remove(metadataFile("damaged")); err != nil {
			t.Logf("no marker to remove: %v", err)
		}
	})
}

func TestC025_AcknowledgedEntriesSurviveAHundredKills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(25)
		m := newModel()
		for round := range 100 {
			n := m.start(t, fs, testOptions{every: 16})
			if _, ok := n.lead(); !ok {
				t.Fatalf("round %d: no leader", round)
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
