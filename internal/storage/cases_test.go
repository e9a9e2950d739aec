package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// TestC021_StoredMeansOnDisk: under `synced` nothing counts before its sync, and what counts survives a power cut.
func TestC021_StoredMeansOnDisk(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, LogOptions{SegmentBytes: 20_000})
	for i := range 300 {
		a := mustAppend(t, l, 0, testBatch(uint64(i), 1, 100, 0))
		if l.StoredEnd() >= a.End {
			t.Fatalf("offset %d counts as stored before any sync", a.Base)
		}
		if i%7 == 0 {
			d.syncer.runAll()
			if l.StoredEnd() != a.End {
				t.Fatalf("stored end %d after a sync, want %d", l.StoredEnd(), a.End)
			}
		}
	}
	stored := l.StoredEnd()
	want, err := readAll(l, stored, 5000)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []systest.CrashMode{systest.LoseAll, systest.Random, systest.KeepAll, systest.KillProcess} {
		l := openTestLog(t, openTestDir(t, fsys.Clone(mode)), LogOptions{SegmentBytes: 20_000})
		got, err := readAll(l, stored, 5000)
		if err != nil || string(got) != string(want) {
			t.Fatalf("%s: %d of %d acknowledged bytes: %v", mode, len(got), len(want), err)
		}
	}
}

// TestC031_FirstFailedSyncIsFinal: each kind of sync fails once and would then succeed, with its pages dropped. The log stops
// there, says so once, stays so after a restart of any kind, and is rebuilt by Reset.
func TestC031_FirstFailedSyncIsFinal(t *testing.T) {
	kinds := map[string]func(op systest.Op) bool{
		"segment":   func(op systest.Op) bool { return op.Kind == systest.OpSync && isSegmentName(op.Name) },
		"directory": func(op systest.Op) bool { return op.Kind == systest.OpSyncDir && op.Name == logDirName() },
		"meta": func(op systest.Op) bool {
			return op.Kind == systest.OpSync && hasSuffix(op.Name, metaSuffix+tempSuffix)
		},
	}
	for what, matches := range kinds {
		fsys := systest.NewFS(1)
		d := newTestDir(t, fsys)
		var told []error
		o := smallLog
		o.OnStored = func(_ kafka.Offset, err error) {
			if err != nil {
				told = append(told, err)
			}
		}
		l := openTestLog(t, d, o)
		failed := false
		fsys.Hook(func(op systest.Op) error {
			if !failed && matches(op) {
				failed = true
				return syscall.EIO
			}
			return nil
		})
		fill(t, l, 5) // fits one segment
		if what == "meta" {
			fill(t, l, 8)
		}
		before := l.StoredEnd()
		d.syncer.runAll()
		if !failed || len(told) != 1 || !errors.Is(told[0], ErrSyncFailed) {
			t.Fatalf("%s: failed %t, told %v", what, failed, told)
		}
		if _, err := l.Append(0, testBatch(1, 1, 10, 0), testDay); !errors.Is(err, ErrSyncFailed) {
			t.Fatalf("%s: append after a failed sync: %v", what, err)
		}
		wantErr(t, l.Sync(), ErrSyncFailed)
		d.syncer.runAll()
		if l.StoredEnd() != before || !isCorrupt(l.Damaged()) {
			t.Fatalf("%s: stored end %d after a failed sync, was %d; damaged %v", what, l.StoredEnd(), before, l.Damaged())
		}
		for _, mode := range []systest.CrashMode{systest.LoseAll, systest.KillProcess} {
			d := newTestDir(t, fsys.Clone(mode))
			l := openTestLog(t, d, smallLog)
			if l.Damaged() == nil || !l.Recovered().Unclean {
				t.Fatalf("%s, %s: forgotten after a restart", what, mode)
			}
			if err := l.Reset(7); err != nil || l.Damaged() != nil {
				t.Fatalf("%s, %s: reset: %v, damaged %v", what, mode, err, l.Damaged())
			}
			mustAppend(t, l, 3, testBatch(1, 1, 10, 0))
			d.syncer.runAll()
			if l.StoredEnd() != 8 {
				t.Fatalf("%s, %s: rebuilt log stored %d", what, mode, l.StoredEnd())
			}
		}
	}
}

func isSegmentName(name string) bool { return hasSuffix(name, logSuffix) }

func hasSuffix(s, suffix string) bool {
	return len(s) > len(suffix) && s[len(s)-len(suffix):] == suffix
}

func logDirName() string { return logFile("") }

