package storage

import (
	"strings"
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

// retryIsKnown fails unless the last of the five sequences of producer 42 is recognised.
func retryIsKnown(t *testing.T, l *Log, when string) {
	t.Helper()
	if c, err := l.CheckSequence(producerBatch(42, 0, 4, 1), testDay); err != nil || !c.Duplicate {
		t.Fatalf("%s: the retry of a stored batch is taken as new: %+v, %v", when, c, err)
	}
}

// TestC048_ProducersSurviveARemovalOnAFullDisk: when segments go while there is no room for a producer snapshot, it is written by the removal
// itself or by housekeeping, as soon as there is room, and kill -9 forgets nobody.
func TestC048_ProducersSurviveARemovalOnAFullDisk(t *testing.T) {
	for _, roomBy := range []string{"the removal", "others"} {
		fsys := systest.NewFS(1)
		d := newTestDir(t, fsys)
		l := openTestLog(t, d, smallLog)
		for i := range 5 {
			mustAppend(t, l, 0, producerBatch(42, 0, int32(i), 1))
		}
		full := true
		fsys.Hook(func(op systest.Op) error {
			if op.Kind == systest.OpRemove && isSegmentName(op.Name) && roomBy == "the removal" {
				full = false
			}
			if full && (op.Kind == systest.OpCreate || op.Kind == systest.OpWrite) && hasSuffix(op.Name, producersSuffix+tempSuffix) {
				return systest.ErrNoSpace
			}
			return nil
		})
		fill(t, l, 20)
		d.syncer.runAll()
		if err := l.AdvanceStart(l.End()); err != nil {
			t.Fatal(err)
		}
		if roomBy == "others" {
			full = false
			if err := d.SavePoints(nil); err != nil {
				t.Fatal(err)
			}
			d.syncer.runAll()
		}
		retryIsKnown(t, l, roomBy)
		retryIsKnown(t, openTestLog(t, openTestDir(t, fsys.Crash(systest.KillProcess)), smallLog), roomBy+", after kill -9")
	}
}

// TestC048_DamagedSnapshotCoversNothing: producer state that was rebuilt because its snapshots were damaged is written before the batches that
// it came from are removed, at a start and at a truncation alike.
func TestC048_DamagedSnapshotCoversNothing(t *testing.T) {
	flip := func(fsys *systest.FS) {
		n := 0
		for name := range fsys.Files() {
			if hasSuffix(name, producersSuffix) {
				n++
				if err := fsys.FlipBit(name, 14, 1); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n == 0 {
			t.Fatal("no snapshots")
		}
	}
	for _, running := range []bool{false, true} {
		fsys := systest.NewFS(1)
		d := newTestDir(t, fsys)
		l := openTestLog(t, d, smallLog)
		for i := range 5 {
			mustAppend(t, l, 0, producerBatch(42, 0, int32(i), 1))
		}
		fill(t, l, 20)
		d.syncer.runAll()
		if running {
			flip(fsys)
			if err := l.TruncateTo(l.End() - 1); err != nil {
				t.Fatal(err)
			}
		} else {
			closeClean(t, d)
			flip(fsys)
			d = newTestDir(t, fsys)
			l = openTestLog(t, d, smallLog)
		}
		retryIsKnown(t, l, "rebuilt")
		if err := l.AdvanceStart(l.End()); err != nil {
			t.Fatal(err)
		}
		retryIsKnown(t, openTestLog(t, openTestDir(t, fsys.Crash(systest.KillProcess)), smallLog), "after removal and kill -9")
	}
}

// TestI10_DamagedLogIsSetAsideAndComesBack: what is wrong with a log does not keep it from being set aside, and it is no error, for the
// directory has moved. It comes back as it went.
func TestI10_DamagedLogIsSetAsideAndComesBack(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, smallLog)
	fill(t, l, 3)
	d.syncer.runAll()
	l.damage(&CorruptError{Why: "test"})
	if err := d.QuarantineLog(testTP); err != nil {
		t.Fatal(err)
	}
	if q, err := d.Quarantined(); err != nil || len(q) != 1 {
		t.Fatalf("in quarantine: %v, %v", q, err)
	}
	if err := d.RestoreQuarantined(testTP); err != nil {
		t.Fatal(err)
	}
	if l = openTestLog(t, d, smallLog); l.Damaged() == nil || l.End() != 3 {
		t.Fatalf("came back with end %d, damaged %v", l.End(), l.Damaged())
	}
}

// TestI10_RestoreRefusesByNameWhenBothExist: neither the directory in quarantine nor the one that was made meanwhile is touched.
func TestI10_RestoreRefusesByNameWhenBothExist(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	fill(t, openTestLog(t, d, smallLog), 3)
	d.syncer.runAll()
	if err := d.QuarantineLog(testTP); err != nil {
		t.Fatal(err)
	}
	if l := openTestLog(t, d, smallLog); l.Damaged() == nil {
		t.Fatalf("what was set aside is taken for new: [%d, %d)", l.Start(), l.End())
	}
	before := len(fsys.Files())
	err := d.RestoreQuarantined(testTP)
	wantErr(t, err, ErrExists)
	for _, name := range []string{d.partitionPath(testTP), d.quarantinePath(testTP)} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
	if len(fsys.Files()) != before {
		t.Error("files were touched")
	}
}

// TestI11_RefusedResetLeavesNoIntent: after a reset that was refused the log goes on, and the next start does not carry it out. Where the intent
// cannot be taken back the log takes nothing more.
func TestI11_RefusedResetLeavesNoIntent(t *testing.T) {
	resets := map[string]func(l *Log) error{
		"reset":                        func(l *Log) error { return l.Reset(100) },
		"truncation through the start": func(l *Log) error { return l.TruncateTo(2) },
	}
	for what, reset := range resets {
		for _, faults := range []int{1, 2} {
			fsys := systest.NewFS(1)
			d := newTestDir(t, fsys)
			l := openTestLog(t, d, LogOptions{})
			mustAppend(t, l, 0, testBatch(1, 4, 20, 0))
			fill(t, l, 3)
			d.syncer.runAll()
			if err := l.AdvanceStart(2); err != nil {
				t.Fatal(err)
			}
			left, intent := faults, false
			fsys.Hook(func(op systest.Op) error {
				intent = intent || op.Kind == systest.OpRename && hasSuffix(op.To, resettingFile)
				if intent && left > 0 && op.Kind == systest.OpSyncDir && op.Name == logDirName() {
					left--
					return systest.ErrNoSpace
				}
				return nil
			})
			if err := reset(l); err == nil {
				t.Fatalf("%s: no error", what)
			}
			if _, err := l.Append(0, testBatch(9, 1, 10, 0), testDay); (err == nil) != (faults == 1) {
				t.Fatalf("%s, %d faults: append: %v", what, faults, err)
			}
			d.syncer.runAll()
			stored := l.StoredEnd()
			again := openTestLog(t, openTestDir(t, fsys.Crash(systest.KillProcess)), LogOptions{})
			if faults == 1 && (again.End() != stored || again.Start() != 2) {
				t.Errorf("%s: stored up to %d; after kill -9 the log is [%d, %d)", what, stored, again.Start(), again.End())
			}
		}
	}
}
