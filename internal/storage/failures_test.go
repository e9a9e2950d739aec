package storage

import (
	"syscall"
	"testing"

	"strandline.dev/internal/sys/systest"
)

// Tests of operations that fail while the process goes on.

func TestI11_NoSpaceFromASyncIsAFailedSync(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, smallLog)
	fill(t, l, 3)
	d.syncer.runAll()
	fill(t, l, 5) // fills the first segment (5 batches) and rolls: a .meta is due, which may wait for room
	failed := false
	fsys.Hook(func(op systest.Op) error {
		if !failed && op.Kind == systest.OpSync && isSegmentName(op.Name) {
			failed = true
			return &systest.SyncFault{Name: op.Name, Err: systest.ErrNoSpace}
		}
		return nil
	})
	d.syncer.runAll()
	if err := d.SavePoints(nil); err != nil {
		t.Fatal(err)
	}
	d.syncer.runAll()
	stored := l.StoredEnd()
	again := openTestLog(t, openTestDir(t, fsys.Crash(systest.LoseAll)), smallLog)
	if stored != 3 || l.Damaged() == nil || again.End() < stored {
		t.Fatalf("stored %d, want 3; damaged: %v; after a power cut end %d", stored, l.Damaged(), again.End())
	}
	_, err := l.Append(0, testBatch(1, 1, 10, 0), testDay)
	wantErr(t, err, ErrSyncFailed)
	if isNoSpace(err) {
		t.Fatalf("%v passes for something that room would cure", err)
	}
}

// A segment that was created and rolled between two rounds has no name on disk yet when its .meta finds no room.
func TestI11_NothingCountsWhoseNameIsNotOnDisk(t *testing.T) {
	for _, nameFails := range []bool{false, true} {
		fsys := systest.NewFS(1)
		d := newTestDir(t, fsys)
		l := openTestLog(t, d, smallLog)
		fill(t, l, 8)
		if len(l.mu.unsealed) == 0 {
			t.Fatal("no roll")
		}
		fsys.Hook(func(op systest.Op) error {
			if (op.Kind == systest.OpCreate || op.Kind == systest.OpWrite) && hasSuffix(op.Name, metaSuffix+tempSuffix) {
				return systest.ErrNoSpace
			}
			if nameFails && op.Kind == systest.OpSyncDir && op.Name == l.path {
				return systest.ErrNoSpace
			}
			return nil
		})
		d.syncer.round() // without the caches, whose writing would sync the directory
		stored := l.StoredEnd()
		if nameFails != (l.Damaged() != nil) || nameFails != (stored == 0) {
			t.Errorf("name fails: %v; stored %d, damaged: %v", nameFails, stored, l.Damaged())
		}
		again := openTestLog(t, openTestDir(t, fsys.Crash(systest.LoseAll)), smallLog)
		if again.End() < stored {
			t.Errorf("name fails: %v; stored %d reported, end %d after a power cut (damaged: %v)", nameFails, stored, again.End(), again.Damaged())
		}
	}
}

// The pages of a failed sync look clean; a second attempt to open must not take them for synced.
func TestI11_FailedSyncOfATornTailIsFinal(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, LogOptions{})
	fill(t, l, 6)
	if err := fsys.Cut(l.activeLocked().path, l.Size()-10); err != nil {
		t.Fatal(err)
	}
	fsys = fsys.Crash(systest.KillProcess)
	d = newTestDir(t, fsys)
	failed, unreadable := false, false
	fsys.Hook(func(op systest.Op) error {
		if !failed && op.Kind == systest.OpSync && isSegmentName(op.Name) {
			failed, unreadable = true, true
			return syscall.EIO
		}
		if unreadable && op.Kind == systest.OpRead && isSegmentName(op.Name) {
			unreadable = false // that attempt fails, not the next
			return syscall.EIO
		}
		return nil
	})
	for attempt := range 3 {
		l, err := d.OpenLog(testTP, LogOptions{})
		if err != nil {
			continue
		}
		if l.Damaged() == nil {
			t.Fatalf("attempt %d: the failed sync is forgotten", attempt)
		}
		return
	}
	t.Fatal("not opened")
}

func TestC034_FailedRetentionIsTakenUpAgain(t *testing.T) {
	for _, step := range []struct {
		name string
		kind systest.OpKind
	}{{syncPointFile + tempSuffix, systest.OpWrite}, {logSuffix, systest.OpRemove}} {
		fsys := systest.NewFS(1)
		d := newTestDir(t, fsys)
		l := openTestLog(t, d, smallLog)
		fill(t, l, 25)
		d.syncer.runAll()
		full := true
		fsys.Hook(func(op systest.Op) error {
			if full && hasSuffix(op.Name, step.name) && op.Kind == step.kind {
				return systest.ErrNoSpace
			}
			return nil
		})
		p := RetentionPolicy{Bytes: 1}
		if _, err := l.ApplyRetention(p, l.End(), testDay); err == nil {
			t.Fatal("no error")
		}
		full = false
		if _, err := l.ApplyRetention(p, l.End(), testDay); err != nil {
			t.Fatal(err)
		}
		var segments int
		for name := range fsys.Files() {
			if isSegmentName(name) {
				segments++
			}
		}
		if segments != len(l.mu.segments) {
			t.Errorf("%s: %d segment files are on disk, the log has %d", step.name, segments, len(l.mu.segments))
		}
	}
}

