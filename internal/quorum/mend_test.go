package quorum

import (
	"flag"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/sys/systest"
)

func TestC032_ALogLostAfterAKillIsMadeWholeFromItsCopy(t *testing.T) {
	for name, damage := range logDamages() {
		for _, saved := range []bool{false, true} {
			for _, keep := range []int64{0, copyKeepBytes} {
				synctest.Test(t, func(t *testing.T) {
					defer func() {
						if t.Failed() {
							t.Logf("log %s, sync point saved: %v, copy begun anew from %d bytes", name, saved, keep)
						}
					}()
					m := newModel()
					n := m.start(t, systest.NewFS(1), testOptions{every: 7, copyKeep: keep})
					for range 9 {
						m.commit(n)
					}
					if saved {
						if err := n.dir.SavePoints(nil); err != nil {
							t.Fatal(err)
						}
					}
					fs := n.crash(systest.KillProcess)
					if err := damage(fs); err != nil {
						t.Fatal(err)
					}
					settle(t, fs, m)
					settle(t, fs, m)
				})
			}
		}
	}
}

// copyDamages are what can happen to the copy while the node is down.
func copyDamages() map[string]func(*systest.FS) error {
	cases := damages(copyPath)
	cases["removed"] = func(fs *systest.FS) error { return fs.Remove(copyPath) }
	cases["halved"] = func(fs *systest.FS) error { return fs.Cut(copyPath, int64(len(fs.Files()[copyPath])/2)) }
	cases["shorter by entries"] = func(fs *systest.FS) error { return fs.Cut(copyPath, copyHeaderSize) }
	cases["header damaged"] = func(fs *systest.FS) error { return fs.FlipBit(copyPath, 9, 1) }
	cases["a byte more"] = func(fs *systest.FS) error { return addByte(fs, copyPath) }
	return cases
}

func addByte(fs *systest.FS, name string) error {
	f, err := fs.OpenFile(name, syscall.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte{0}, int64(len(fs.Files()[name])))
	return err
}

// TestC032_ADamagedCopyIsWrittenAnew: the log alone is enough, and after that start the copy alone is again.
func TestC032_ADamagedCopyIsWrittenAnew(t *testing.T) {
	for name, damage := range copyDamages() {
		for _, clean := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newModel()
					n := m.start(t, systest.NewFS(1), testOptions{every: 1000, copyKeep: copyKeepBytes})
					for range 9 {
						m.commit(n)
					}
					fs := n.fs
					if clean {
						n.closeClean()
					} else {
						fs = n.crash(systest.KillProcess)
					}
					if err := damage(fs); err != nil {
						t.Fatal(err)
					}
					said := &warnings{}
					n = m.start(t, fs, testOptions{every: 1000, log: slog.New(said)})
					n.lead()
					m.check(t, n.q)
					shows := name != "removed" && (clean || name != "shorter by entries") // a clean stop leaves the true end
					if got := strings.Contains(strings.Join(said.lines, "\n"), "copy of the metadata log was damaged"); got != shows {
						t.Errorf("warnings: %q", said.lines)
					}
					m.commit(n)
					fs = n.crash(systest.KillProcess)
					if err := fs.Cut(logPath, 0); err != nil {
						t.Fatal(err)
					}
					settle(t, fs, m)
				})
			})
		}
	}
}

// TestC032_NoBitOfAKilledNodesLogMatters: index, length and term too, which no checksum of the log covers.
func TestC032_NoBitOfAKilledNodesLogMatters(t *testing.T) {
	size := 1
	for at := 0; at < size; at += int(*crashStride) {
		synctest.Test(t, func(t *testing.T) {
			m := newModel()
			fs := behindSnapshotInBubble(t, m)
			size = len(fs.Files()[logPath])
			if err := fs.FlipBit(logPath, int64(at), uint(at)); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if t.Failed() {
					t.Logf("byte %d of %d", at, size)
				}
			}()
			settle(t, fs, m)
			settle(t, fs, m)
		})
	}
}

var everyDamage = flag.Bool("quorum.everydamage", false, "each kind of damage after a kill at each file operation")

