package storage

import (
	"syscall"
	"testing"

	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// restart ends the process in the given way and opens directory and log again.
func restart(t testing.TB, d *Dir, fsys *systest.FS, how systest.CrashMode) (*systest.FS, *Dir, *Log) {
	t.Helper()
	if err := d.SavePoints(nil); err != nil {
		t.Fatal(err)
	}
	fsys = fsys.Crash(how)
	d = newTestDir(t, fsys)
	return fsys, d, openTestLog(t, d, smallLog)
}

// TestI4_LostFilesNeverComeBackEmpty: a log that lost its directory, its segments, or, when damaged already, what was left of it, is
// damaged at every start that follows, however the ones before ended.
func TestI4_LostFilesNeverComeBackEmpty(t *testing.T) {
	losses := map[string]func(fsys *systest.FS) error{
		"directory": func(fsys *systest.FS) error { return sys.RemoveAll(fsys, logDirName()) },
		"segments": func(fsys *systest.FS) error {
			for name := range fsys.Files() {
				if isSegmentName(name) {
					if err := fsys.Remove(name); err != nil {
						return err
					}
				}
			}
			return fsys.SyncDir(logDirName())
		},
		"a part, then all": func(fsys *systest.FS) error {
			if err := fsys.Cut(logFile("00000000000000000000.log"), 0); err != nil {
				return err
			}
			d, err := tryTestDir(fsys)
			if err != nil {
				return err
			}
			if _, err := d.OpenLog(testTP, smallLog); err != nil {
				return err
			}
			_ = d.Close(CloseOptions{Clean: true, BrokerEpoch: 5}) // says that the log is damaged
			return sys.RemoveAll(fsys, logDirName())
		},
	}
	for what, lose := range losses {
		for _, how := range []systest.CrashMode{systest.KillProcess, systest.LoseAll} {
			fsys := systest.NewFS(1)
			d := newTestDir(t, fsys)
			fill(t, openTestLog(t, d, smallLog), 25)
			closeClean(t, d)
			if err := lose(fsys); err != nil {
				t.Fatal(err)
			}
			d = newTestDir(t, fsys)
			l := openTestLog(t, d, smallLog)
			for start := range 3 {
				if l.Damaged() == nil || l.Recovered().Damaged == nil || !l.Recovered().Unclean {
					t.Fatalf("%s lost, %s, start %d: not damaged; [%d, %d)", what, how, start, l.Start(), l.End())
				}
				fsys, d, l = restart(t, d, fsys, how)
			}
			// A rebuilt log is a log.
			if err := l.Reset(7); err != nil {
				t.Fatal(err)
			}
			mustAppend(t, l, 0, testBatch(1, 1, 10, 0))
			d.syncer.runAll()
			if _, _, l = restart(t, d, fsys, how); l.Damaged() != nil || l.Start() != 7 || l.End() != 8 {
				t.Fatalf("%s lost, %s: after a reset [%d, %d), %v", what, how, l.Start(), l.End(), l.Damaged())
			}
		}
	}
}

// TestI11_FailedSyncIsRememberedWithoutAMarker: the sync that fails is remembered across kill -9, also when the device takes the marker no
// better than it took the records; and it is on disk as soon as the device recovers.
func TestI11_FailedSyncIsRememberedWithoutAMarker(t *testing.T) {
	type fault func(op systest.Op) error
	on := func(kind systest.OpKind, suffix string, err error) fault {
		return func(op systest.Op) error {
			if op.Kind == kind && hasSuffix(op.Name, suffix) {
				return err
			}
			return nil
		}
	}
	faults := map[string]fault{
		"full disk": func(op systest.Op) error {
			if op.Kind == systest.OpWrite && !isSegmentName(op.Name) {
				return systest.ErrNoSpace
			}
			return nil
		},
		"full disk, no new names": func(op systest.Op) error {
			if op.Kind == systest.OpCreate {
				return systest.ErrNoSpace
			}
			return nil
		},
		"no sync":           on(systest.OpSync, "", syscall.EIO),
		"no directory sync": on(systest.OpSyncDir, "", syscall.EIO),
		"no rename":         on(systest.OpRename, "", syscall.EIO),
	}
	for what, f := range faults {
		fsys := systest.NewFS(1)
		d := newTestDir(t, fsys)
		l := openTestLog(t, d, LogOptions{})
		fill(t, l, 3)
		d.syncer.runAll()
		l.mu.caches.checkpoint = true
		l.writeCaches()
		if err := d.SavePoints(nil); err != nil {
			t.Fatal(err)
		}
		d.syncer.runAll()
		fill(t, l, 3)
		broken := true
		fsys.Hook(func(op systest.Op) error {
			if broken && op.Kind == systest.OpSync && isSegmentName(op.Name) {
				return syscall.EIO
			}
			if broken {
				return f(op)
			}
			return nil
		})
		d.syncer.round()
		if l.Damaged() == nil {
			t.Fatalf("%s: not damaged", what)
		}
		if again := openTestLog(t, openTestDir(t, fsys.Clone(systest.KillProcess)), LogOptions{}); again.Damaged() == nil {
			t.Errorf("%s: forgotten across kill -9: end %d", what, again.End())
		}
		_ = d.SavePoints(nil) // fails like the rest
		broken = false
		if err := d.SavePoints(nil); err != nil {
			t.Fatal(err)
		}
		if there, err := sys.Exists(fsys.Clone(systest.LoseAll), logFile(damagedFile)); err != nil || !there {
			t.Errorf("%s: the marker is not on disk although the device recovered: %v", what, err)
		}
	}
}