// An append whose undo failed leaves bytes behind the end.
func TestI11_RollTrimsTheOldSegment(t *testing.T) {
	for _, mode := range []systest.CrashMode{systest.KillProcess, systest.LoseAll} {
		fsys := systest.NewFS(1)
		d := newTestDir(t, fsys)
		l := openTestLog(t, d, smallLog)
		fill(t, l, 5)
		d.syncer.runAll()
		failing := true
		fsys.Hook(func(op systest.Op) error {
			if failing && isSegmentName(op.Name) {
				switch op.Kind {
				case systest.OpWrite:
					return &systest.ShortWrite{Bytes: 50, Err: systest.ErrNoSpace}
				case systest.OpTruncate:
					return syscall.EIO
				}
			}
			return nil
		})
		if _, err := l.Append(0, testBatch(1, 1, 10, 0), testDay); err == nil {
			t.Fatal("no error")
		}
		if _, err := l.Append(0, testBatch(2, 1, 700, 0), testDay); err == nil {
			t.Fatal("rolled with bytes behind the end")
		}
		l.housekeep()
		d.syncer.runAll() // those bytes are on disk now
		failing = false
		mustAppend(t, l, 0, testBatch(2, 1, 700, 0)) // rolls
		d.syncer.runAll()
		end := l.StoredEnd()
		if err := d.SavePoints(nil); err != nil {
			t.Fatal(err)
		}
		again := openTestLog(t, openTestDir(t, fsys.Crash(mode)), smallLog)
		if again.Damaged() != nil || end != 6 || again.End() != end {
			t.Errorf("crash %v: stored %d, want 6; then end %d, damaged: %v", mode, end, again.End(), again.Damaged())
		}
	}
}

func TestI14_FailedOpenKeepsNoFile(t *testing.T) {
	for _, tear := range []bool{false, true} {
		fsys := systest.NewFS(1)
		d := newTestDir(t, fsys)
		l := openTestLog(t, d, smallLog)
		fill(t, l, 23)
		d.syncer.runAll()
		if tear {
			fill(t, l, 1)
			active := l.activeLocked()
			if err := fsys.Cut(active.path, active.size-10); err != nil {
				t.Fatal(err)
			}
			fsys = fsys.Crash(systest.KillProcess)
		} else {
			closeClean(t, d)
		}
		for name := range fsys.Files() {
			if hasSuffix(name, indexSuffix) || hasSuffix(name, producersSuffix) || hasSuffix(name, "/"+epochsFile) {
				if err := fsys.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
		}
		fsys.Hook(func(op systest.Op) error {
			if (op.Kind == systest.OpRead && !tear || op.Kind == systest.OpTruncate) && isSegmentName(op.Name) {
				return syscall.EIO
			}
			return nil
		})
		d = newTestDir(t, fsys)
		for range 3 {
			if _, err := d.OpenLog(testTP, smallLog); err == nil {
				t.Fatal("opened")
			}
		}
		if n := d.openFiles.Load(); n != 0 {
			t.Errorf("tear %v: %d segment files are open after failed attempts", tear, n)
		}
		if d.syncer.runAll(); d.openFiles.Load() != 0 {
			t.Errorf("tear %v: the syncer opened files of a log that is not open", tear)
		}
	}
}

// What counts at the end of the sync that ends `recovering` was reported under `replicated` too.
func TestI4_ReplicatedEndIsNotedWhenRecoveringEnds(t *testing.T) {
	o := LogOptions{Policy: Replicated}
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, o)
	fill(t, l, 3)
	if err := d.save(); err != nil {
		t.Fatal(err)
	}
	fill(t, l, 3)
	fsys = fsys.Crash(systest.KillProcess)
	d = newTestDir(t, fsys)
	l = openTestLog(t, d, o)
	if err := d.save(); err != nil {
		t.Fatal(err)
	}
	j := l.beginFlush() // the disk is slow
	for _, f := range j.files {
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.syncParent(testTP); err != nil {
		t.Fatal(err)
	}
	fill(t, l, 2) // meanwhile
	j.end(nil)
	l.tellStored()
	wantUncleanIfLost(t, fsys, l)
}

// The file still says `replicated` when the policy comes back to it: ends count at once.
func TestI4_ReplicatedEndIsNotedWhenThePolicyComesBack(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, LogOptions{Policy: Replicated})
	fill(t, l, 3)
	d.syncer.runAll()
	if err := d.save(); err != nil {
		t.Fatal(err)
	}
	l.SetOptions(LogOptions{Policy: Synced})
	fill(t, l, 3)
	l.SetOptions(LogOptions{Policy: Replicated})
	wantUncleanIfLost(t, fsys, l)
}