// TestC043_FutureTimestampsDoNotBlockRetention: ages count from the append time, whatever the client's clock said.
func TestC043_FutureTimestampsDoNotBlockRetention(t *testing.T) {
	d := newTestDir(t, systest.NewFS(1))
	l := openTestLog(t, d, smallLog)
	future := testDay.AddDate(1, 0, 0).UnixMilli()
	for i := range 12 {
		if _, err := l.Append(0, testBatch(uint64(i), 1, 200, future), testDay); err != nil {
			t.Fatal(err)
		}
	}
	d.syncer.runAll()
	policy := RetentionPolicy{Age: time.Hour}
	if start, err := l.ApplyRetention(policy, l.End(), testDay.Add(59*time.Minute)); err != nil || start != 0 {
		t.Fatalf("too early: start %d, %v", start, err)
	}
	start, err := l.ApplyRetention(policy, l.End(), testDay.Add(61*time.Minute))
	if err != nil || start != 12 {
		t.Fatalf("on time: start %d, %v; want 12", start, err)
	}
}

// TestC048_ProducerStateOutlivesItsSegments: deleting all records keeps a producer's sequences, also over a restart of any kind.
func TestC048_ProducerStateOutlivesItsSegments(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, smallLog)
	for i := range 5 {
		mustAppend(t, l, 0, producerBatch(42, 0, int32(i), 1))
	}
	fill(t, l, 20) // others, so that the segments with the producer's batches are sealed and go
	d.syncer.runAll()
	if err := l.AdvanceStart(l.End()); err != nil {
		t.Fatal(err)
	}
	check := func(l *Log, when string) {
		t.Helper()
		if l.mu.segments[0].base < 5 {
			t.Fatalf("%s: the producer's segments are still there", when)
		}
		c, err := l.CheckSequence(producerBatch(42, 0, 4, 1), testDay)
		if err != nil || !c.Duplicate || c.Base != 4 || c.End != 5 {
			t.Fatalf("%s: retry of sequence 4: %+v, %v", when, c, err)
		}
		if c, err := l.CheckSequence(producerBatch(42, 0, 5, 1), testDay); err != nil || c.Duplicate {
			t.Fatalf("%s: sequence 5: %+v, %v", when, c, err)
		}
	}
	check(l, "at once")
	for _, mode := range []systest.CrashMode{systest.LoseAll, systest.KillProcess} {
		check(openTestLog(t, openTestDir(t, fsys.Clone(mode)), smallLog), mode.String())
	}
	closeClean(t, d)
	check(openTestLog(t, newTestDir(t, fsys), smallLog), "clean restart")
}

// TestC067_RetryOfTheLastFiveBatches: a retry of any of them, also after kill -9 between append and answer, is answered with the
// original offset; an older one is out of order.
func TestC067_RetryOfTheLastFiveBatches(t *testing.T) {
	for n := 1; n <= 12; n++ {
		fsys := systest.NewFS(uint64(n))
		d := newTestDir(t, fsys)
		l := openTestLog(t, d, smallLog)
		for i := range n {
			mustAppend(t, l, 0, producerBatch(1, 0, int32(2*i), 2))
		}
		for _, l := range []*Log{l, openTestLog(t, openTestDir(t, fsys.Clone(systest.KillProcess)), smallLog)} {
			for i := range n {
				c, err := l.CheckSequence(producerBatch(1, 0, int32(2*i), 2), testDay)
				if i >= n-producerBatchesMax {
					if err != nil || !c.Duplicate || c.Base != kafka.Offset(2*i) || c.End != kafka.Offset(2*i+2) || c.TimestampMs != -1 {
						t.Fatalf("retry of batch %d of %d: %+v, %v", i, n, c, err)
					}
				} else if !errors.Is(err, ErrOutOfOrderSequence) {
					t.Fatalf("retry of batch %d of %d: %v", i, n, err)
				}
			}
		}
	}
}

// TestC069_SequenceWraps: sequences go on from MaxInt32 with 0, and retries across the wrap are recognised.
func TestC069_SequenceWraps(t *testing.T) {
	d := newTestDir(t, systest.NewFS(1))
	l := openTestLog(t, d, LogOptions{})
	sequence := int32(2147483640)
	var sent []record.Batch
	for range 4 {
		b := producerBatch(1, 0, sequence, 10)
		if c, err := l.CheckSequence(b, testDay); err != nil || c.Duplicate {
			t.Fatalf("sequence %d: %+v, %v", sequence, c, err)
		}
		mustAppend(t, l, 0, b)
		sent = append(sent, b)
		sequence = sequenceAfter(sequence, 10)
	}
	if sequence != 32 {
		t.Fatalf("next sequence %d, want 32", sequence)
	}
	for i, b := range sent {
		if c, err := l.CheckSequence(b, testDay); err != nil || !c.Duplicate || c.Base != kafka.Offset(10*i) {
			t.Fatalf("retry %d: %+v, %v", i, c, err)
		}
	}
	if sent[0].BaseSequence() != math.MaxInt32-7 || sent[0].LastSequence() != 1+1 && sent[0].LastSequence() != 1 {
		t.Fatalf("sequences %d to %d", sent[0].BaseSequence(), sent[0].LastSequence())
	}
}