// TestC032_OneOfLogAndCopyIsEnoughAfterAKillAtAnyMoment kills a node at each file operation and then damages one of the two files.
func TestC032_OneOfLogAndCopyIsEnoughAfterAKillAtAnyMoment(t *testing.T) {
	var ops int64
	synctest.Test(t, func(t *testing.T) { ops = countOps(t) })
	for at := int64(1); at <= ops; at += *crashStride {
		for _, file := range []string{logPath, copyPath} {
			kinds := damages(file)
			for i, name := range slices.Sorted(maps.Keys(kinds)) {
				if !*everyDamage && int64(i) != at%int64(len(kinds)) {
					continue // one kind in turn
				}
				damage := kinds[name]
				synctest.Test(t, func(t *testing.T) {
					defer func() {
						if t.Failed() {
							t.Logf("kill at operation %d of %d, %s %s", at, ops, file, name)
						}
					}()
					fs := systest.NewFS(uint64(at))
					m := newModel()
					fs.CrashAt(at)
					_ = workload(t, fs, m)
					next := fs.Crash(systest.KillProcess)
					if len(next.Files()[file]) == 0 {
						return
					}
					if err := damage(next); err != nil {
						t.Fatal(err)
					}
					settle(t, next, m)
				})
			}
		}
	}
}

// TestC032_AKillWhileALogIsMadeWholeLosesNothing kills the start that repairs a log, at each file operation.
func TestC032_AKillWhileALogIsMadeWholeLosesNothing(t *testing.T) {
	for name, damage := range logDamages() {
		opened := false
		for at := int64(1); !opened; at += *crashStride {
			for _, mode := range []systest.CrashMode{systest.KillProcess, systest.LoseAll, systest.Random} {
				synctest.Test(t, func(t *testing.T) {
					defer func() {
						if t.Failed() {
							t.Logf("log %s, crash at operation %d, mode %s", name, at, mode)
						}
					}()
					m := newModel()
					fs := behindSnapshotInBubble(t, m)
					if err := damage(fs); err != nil {
						t.Fatal(err)
					}
					fs.CrashAt(fs.Ops() + at)
					if n, err := openTestNode(t, fs, testOptions{every: 4}); err == nil {
						opened = true
						_ = n.close()
					}
					settle(t, fs.Crash(mode), m)
				})
			}
		}
	}
}

// TestI11_AFullDiskKeepsLogAndCopyTogether: either file may be the one that finds no room, at any write.
func TestI11_AFullDiskKeepsLogAndCopyTogether(t *testing.T) {
	for _, full := range []string{logPath, copyPath} {
		synctest.Test(t, func(t *testing.T) {
			m := newModel()
			fs := systest.NewFS(1)
			n := m.start(t, fs, testOptions{every: 1000})
			m.commit(n)
			refused := 0
			fs.Hook(func(op systest.Op) error {
				if op.Kind == systest.OpWrite && op.Name == full && refused%3 != 2 {
					refused++
					return systest.ErrNoSpace
				}
				if op.Kind == systest.OpWrite && op.Name == full {
					refused++
				}
				return nil
			})
			for range 5 {
				if !m.commit(n) {
					t.Fatal("not committed")
				}
			}
			if refused < 15 {
				t.Fatalf("%s: only %d writes", full, refused)
			}
			if got := fs.Files(); !sameEntries(t, got[logPath], got[copyPath]) {
				t.Errorf("%s found no room: log and copy differ", full)
			}
			// The last write is refused by one of them, and never repeated.
			fs.Hook(func(op systest.Op) error {
				if op.Kind == systest.OpWrite && op.Name == full {
					return systest.ErrNoSpace
				}
				return nil
			})
			m.next(n)
			time.Sleep(time.Second)
			settle(t, n.crash(systest.KillProcess), m)
		})
	}
}

// sameEntries says that a copy holds the whole log and nothing else.
func sameEntries(t *testing.T, log, file []byte) bool {
	t.Helper()
	c, err := decodeCopy(file)
	if err != nil {
		t.Error(err)
		return false
	}
	entries, err := decodeEntries(log)
	if err != nil {
		t.Error(err)
		return false
	}
	for _, e := range entries {
		if other := c.at(e.GetIndex()); other == nil || !sameEntry(e, other) {
			return false
		}
	}
	return c.end() == entries[len(entries)-1].GetIndex()+1
}

// TestI14_TheCopyBeginsAnewBehindASnapshot, and stays a copy.
func TestI14_TheCopyBeginsAnewBehindASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel()
		const keep = 2000
		n := m.start(t, systest.NewFS(1), testOptions{every: 4, copyKeep: keep})
		largest, size := 0, 0
		for range 200 {
			m.commit(n)
			synctest.Wait()
			size = len(n.fs.Files()[copyPath])
			largest = max(largest, size)
		}
		if log := len(n.fs.Files()[logPath]); largest > keep+2000 || largest < keep || log < 10*keep {
			t.Errorf("the copy grew to %d bytes, the log to %d", largest, log)
		}
		fs := n.crash(systest.KillProcess)
		if err := fs.Cut(logPath, 0); err != nil {
			t.Fatal(err)
		}
		settle(t, fs, m)
	})
}