// wantUncleanIfLost takes what the log reports now, sets the policy back to `synced`, and cuts the power.
func wantUncleanIfLost(t *testing.T, fsys *systest.FS, l *Log) {
	t.Helper()
	reported := l.StoredEnd()
	l.SetOptions(LogOptions{Policy: Synced})
	if err := l.dir.save(); err != nil {
		t.Fatal(err)
	}
	again := openTestLog(t, openTestDir(t, fsys.Crash(systest.LoseAll)), LogOptions{})
	if again.End() >= reported {
		t.Fatalf("nothing was lost of %d: the test shows nothing", reported)
	}
	if got := again.Recovered(); !got.Unclean {
		t.Fatalf("reported %d, left %d, policy %v, and yet clean (I4)", reported, again.End(), got.SyncPointPolicy)
	}
}

// The entry of a dropped partition goes with it, wherever a crash comes in between: it would be damage without a directory, and
// a partition that comes back would be judged by it.
func TestI10_DroppedLogLeavesNoEntry(t *testing.T) {
	begin := func() (*systest.FS, *Dir) {
		fsys := systest.NewFS(1)
		d := newTestDir(t, fsys)
		fill(t, openTestLog(t, d, LogOptions{}), 25)
		d.syncer.runAll()
		if err := d.SavePoints(nil); err != nil {
			t.Fatal(err)
		}
		return fsys, d
	}
	fsys, d := begin()
	before := fsys.Ops()
	if err := dropTestLog(d); err != nil {
		t.Fatal(err)
	}
	for at := before + 1; at <= fsys.Ops()+1; at++ {
		for _, mode := range []systest.CrashMode{systest.KillProcess, systest.LoseAll, systest.KeepAll} {
			crashing, d := begin()
			crashing.CrashAt(at)
			_ = dropTestLog(d)
			again := openTestDir(t, crashing.Crash(mode))
			there, err := again.PartitionDirs()
			if err != nil {
				t.Fatal(err)
			}
			if len(there) != len(again.Promised()) {
				t.Fatalf("crash at %d, %s: directories %v, entries %v", at-before, mode, there, again.Promised())
			}
			if len(there) > 0 {
				continue
			}
			// It comes back young.
			if l := openTestLog(t, again, LogOptions{}); l.Damaged() != nil || l.End() != 0 {
				t.Fatalf("crash at %d, %s: end %d, damaged: %v", at-before, mode, l.End(), l.Damaged())
			}
		}
	}
}

// On a full disk the removal is what makes the room for the entry's.
func TestP43_DropOnAFullDisk(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	fill(t, openTestLog(t, d, LogOptions{}), 25)
	d.syncer.runAll()
	if err := d.SavePoints(nil); err != nil {
		t.Fatal(err)
	}
	fsys.SetFree(0)
	if err := dropTestLog(d); err != nil {
		t.Fatal(err)
	}
	if left := openTestDir(t, fsys.Crash(systest.LoseAll)).Promised(); len(left) != 0 {
		t.Fatalf("entries left: %v", left)
	}
}

// A leader that was deposed before it appended anything follows the next one, also after a crash.
func TestC015_EpochWithoutRecordsIsTruncatedAway(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, smallLog)
	fill(t, l, 3)
	if err := l.AssignEpoch(5); err != nil {
		t.Fatal(err)
	}
	l.writeCaches()
	if err := l.TruncateTo(3); err != nil {
		t.Fatal(err)
	}
	b := testBatch(9, 1, 10, 0)
	b.SetBaseOffset(3)
	b.SetLeaderEpoch(4)
	if _, err := l.AppendReplicated(b, testDay); err != nil {
		t.Fatalf("refused: %v (latest epoch %d)", err, l.LatestEpoch())
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []systest.CrashMode{systest.KillProcess, systest.LoseAll, systest.KeepAll} {
		again := openTestLog(t, openTestDir(t, fsys.Clone(mode)), smallLog)
		if again.Damaged() != nil || again.End() != 4 || again.LatestEpoch() != 4 {
			t.Errorf("%s: end %d, epoch %d, damaged: %v", mode, again.End(), again.LatestEpoch(), again.Damaged())
		}
	}
}

// The epochs file may be ahead of the records: a power cut took the first one of the newest epoch.
func TestC015_EpochGoesWithItsLostRecords(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, smallLog)
	fill(t, l, 3)
	d.syncer.runAll()
	mustAppend(t, l, 5, testBatch(9, 1, 10, 0)) // not synced
	l.writeCaches()
	l = openTestLog(t, openTestDir(t, fsys.Crash(systest.LoseAll)), smallLog)
	if l.End() != 3 {
		t.Fatalf("end %d, want 3", l.End())
	}
	b := testBatch(9, 1, 10, 0)
	b.SetBaseOffset(3)
	b.SetLeaderEpoch(4)
	if _, err := l.AppendReplicated(b, testDay); err != nil {
		t.Fatalf("%v (latest epoch %d, of which there is no record)", err, l.LatestEpoch())
	}
}