// TestI12_SequenceRules is protocol.md 3.10, rule by rule.
func TestI12_SequenceRules(t *testing.T) {
	l := openTestLog(t, newTestDir(t, systest.NewFS(1)), LogOptions{ProducerExpiry: time.Hour})
	for i := range 3 {
		mustAppend(t, l, 0, producerBatch(1, 5, int32(i), 1))
	}
	later := testDay.Add(2 * time.Hour)
	cases := []struct {
		what     string
		id       kafka.ProducerID
		epoch    kafka.ProducerEpoch
		sequence int32
		count    int
		now      time.Time
		dup      bool
		err      error
	}{
		{"duplicate", 1, 5, 1, 1, testDay, true, nil},
		{"same first sequence, other length", 1, 5, 1, 2, testDay, false, ErrOutOfOrderSequence},
		{"next", 1, 5, 3, 4, testDay, false, nil},
		{"gap", 1, 5, 4, 1, testDay, false, ErrOutOfOrderSequence},
		{"older epoch", 1, 4, 3, 1, testDay, false, ErrProducerFenced},
		{"older epoch, known sequence", 1, 4, 1, 1, testDay, false, ErrProducerFenced},
		{"newer epoch from 0", 1, 6, 0, 1, testDay, false, nil},
		{"newer epoch not from 0", 1, 6, 3, 1, testDay, false, ErrOutOfOrderSequence},
		{"unknown producer, any sequence", 2, 0, 77, 1, testDay, false, nil},
		{"expired producer, any sequence", 1, 5, 77, 1, later, false, nil},
		{"no producer", -1, -1, -1, 1, testDay, false, nil},
	}
	for _, c := range cases {
		got, err := l.CheckSequence(producerBatch(c.id, c.epoch, c.sequence, c.count), c.now)
		if !errors.Is(err, c.err) || (err != nil) != (c.err != nil) || got.Duplicate != c.dup {
			t.Errorf("%s: %+v, %v; want duplicate %t, %v", c.what, got, err, c.dup, c.err)
		}
	}
	mustAppend(t, l, 0, producerBatch(1, 6, 0, 1))
	if _, err := l.CheckSequence(producerBatch(1, 5, 2, 1), testDay); !errors.Is(err, ErrProducerFenced) {
		t.Errorf("retry of the old epoch after a bump: %v", err)
	}
}

