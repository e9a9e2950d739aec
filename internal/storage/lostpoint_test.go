package storage

import (
	"bytes"
	"strings"
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
)

// deletions raises log starts as DeleteRecords and retention do, between everything else that moves an entry of the sync-point file.
type deletions struct {
	// answered is the start that was told to somebody, end what was told as stored and not cut since.
	answered, end kafka.Offset
	ended         bool
}

func (w *deletions) run(fsys *systest.FS) error {
	d, err := tryTestDir(fsys)
	if err != nil {
		return err
	}
	if err := d.CommitBootID(); err != nil {
		return err
	}
	l, err := d.OpenLog(testTP, smallLog)
	if err != nil {
		return err
	}
	write := func(n int) error {
		for i := range n {
			if _, err := l.Append(0, testBatch(uint64(i), 1, 100, testDay.UnixMilli()), testDay); err != nil {
				return err
			}
		}
		d.syncer.runAll()
		w.end = max(w.end, l.StoredEnd())
		return nil
	}
	raise := func(start kafka.Offset) error {
		err := l.AdvanceStart(start)
		if err == nil {
			w.answered = start
		}
		return err
	}
	for _, step := range []func() error{
		func() error { return write(9) },
		func() error { return d.SavePoints(nil) },
		func() error { return raise(3) },
		func() error { return write(14) },
		func() error { return d.SavePoints(nil) }, // the copy stays as it was
		func() error { return raise(11) },
		func() error { return write(10) },
		func() error { return d.SavePoints(nil) },
		func() error { w.end = 25; return l.TruncateTo(25) },
		func() error { return write(4) },
		func() error { return raise(26) },
		func() error { return d.Close(CloseOptions{Clean: true}) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	w.ended = true
	return nil
}

// TestP19_LostSyncPointKeepsDeletedRecordsDeleted crashes a log whose start rises at each file operation, and damages one copy of the
// sync-point file. What was answered as deleted stays deleted, and nothing else goes.
func TestP19_LostSyncPointKeepsDeletedRecordsDeleted(t *testing.T) {
	ended := false
	for at := int64(1); !ended; at++ {
		for _, mode := range []systest.CrashMode{systest.KillProcess, systest.LoseAll, systest.KeepAll, systest.Random} {
			for _, file := range []string{syncPointFile, syncPointCopy} {
				for i, k := range harms {
					if int64(i) != at%int64(len(harms)) {
						continue // one kind in turn
					}
					fsys := systest.NewFS(uint64(at))
					fsys.CrashAt(at)
					w := &deletions{}
					err := w.run(fsys)
					ended = w.ended
					next := fsys.Crash(mode)
					// Before the first pair is complete nothing was answered, and one file may be all there is.
					if _, both := next.Files()[dirFile(syncPointCopy)]; !both && w.answered == 0 {
						continue
					}
					if b := next.Files()[dirFile(file)]; len(b) > 0 {
						if err := k.do(next, dirFile(file), int64(len(b))); err != nil {
							t.Fatal(err)
						}
					}
					l := openTestLog(t, openTestDir(t, next), smallLog)
					if l.Start() < w.answered || l.Damaged() != nil || l.End() < w.end {
						t.Fatalf("crash at operation %d (%v), %v, %s %s: start %d, answered %d; end %d, stored %d; damaged: %v",
							at, err, mode, file, k.name, l.Start(), w.answered, l.End(), w.end, l.Damaged())
					}
					if _, err := readAll(l, l.End(), 1000); err != nil {
						t.Fatalf("crash at operation %d, %v, %s %s: %v", at, mode, file, k.name, err)
					}
				}
			}
		}
	}
}

// TestSyncPointCopy_IsWrittenOnlyWhenItMustBe: an idle or a busy node pays for one file every five seconds, not for two.
func TestSyncPointCopy_IsWrittenOnlyWhenItMustBe(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, smallLog)
	writes := map[string]int{}
	fsys.Hook(func(op systest.Op) error {
		if op.Kind == systest.OpRename {
			writes[op.To]++
		}
		return nil
	})
	save := func(wantCopy int, why string) {
		t.Helper()
		clear(writes)
		if err := d.SavePoints(nil); err != nil {
			t.Fatal(err)
		}
		if writes[dirFile(syncPointFile)] != 1 || writes[dirFile(syncPointCopy)] != wantCopy {
			t.Errorf("%s: %v, want the copy %d times", why, writes, wantCopy)
		}
	}
	save(1, "a new log")
	save(0, "idle")
	for range 5 {
		fill(t, l, 7)
		d.syncer.runAll()
		save(0, "records and rolls only")
	}
	l.SetOptions(LogOptions{SegmentBytes: 1000, Policy: Replicated})
	save(1, "the policy")
	save(0, "idle")
	clear(writes)
	if err := l.AdvanceStart(3); err != nil || writes[dirFile(syncPointCopy)] != 1 {
		t.Errorf("a start: %v, %v", writes, err)
	}
	save(0, "idle")
	if err := l.TruncateTo(20); err != nil {
		t.Fatal(err)
	}
	save(0, "a cut wrote it already")
	if err := d.Close(CloseOptions{}); err != nil {
		t.Fatal(err)
	}
	if files := fsys.Files(); !bytes.Equal(files[dirFile(syncPointFile)], files[dirFile(syncPointCopy)]) {
		t.Error("file and copy differ after the end")
	}
}

// TestP19_AStartIsShownOnlyWhenItIsOnDisk: when the sync-point file or its copy cannot be written nobody sees the new start, whoever asked
// for it, and nothing that may still be read is gone.
func TestP19_AStartIsShownOnlyWhenItIsOnDisk(t *testing.T) {
	for _, file := range []string{syncPointFile, syncPointCopy} {
		for _, kind := range []systest.OpKind{systest.OpWrite, systest.OpSync, systest.OpRename} {
			for name, raise := range map[string]func(l *Log) (kafka.Offset, error){
				"retention": func(l *Log) (kafka.Offset, error) {
					return l.ApplyRetention(RetentionPolicy{Bytes: 1}, l.End(), testDay)
				},
				"deletion": func(l *Log) (kafka.Offset, error) { err := l.AdvanceStart(15); return l.Start(), err },
			} {
				fsys := systest.NewFS(1)
				d := newTestDir(t, fsys)
				l := openTestLog(t, d, smallLog)
				fill(t, l, 25)
				d.syncer.runAll()
				if err := d.SavePoints(nil); err != nil {
					t.Fatal(err)
				}
				failing := true
				fsys.Hook(func(op systest.Op) error {
					if failing && strings.HasSuffix(op.Name, file+tempSuffix) && op.Kind == kind {
						return systest.ErrNoSpace
					}
					return nil
				})
				start, err := raise(l)
				if err == nil || start != 0 || l.Start() != 0 {
					t.Errorf("%s, %s fails in %v: start %d, %d shown, %v", name, file, kind, start, l.Start(), err)
				}
				if _, err := readAll(l, 25, 1000); err != nil {
					t.Errorf("%s, %s fails in %v: %v", name, file, kind, err)
				}
				if _, err := readAll(openTestLog(t, openTestDir(t, fsys.Clone(systest.KillProcess)), smallLog), 25, 1000); err != nil {
					t.Errorf("%s, %s fails in %v, then a kill: %v", name, file, kind, err)
				}
				failing = false
				if start, err = raise(l); err != nil || start < 15 || l.Start() != start {
					t.Errorf("%s again: start %d, %v", name, start, err)
				}
				again := openTestLog(t, openTestDir(t, fsys.Crash(systest.LoseAll)), smallLog)
				if again.Start() != start || again.Damaged() != nil {
					t.Errorf("%s: start %d after a power cut, %d was shown; damaged: %v", name, again.Start(), start, again.Damaged())
				}
			}
		}
	}
}