// TestI9_MinimumAgeBeatsEveryLimit: size and age limits remove nothing that is younger than the minimum retention.
func TestI9_MinimumAgeBeatsEveryLimit(t *testing.T) {
	d := newTestDir(t, systest.NewFS(1))
	l := openTestLog(t, d, smallLog)
	for i := range 40 { // one batch an hour, 4 to a segment
		if _, err := l.Append(0, testBatch(uint64(i), 1, 150, 0), testDay.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	d.syncer.runAll()
	now := testDay.Add(40 * time.Hour)
	for _, minimum := range []time.Duration{100 * time.Hour, 30 * time.Hour, 10 * time.Hour, 0} {
		p := RetentionPolicy{Age: time.Minute, Bytes: 1, MinimumAge: minimum}
		start, err := l.ApplyRetention(p, l.End(), now)
		if err != nil {
			t.Fatal(err)
		}
		if start > 0 {
			if youngest := now.Sub(testDay.Add(time.Duration(start-1) * time.Hour)); youngest < minimum {
				t.Fatalf("minimum %s: a record of age %s was removed", minimum, youngest)
			}
		}
		if minimum == 0 && start != 40 || minimum == 100*time.Hour && start != 0 {
			t.Fatalf("minimum %s: start %d", minimum, start)
		}
	}
}

// TestI9_LostMetaNeverShortensALife: without .meta the file's modification time decides, and a time that cannot be had keeps the
// segment.
func TestI9_LostMetaNeverShortensALife(t *testing.T) {
	disk, _ := harmedDisk(t)
	if err := disk.Remove(logFile("00000000000000000000.meta")); err != nil {
		t.Fatal(err)
	}
	written := testDay.Add(24 * time.Hour)
	if err := disk.SetModTime(logFile("00000000000000000000.log"), written); err != nil {
		t.Fatal(err)
	}
	l := openTestLog(t, newTestDir(t, disk), LogOptions{SegmentBytes: 900})
	p := RetentionPolicy{Age: time.Hour}
	if start, err := l.ApplyRetention(p, 18, testDay.Add(24*time.Hour)); err != nil || start != 0 {
		t.Fatalf("start %d, %v, want 0", start, err)
	}
	if start, err := l.ApplyRetention(p, 18, written.Add(2*time.Hour)); err != nil || start != 18 {
		t.Fatalf("start %d, %v, want 18", start, err)
	}
}

// TestI11_FullDiskIsUndone: an append that meets ENOSPC leaves nothing behind, and goes through when there is room again.
func TestI11_FullDiskIsUndone(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, LogOptions{})
	fill(t, l, 3)
	d.syncer.runAll()
	for free := range int64(200) {
		fsys.SetFree(free)
		end := l.End()
		_, err := l.Append(0, testBatch(7, 1, 100, 0), testDay)
		if err != nil {
			wantErr(t, err, ErrNoSpace)
			if l.End() != end {
				t.Fatalf("free %d: end moved to %d", free, l.End())
			}
			continue
		}
		fsys.SetFree(-1)
	}
	fsys.SetFree(-1)
	mustAppend(t, l, 0, testBatch(8, 1, 100, 0))
	got, err := readAll(l, l.End(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	again := openTestLog(t, openTestDir(t, fsys.Crash(systest.KillProcess)), LogOptions{})
	if same, err := readAll(again, l.End(), 1000); err != nil || string(same) != string(got) || again.Recovered().Truncated != 0 {
		t.Fatalf("after a restart: %v, %d bytes cut", err, again.Recovered().Truncated)
	}
}

// TestI11_FullDiskIsNoFailedSync: a roll on a full disk fails by name, holds acknowledgements back, and heals.
func TestI11_FullDiskIsNoFailedSync(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, smallLog)
	fill(t, l, 5)
	d.syncer.runAll()
	full := true
	fsys.Hook(func(op systest.Op) error {
		if full && (op.Kind == systest.OpCreate || op.Kind == systest.OpWrite) && hasSuffix(op.Name, metaSuffix+tempSuffix) {
			return systest.ErrNoSpace
		}
		return nil
	})
	fill(t, l, 3) // rolls
	d.syncer.runAll()
	if l.Damaged() != nil || l.StoredEnd() >= l.End() {
		t.Fatalf("damaged %v, stored %d of %d", l.Damaged(), l.StoredEnd(), l.End())
	}
	wantErr(t, l.Sync(), ErrNoSpace)
	full = false
	if err := d.SavePoints(nil); err != nil {
		t.Fatal(err)
	}
	d.syncer.runAll()
	if l.StoredEnd() != l.End() {
		t.Fatalf("stored %d of %d when there is room again", l.StoredEnd(), l.End())
	}
}

// TestI4_ReplicatedIsUncleanAfterAPowerCut: only without a clean stop and under another boot id.
func TestI4_ReplicatedIsUncleanAfterAPowerCut(t *testing.T) {
	for _, policy := range []FlushPolicy{Synced, Replicated} {
		for _, mode := range []systest.CrashMode{systest.LoseAll, systest.KillProcess} {
			for _, clean := range []bool{false, true} {
				fsys := systest.NewFS(1)
				d := newTestDir(t, fsys)
				o := LogOptions{Policy: policy}
				l := openTestLog(t, d, o)
				fill(t, l, 3)
				if policy == Replicated && l.StoredEnd() != 0 {
					t.Fatal("counts as stored before the sync-point file says `replicated`")
				}
				if err := d.SavePoints(nil); err != nil {
					t.Fatal(err)
				}
				if policy == Replicated && l.StoredEnd() != 3 {
					t.Fatalf("stored end %d under replicated", l.StoredEnd())
				}
				if clean {
					closeClean(t, d)
				}
				l = openTestLog(t, openTestDir(t, fsys.Crash(mode)), o)
				want := policy == Replicated && mode == systest.LoseAll && !clean
				r := l.Recovered()
				if r.Unclean != want || r.SyncPointPolicy != policy {
					t.Errorf("%s, %s, clean %t: unclean %t, policy %s", policy, mode, clean, r.Unclean, r.SyncPointPolicy)
				}
			}
		}
	}
}

// TestI4_SyncedIsSaidOnlyAfterASync: a topic that changes from replicated to synced stays marked `replicated` until all it had
// reported is on disk.
func TestI4_SyncedIsSaidOnlyAfterASync(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, LogOptions{Policy: Replicated})
	if err := d.SavePoints(nil); err != nil {
		t.Fatal(err)
	}
	fill(t, l, 3)
	if l.StoredEnd() != 3 {
		t.Fatalf("stored end %d", l.StoredEnd())
	}
	l.SetOptions(LogOptions{Policy: Synced})
	policyAfterCrash := func() FlushPolicy {
		if err := d.save(); err != nil {
			t.Fatal(err)
		}
		return openTestLog(t, openTestDir(t, fsys.Clone(systest.LoseAll)), LogOptions{}).Recovered().SyncPointPolicy
	}
	if p := policyAfterCrash(); p != Replicated {
		t.Fatalf("policy %s before the sync", p)
	}
	d.syncer.runAll()
	if p := policyAfterCrash(); p != Synced {
		t.Fatalf("policy %s after the sync", p)
	}
}

// TestI10_DroppedAndQuarantined: DropLog deletes at once and for good, also over a crash in the middle; a quarantined log comes back
// whole.
func TestI10_DroppedAndQuarantined(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, smallLog)
	fill(t, l, 20)
	want, err := readAll(l, 20, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.QuarantineLog(testTP); err != nil {
		t.Fatal(err)
	}
	if tps, _ := d.PartitionDirs(); len(tps) != 0 {
		t.Fatalf("partitions %v after quarantine", tps)
	}
	if tps, _ := d.Quarantined(); len(tps) != 1 || tps[0] != testTP {
		t.Fatalf("quarantined %v", tps)
	}
	d = newTestDir(t, fsys.Crash(systest.LoseAll))
	fsys = d.fs.(*systest.FS)
	if err := d.RestoreQuarantined(testTP); err != nil {
		t.Fatal(err)
	}
	wantErr(t, d.RestoreQuarantined(testTP), ErrNotFound)
	l = openTestLog(t, d, smallLog)
	if got, err := readAll(l, 20, 1000); err != nil || string(got) != string(want) {
		t.Fatalf("restored: %d of %d bytes, %v", len(got), len(want), err)
	}
	d.syncer.runAll()
	for n := fsys.Ops() + 1; ; n++ {
		f := fsys.Clone(systest.KeepAll)
		f.CrashAt(n - fsys.Ops())
		d, err := tryTestDir(f)
		if err == nil {
			err = dropTestLog(d)
		}
		done := err == nil
		d = newTestDir(t, f.Crash(systest.LoseAll))
		l, err := d.OpenLog(testTP, smallLog)
		if err != nil {
			t.Fatal(err)
		}
		if l.End() != 0 && l.End() != 20 || l.Damaged() != nil && l.End() != 0 {
			t.Fatalf("crash at operation %d of dropping: half a log of %d, damaged %v", n, l.End(), l.Damaged())
		}
		if done {
			if l.End() != 0 {
				t.Fatal("a dropped log came back")
			}
			return
		}
	}
}

// TestIdentity_OnceAndForAll: a directory belongs to one cluster and node, keeps its id, and is locked while open.
func TestIdentity_OnceAndForAll(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	id := d.Identity()
	if id.ClusterID != "" || id.NodeID != kafka.NoNode || id.DirectoryID.IsZero() {
		t.Fatalf("young identity %+v", id)
	}
	if err := d.SetIdentity("c1", 3); err != nil {
		t.Fatal(err)
	}
	wantErr(t, d.SetIdentity("c2", 3), ErrWrongIdentity)
	wantErr(t, d.SetIdentity("c1", 4), ErrWrongIdentity)
	if _, err := tryTestDir(fsys); err == nil {
		t.Fatal("opened twice")
	}
	d = newTestDir(t, fsys.Crash(systest.LoseAll))
	want := Identity{ClusterID: "c1", NodeID: 3, DirectoryID: id.DirectoryID, FormatVersion: 1}
	if d.Identity() != want {
		t.Fatalf("identity %+v, want %+v", d.Identity(), want)
	}
}

// TestCleanShutdown_NeedsEveryLog: the marker is not written when a log was not opened, is damaged, or did not close well, and it
// speaks of one run only.
func TestCleanShutdown_NeedsEveryLog(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	other := kafka.TopicPartition{Topic: kafka.TopicID{9}, Partition: 0}
	if _, err := d.OpenLog(other, smallLog); err != nil {
		t.Fatal(err)
	}
	fill(t, openTestLog(t, d, smallLog), 3)
	closeClean(t, d)
	d = newTestDir(t, fsys)
	if epoch, clean := d.CleanShutdown(); !clean || epoch != 5 {
		t.Fatalf("clean %t, epoch %d", clean, epoch)
	}
	openTestLog(t, d, smallLog) // and not the other one
	closeClean(t, d)
	d = newTestDir(t, fsys)
	if _, clean := d.CleanShutdown(); clean {
		t.Fatal("clean although a log was never opened")
	}
}

// TestBootID_ReplacedOnlyWhenCommitted: until the registration that judged it is committed, the next start sees the same old boot id.
func TestBootID_ReplacedOnlyWhenCommitted(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	first := d.BootID()
	fsys = fsys.Crash(systest.LoseAll)
	for want := uint64(2); want < 4; want++ {
		d = openTestDir(t, fsys)
		if d.PreviousBootID() != first || d.BootID() == first || d.StartNumber() != want {
			t.Fatalf("previous boot %q, this %q, start %d", d.PreviousBootID(), d.BootID(), d.StartNumber())
		}
		fsys = fsys.Crash(systest.KillProcess)
	}
	if err := openTestDir(t, fsys).CommitBootID(); err != nil {
		t.Fatal(err)
	}
	if d = openTestDir(t, fsys.Crash(systest.KillProcess)); !d.sameBoot() {
		t.Fatal("the committed boot id is not the one found")
	}
}

// TestSync_RoundsAndCulprits: few files are synced one by one, many by one SyncAll; when that fails only the culprit's log fails, or
// every log of the round when nothing names one.
func TestSync_RoundsAndCulprits(t *testing.T) {
	for _, c := range []struct {
		what            string
		logs            int
		fault           error // of SyncAll
		hidden          bool
		failed, syncAll int
	}{
		{what: "one", logs: 1},
		{what: "eight", logs: 8},
		{what: "nine", logs: 9, syncAll: 1},
		{what: "unsupported", logs: 20, fault: errors.ErrUnsupported, syncAll: 1},
		{what: "culprit", logs: 20, fault: syscall.EIO, failed: 1, syncAll: 1},
		{what: "no culprit", logs: 20, fault: syscall.EIO, hidden: true, failed: 20, syncAll: 1},
	} {
		fsys := systest.NewFS(1)
		d := newTestDir(t, fsys)
		counted := &countedSyncAll{FS: fsys}
		d.fs = counted
		var logs []*Log
		for i := range c.logs {
			l, err := d.OpenLog(kafka.TopicPartition{Topic: kafka.TopicID{1}, Partition: int32(i)}, LogOptions{})
			if err != nil {
				t.Fatal(err)
			}
			fill(t, l, 1)
			logs = append(logs, l)
		}
		counted.unsupported = errors.Is(c.fault, errors.ErrUnsupported)
		if c.failed > 0 {
			culprit := logs[c.logs/2].mu.segments[0].path
			fsys.Hook(func(op systest.Op) error {
				if op.Kind == systest.OpSyncAll {
					return &systest.SyncFault{Name: culprit, Hidden: c.hidden, Err: c.fault}
				}
				return nil
			})
		}
		d.syncer.runAll()
		failed := 0
		for _, l := range logs {
			if l.Damaged() != nil {
				failed++
			} else if l.StoredEnd() != 1 {
				t.Errorf("%s: a log is neither stored nor failed", c.what)
			}
		}
		if failed != c.failed || counted.calls != c.syncAll {
			t.Errorf("%s: %d logs failed, %d SyncAlls; want %d and %d", c.what, failed, counted.calls, c.failed, c.syncAll)
		}
	}
}

// countedSyncAll counts SyncAll, or does not have it.
type countedSyncAll struct {
	*systest.FS
	calls       int
	unsupported bool
}

func (f *countedSyncAll) SyncAll(name string) error {
	f.calls++
	if f.unsupported {
		return errors.ErrUnsupported
	}
	return f.FS.SyncAll(name)
}

// TestReset_CrashAnywhere: a reset is whole or has not begun.
func TestReset_CrashAnywhere(t *testing.T) {
	for n := int64(1); ; n++ {
		fsys := systest.NewFS(uint64(n))
		d := newTestDir(t, fsys)
		l := openTestLog(t, d, smallLog)
		fill(t, l, 30)
		d.syncer.runAll()
		fsys.CrashAt(fsys.Ops() + n)
		err := l.Reset(1000)
		l = openTestLog(t, openTestDir(t, fsys.Crash(systest.Random)), smallLog)
		old := l.Start() == 0 && l.End() == 30
		anew := l.Start() == 1000 && l.End() == 1000 && l.Size() == 0
		if l.Damaged() != nil || !(anew || old && err != nil) {
			t.Fatalf("crash at operation %d: [%d, %d) damaged %v, reset said %v", n, l.Start(), l.End(), l.Damaged(), err)
		}
		if err == nil {
			return
		}
	}
}

// TestDump_AndVerify: a good log verifies; damage is named with file and position.
func TestDump_AndVerify(t *testing.T) {
	disk, _ := harmedDisk(t)
	dir := logDirName()
	r, err := VerifyLog(disk, dir)
	if err != nil || len(r.Problems) > 0 || r.Batches != 18 || r.Start != 0 || r.End != 18 || r.Segments != 4 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := disk.FlipBit(logFile("00000000000000000005.log"), 100, 0); err != nil {
		t.Fatal(err)
	}
	if err := disk.Cut(logFile("00000000000000000015.log"), 150); err != nil {
		t.Fatal(err)
	}
	if err := disk.Zero(logFile("00000000000000000000.meta"), 0, 20); err != nil {
		t.Fatal(err)
	}
	r, err = VerifyLog(disk, dir)
	if err != nil || len(r.Problems) != 4 {
		for _, p := range r.Problems {
			t.Log(p)
		}
		t.Fatalf("%d problems, %v; want checksum, short batch, meta, index", len(r.Problems), err)
	}
	stop := errors.New("stop")
	n := 0
	if err := DumpLog(disk, dir, func(DumpedBatch) error { n++; return stop }); !errors.Is(err, stop) || n != 1 {
		t.Fatalf("dump went on: %d calls, %v", n, err)
	}
	_, err = VerifyLog(disk, testRoot)
	wantErr(t, err, ErrNotFound)
	_, err = VerifyLog(disk, "/nowhere")
	wantErr(t, err, fs.ErrNotExist)
}

// TestAppend_RefusesWhatDoesNotContinue lists the appends that change nothing.
func TestAppend_RefusesWhatDoesNotContinue(t *testing.T) {
	l := openTestLog(t, newTestDir(t, systest.NewFS(1)), smallLog)
	mustAppend(t, l, 5, testBatch(1, 2, 10, 0))
	at := func(base kafka.Offset, epoch kafka.LeaderEpoch) record.Batch {
		b := testBatch(2, 1, 10, 0)
		b.SetBaseOffset(base)
		b.SetLeaderEpoch(epoch)
		return b
	}
	flipped := at(2, 5)
	flipped[70] ^= 1
	for what, c := range map[string]struct {
		bytes []byte
		err   error
	}{
		"gap": {at(3, 5), ErrInvalidAppend}, "overlap": {at(1, 5), ErrInvalidAppend}, "older epoch": {at(2, 4), ErrInvalidAppend},
		"gap inside": {append(at(2, 5), at(4, 5)...), ErrInvalidAppend}, "bad checksum": {flipped, nil}, "cut off": {at(2, 5)[:70], nil},
	} {
		end, err := l.AppendReplicated(c.bytes, testDay)
		if end != 2 || err == nil || (c.err != nil && !errors.Is(err, c.err)) || (c.err == nil && !isCorrupt(err)) {
			t.Errorf("%s: end %d, %v", what, end, err)
		}
	}
	if l.Damaged() != nil {
		t.Fatalf("bytes that were refused damaged the log: %v", l.Damaged())
	}
	_, err := l.Append(4, testBatch(1, 1, 10, 0), testDay)
	wantErr(t, err, ErrInvalidAppend)
	_, err = l.Append(5, testBatch(1, 1, 2000, 0), testDay)
	wantErr(t, err, ErrTooLarge)
	wantErr(t, l.AssignEpoch(4), ErrInvalidAppend)
	if _, err := l.Read(3, 10, ReadLimits{MaxBytes: 100}, nil); !errors.Is(err, ErrOutOfRange) {
		t.Errorf("read above the end: %v", err)
	}
	if got, err := l.Read(2, 10, ReadLimits{MaxBytes: 100}, nil); err != nil || len(got) != 0 {
		t.Errorf("read at the end: %d bytes, %v", len(got), err)
	}
	wantErr(t, l.AdvanceStart(3), ErrOutOfRange)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = l.Append(5, testBatch(1, 1, 10, 0), testDay)
	wantErr(t, err, ErrClosed)
}

// TestRead_Limits: whole batches within MaxBytes, one oversize batch if asked for, nothing that crosses the upper bound.
func TestRead_Limits(t *testing.T) {
	l := openTestLog(t, newTestDir(t, systest.NewFS(1)), LogOptions{SegmentBytes: 1000})
	sizes := []int{}
	for i := range 10 {
		b := testBatch(uint64(i), 2, 100, 0)
		sizes = append(sizes, len(b))
		mustAppend(t, l, 0, b)
	}
	read := func(from, upper kafka.Offset, max int, one bool) int {
		t.Helper()
		got, err := l.Read(from, upper, ReadLimits{MaxBytes: max, AtLeastOne: one}, []byte("head"))
		if err != nil || string(got[:4]) != "head" {
			t.Fatalf("read(%d, %d, %d, %t): %v", from, upper, max, one, err)
		}
		return len(got) - 4
	}
	all := sizes[0] * 10
	for _, c := range []struct {
		from, upper kafka.Offset
		max         int
		one         bool
		want        int
	}{
		{0, 20, 1 << 20, false, all}, {0, 20, all - 1, false, all - sizes[0]}, {0, 20, 1, false, 0}, {0, 20, 1, true, sizes[0]},
		{1, 20, 1, true, sizes[0]}, {0, 3, 1 << 20, true, sizes[0]}, {0, 1, 1 << 20, true, 0}, {5, 5, 100, true, 0}, {19, 20, 0, true, sizes[0]},
	} {
		if got := read(c.from, c.upper, c.max, c.one); got != c.want {
			t.Errorf("read(%d, %d, %d, %t) = %d bytes, want %d", c.from, c.upper, c.max, c.one, got, c.want)
		}
	}
	if n := l.SizeBetween(0, 20); n != int64(all) {
		t.Errorf("size %d, want %d", n, all)
	}
	if n := l.SizeBetween(19, 20); n < 1 || n > int64(all) {
		t.Errorf("size of the tail %d", n)
	}
}

// TestSegments_LazyHandles: idle files are closed, and reopened when read.
func TestSegments_LazyHandles(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, smallLog)
	fill(t, l, 50)
	d.syncer.runAll()
	for range idleSweeps + 1 {
		if err := d.SavePoints(nil); err != nil {
			t.Fatal(err)
		}
		d.syncer.runAll()
	}
	if n := d.openFiles.Load(); n != 0 {
		t.Fatalf("%d segment files open when idle", n)
	}
	if _, err := readAll(l, 50, 500); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, 0, testBatch(1, 1, 10, 0))
}

// TestSyncer_WakesWaitersInTheBackground runs the real goroutines once.
func TestSyncer_WakesWaitersInTheBackground(t *testing.T) {
	fsys := systest.NewFS(1)
	d, err := OpenDir(DirOptions{Machine: systest.Machine(fsys, nil, nil), Path: testRoot})
	if err != nil {
		t.Fatal(err)
	}
	stored := make(chan kafka.Offset, 100)
	o := smallLog
	o.OnStored = func(end kafka.Offset, err error) {
		if err != nil {
			panic(fmt.Sprint("sync failed: ", err))
		}
		stored <- end
	}
	l := openTestLog(t, d, o)
	for i := range 100 {
		a := mustAppend(t, l, 0, testBatch(uint64(i), 1, 100, 0))
		for end := range stored {
			if end >= a.End {
				break
			}
		}
	}
	if err := d.Close(CloseOptions{Clean: true}); err != nil {
		t.Fatal(err)
	}
	d = newTestDir(t, fsys)
	if l := openTestLog(t, d, smallLog); l.End() != 100 || l.StoredEnd() != 100 {
		t.Fatalf("end %d, stored %d", l.End(), l.StoredEnd())
	}
}

// TestTruncate_ThroughTheStart: cutting the batch that the log start lies in leaves an empty log at its start, not one that ends
// below it.
func TestTruncate_ThroughTheStart(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, smallLog)
	mustAppend(t, l, 0, producerBatch(1, 0, 0, 1))
	mustAppend(t, l, 0, testBatch(1, 3, 10, 0))
	if err := errors.Join(l.AdvanceStart(3), l.TruncateTo(3)); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if l.Start() != 3 || l.End() != 3 || len(l.Producers()) != 1 {
			t.Fatalf("start %d: log [%d, %d), producers %+v", i, l.Start(), l.End(), l.Producers())
		}
		d.syncer.runAll()
		d = newTestDir(t, fsys.Crash(systest.LoseAll))
		fsys = d.fs.(*systest.FS)
		l = openTestLog(t, d, smallLog)
	}
	if a := mustAppend(t, l, 1, testBatch(1, 1, 10, 0)); a.Base != 3 {
		t.Fatalf("appended at %d", a.Base)
	}
}

// TestRealDisk_RoundTrip runs the whole path once on the machine's own file system (with -tags fault: on the one that loses what
// was not synced).
func TestRealDisk_RoundTrip(t *testing.T) {
	o := DirOptions{Machine: sys.Real(), Path: filepath.Join(t.TempDir(), "data"), Metrics: testMetrics}
	var want []byte
	for round := range kafka.Offset(3) {
		d, err := OpenDir(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := OpenDir(o); !errors.Is(err, sys.ErrLocked) {
			t.Fatalf("opened twice: %v", err)
		}
		l := openTestLog(t, d, smallLog)
		if got, err := readAll(l, l.End(), 700); err != nil || string(got) != string(want) || l.End() != 30*round {
			t.Fatalf("start %d: read %d of %d bytes, end %d, %v", round, len(got), len(want), l.End(), err)
		}
		fill(t, l, 30)
		if want, err = readAll(l, l.End(), 700); err != nil {
			t.Fatal(err)
		}
		closeClean(t, d)
	}
	if r, err := VerifyLog(o.Machine.FS, filepath.Join(o.Path, topicsDir, testTP.String())); err != nil || len(r.Problems) > 0 || r.Batches != 90 {
		t.Fatalf("%+v, %v", r, err)
	}
}
