package storage

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys/systest"
)

// compactible is a log whose segments hold one to some batches.
var compactible = LogOptions{SegmentBytes: 600, IndexInterval: 1}

// keyed is a batch of one record; a nil value makes it a tombstone.
func keyed(key string, value []byte, ts int64) record.Batch {
	bu := record.NewBuilder(record.None)
	bu.Add(ts, []byte(key), value, nil)
	return bu.Build()
}

// newCompactible writes n records of k keys, seals all but the last segment, and has them on disk.
func newCompactible(t testing.TB, n, k int) (*systest.FS, *Dir, *Log) {
	t.Helper()
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, compactible)
	for i := range n {
		mustAppend(t, l, kafka.LeaderEpoch(i/10), keyed(fmt.Sprintf("k%d", i%k), fmt.Appendf(nil, "value %d", i), testDay.UnixMilli()+int64(i)))
	}
	d.syncer.runAll()
	return fsys, d, l
}

func mustCompact(t testing.TB, l *Log, p CompactionPolicy, now time.Time) Compaction {
	t.Helper()
	if p.Upper == 0 {
		p.Upper = l.End()
	}
	done, err := l.Compact(t.Context(), p, now)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func mustRecords(t testing.TB, l *Log) []flatRecord {
	t.Helper()
	got, err := readAll(l, l.End(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return recordsOf(splitAll(got))
}

// seal begins a new segment, so that everything so far may be compacted.
func seal(t testing.TB, d *Dir, l *Log) {
	t.Helper()
	l.mu.Lock()
	err := l.rollLocked()
	l.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	d.syncer.runAll()
}

// TestR59_CompactionKeepsTheNewestOfEachKey, at its offset, in few segments, and the log goes on as before: also after a restart.
func TestR59_CompactionKeepsTheNewestOfEachKey(t *testing.T) {
	fsys, d, l := newCompactible(t, 200, 7)
	seal(t, d, l)
	segments, size := len(l.mu.segments), l.Size()
	done := mustCompact(t, l, CompactionPolicy{Merge: true, TombstoneRetention: time.Hour}, testDay)
	if !done.Ran || done.More || done.UpTo != 200 || done.Records != 193 {
		t.Fatalf("%+v", done)
	}
	if len(l.mu.segments) >= segments/2 || l.Size() >= size/2 {
		t.Fatalf("%d bytes in %d segments, before %d in %d", l.Size(), len(l.mu.segments), size, segments)
	}
	check := func(l *Log) {
		t.Helper()
		got := mustRecords(t, l)
		if len(got) != 7 || got[0].offset != 193 || string(got[6].value) != "value 199" || l.End() != 200 || l.Start() != 0 {
			t.Fatalf("%d records of [%d, %d), the first %+v", len(got), l.Start(), l.End(), got[0])
		}
		for off := range kafka.Offset(200) {
			if e := l.EpochAt(off); e != kafka.LeaderEpoch(off/10) {
				t.Fatalf("epoch %d at %d", e, off)
			}
		}
		if at, ok, err := l.OffsetForTime(testDay.UnixMilli(), 200); err != nil || !ok || at.Offset != 193 {
			t.Fatalf("the first record is at %+v, %v, %v", at, ok, err)
		}
		if at, ok, err := l.MaxTimestamp(200); err != nil || !ok || at.Offset != 199 {
			t.Fatalf("the newest record is at %+v, %v, %v", at, ok, err)
		}
	}
	check(l)
	if done := mustCompact(t, l, CompactionPolicy{Merge: true}, testDay); done.Ran {
		t.Fatalf("a second pass with nothing to do: %+v", done)
	}
	closeClean(t, d)
	d = newTestDir(t, fsys)
	l = openTestLog(t, d, compactible)
	check(l)
	if done := mustCompact(t, l, CompactionPolicy{Merge: true, MinDirtyRatio: 0.5}, testDay); done.Ran {
		t.Fatalf("a pass after a restart with nothing to do: %+v", done)
	}
}

// TestCompaction_TouchesOnlyWhatItMay: nothing above the high watermark, in the active segment or younger than the minimum age goes or
// supersedes anything, and nothing happens below the dirty ratio.
func TestCompaction_TouchesOnlyWhatItMay(t *testing.T) {
	for _, c := range []struct {
		name string
		p    CompactionPolicy
		now  time.Time
		ran  bool
		upTo kafka.Offset // at most
	}{
		{"all", CompactionPolicy{}, testDay, true, 99},
		{"watermark", CompactionPolicy{Upper: 50}, testDay, true, 50},
		{"too young", CompactionPolicy{MinAge: time.Minute}, testDay.Add(59 * time.Second), false, 0},
		{"old enough", CompactionPolicy{MinAge: time.Minute}, testDay.Add(60 * time.Second), true, 99},
		{"ratio", CompactionPolicy{MinDirtyRatio: 1}, testDay, true, 99},
		{"nothing committed", CompactionPolicy{Upper: 1}, testDay, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, l := newCompactible(t, 100, 3)
			active := l.activeLocked().base
			done := mustCompact(t, l, c.p, c.now)
			if done.Ran != c.ran || done.UpTo > c.upTo || done.UpTo > active {
				t.Fatalf("%+v; the active segment begins at %d", done, active)
			}
			want := 100 - int(done.UpTo)
			if done.Ran {
				want += 3 // the newest of each key
			}
			if got := mustRecords(t, l); len(got) != want {
				t.Fatalf("%d records are left, want %d", len(got), want)
			}
		})
	}
}

// TestCompaction_IsDueByRatioOrAge: a second pass waits until the new part is large enough, or old enough.
func TestCompaction_IsDueByRatioOrAge(t *testing.T) {
	_, d, l := newCompactible(t, 100, 40)
	seal(t, d, l)
	mustCompact(t, l, CompactionPolicy{}, testDay)
	mustAppend(t, l, 10, keyed("k1", []byte("new"), 1))
	seal(t, d, l)
	if done := mustCompact(t, l, CompactionPolicy{MinDirtyRatio: 0.5, MaxAge: time.Hour}, testDay); done.Ran {
		t.Fatalf("below the ratio: %+v", done)
	}
	if done := mustCompact(t, l, CompactionPolicy{MinDirtyRatio: 0.5, MaxAge: time.Hour}, testDay.Add(time.Hour)); !done.Ran || done.Records != 1 {
		t.Fatalf("at the maximum age: %+v", done)
	}
	mustAppend(t, l, 10, keyed("k2", []byte("new"), 1))
	d.syncer.runAll()
	end := l.End()
	mustCompact(t, l, CompactionPolicy{MinDirtyRatio: 0.5, MaxAge: time.Hour}, testDay.Add(time.Hour))
	if base := l.activeLocked().base; base != end {
		t.Fatalf("the active segment begins at %d: it holds records of the maximum age", base)
	}
}

// TestC044_TombstoneStaysForItsRetention, counted from when it became clean: records far in the future and many passes change nothing. Then
// it goes without anything new being written.
func TestC044_TombstoneStaysForItsRetention(t *testing.T) {
	const retention = time.Hour
	fsys, d, l := newCompactible(t, 10, 2)
	mustAppend(t, l, 1, keyed("k0", nil, testDay.Add(1000*time.Hour).UnixMilli()))
	mustAppend(t, l, 1, keyed("k9", []byte("far ahead"), testDay.Add(100000*time.Hour).UnixMilli()))
	seal(t, d, l)
	p := CompactionPolicy{Merge: true, TombstoneRetention: retention}
	tombstone := func() bool {
		for _, r := range mustRecords(t, l) {
			if r.value == nil {
				return true
			}
		}
		return false
	}
	now := testDay.Add(10 * time.Hour)
	for range 5 {
		mustCompact(t, l, p, now)
		mustAppend(t, l, 1, keyed("k8", []byte("more"), 1))
		seal(t, d, l)
		if now = now.Add(retention / 6); !tombstone() {
			t.Fatal("C044: a tombstone is gone within its retention")
		}
	}
	closeClean(t, d)
	d = newTestDir(t, fsys)
	l = openTestLog(t, d, compactible)
	mustCompact(t, l, p, testDay.Add(11*time.Hour-time.Millisecond))
	if !tombstone() {
		t.Fatal("C044: a tombstone is gone before its retention")
	}
	if done := mustCompact(t, l, p, testDay.Add(11*time.Hour)); !done.Ran || done.Tombstones != 1 || tombstone() {
		t.Fatalf("the tombstone stays: %+v", done)
	}
	if done := mustCompact(t, l, p, testDay.Add(99*time.Hour)); done.Ran {
		t.Fatalf("a pass with nothing to do: %+v", done)
	}
}

// TestC047_EachPassAdvances with a map of 8 keys over 1,000, in large batches and over what earlier passes left, and then comes to rest.
func TestC047_EachPassAdvances(t *testing.T) {
	d := newTestDir(t, systest.NewFS(1))
	l := openTestLog(t, d, LogOptions{SegmentBytes: 1 << 20, IndexInterval: 1})
	for round := range 2 {
		bu := record.NewBuilder(record.Zstd)
		for i := range 1000 {
			bu.Add(1, fmt.Appendf(nil, "k%d", i), fmt.Appendf(nil, "%d", round), nil)
		}
		mustAppend(t, l, 0, bu.Build())
		seal(t, d, l)
	}
	var at kafka.Offset
	passes := 0
	for ; passes < 1000; passes++ {
		done := mustCompact(t, l, CompactionPolicy{KeysMax: 8}, testDay)
		if !done.Ran || done.From != at || done.UpTo <= at {
			t.Fatalf("pass %d from %d: %+v", passes, at, done)
		}
		if at = done.UpTo; !done.More {
			break
		}
	}
	if got := mustRecords(t, l); at != 2000 || passes != 249 || len(got) != 1000 || string(got[0].value) != "1" {
		t.Fatalf("after %d passes at %d: %d records", passes, at, len(got))
	}
}

// TestI12_CompactionKeepsWhatProducersMayRepeat: with all caches lost, the state of producers comes back from the compacted log.
func TestI12_CompactionKeepsWhatProducersMayRepeat(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, compactible)
	for i := range int32(20) {
		b := keyed("the same", []byte("value"), 1)
		if i%2 == 1 {
			b.SetAppendTime(77)
		}
		b.SetProducer(7, 3, i, false)
		mustAppend(t, l, 0, b)
	}
	mustAppend(t, l, 0, keyed("the same", []byte("newest"), 1))
	seal(t, d, l)
	if done := mustCompact(t, l, CompactionPolicy{Merge: true}, testDay); done.Records != 20 {
		t.Fatalf("%+v", done)
	}
	want := l.Producers()
	closeClean(t, d)
	for _, f := range mustList(t, fsys) {
		if strings.HasSuffix(f, producersSuffix) || strings.HasSuffix(f, indexSuffix) || f == epochsFile {
			if err := fsys.Remove(logFile(f)); err != nil {
				t.Fatal(err)
			}
		}
	}
	l = openTestLog(t, newTestDir(t, fsys), compactible)
	got := l.Producers()
	if len(got) != 1 || fmt.Sprint(got[0].Batches) != fmt.Sprint(want[0].Batches) || len(got[0].Batches) != producerBatchesMax {
		t.Fatalf("producers %+v, want %+v", got, want)
	}
}

func mustList(t testing.TB, fsys *systest.FS) (names []string) {
	t.Helper()
	list, err := fsys.ReadDir(filepath.Dir(logFile("x")))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name)
	}
	return names
}

// TestCompaction_KeepsWhatTransactionsWrote: markers stay, and so do records of transactions, which may have been aborted: they neither supersede nor
// are superseded, whatever their keys are.
func TestCompaction_KeepsWhatTransactionsWrote(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, compactible)
	transactional := func(value string, sequence int32) record.Batch {
		b := keyed("k", []byte(value), testDay.UnixMilli())
		b.SetProducer(7, 0, sequence, true)
		return b
	}
	marker := func(transactional bool) record.Batch {
		b := keyed("\x00\x00\x00\x01", []byte("commit"), testDay.UnixMilli())
		b[22] |= 0x20 // the low byte of the attributes: a control batch
		b.SetProducer(7, 0, -1, transactional)
		return b
	}
	mustAppend(t, l, 0, keyed("k", []byte("first"), 1))
	mustAppend(t, l, 0, transactional("in a transaction", 0))
	mustAppend(t, l, 0, marker(true))
	mustAppend(t, l, 0, keyed("k", []byte("second"), 1))
	mustAppend(t, l, 0, transactional("in another", 1))
	mustAppend(t, l, 0, marker(true))
	mustAppend(t, l, 0, marker(false))
	mustAppend(t, l, 0, marker(false))
	mustAppend(t, l, 0, keyed("k", []byte("newest"), 1))
	seal(t, d, l)
	check := func(l *Log) {
		t.Helper()
		var values, markers []string
		for _, r := range mustRecords(t, l) {
			values = append(values, string(r.value))
		}
		raw, err := readAll(l, l.End(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range splitAll(raw) {
			if b.IsControl() {
				markers = append(markers, fmt.Sprint(b.BaseOffset(), b.ProducerID(), b.VerifyCRC()))
			}
		}
		if got := strings.Join(values, ", "); got != "in a transaction, commit, in another, commit, commit, commit, newest" ||
			fmt.Sprint(markers) != "[2 7 <nil> 5 7 <nil> 6 7 <nil> 7 7 <nil>]" {
			t.Fatalf("the log has %q, markers %v", got, markers)
		}
	}
	if done := mustCompact(t, l, CompactionPolicy{Merge: true, TombstoneRetention: time.Hour}, testDay); done.Records != 2 {
		t.Fatalf("%+v", done)
	}
	check(l)
	mustCompact(t, l, CompactionPolicy{Merge: true, TombstoneRetention: time.Hour}, testDay.Add(2*time.Hour)) // no tombstone either
	check(l)
	closeClean(t, d)
	check(openTestLog(t, newTestDir(t, fsys), compactible))
}

// TestO8_ReadsGoOnBehindWhatIsGone: a read at any offset that is gone gives what exists next, in the same answer.
func TestO8_ReadsGoOnBehindWhatIsGone(t *testing.T) {
	_, d, l := newCompactible(t, 100, 100)
	for i := range 90 {
		mustAppend(t, l, 10, keyed(fmt.Sprintf("k%d", i), []byte("newer"), 1))
	}
	seal(t, d, l)
	mustCompact(t, l, CompactionPolicy{Merge: true}, testDay)
	for from := range kafka.Offset(190) {
		b, err := l.Read(from, l.End(), ReadLimits{MaxBytes: 1 << 20}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var next kafka.Offset = -1
		for _, r := range recordsOf(splitAll(b)) {
			if r.offset >= from {
				next = r.offset
				break
			}
		}
		if want := max(from, 90); next != want {
			t.Fatalf("a read at %d gives %d, want %d", from, next, want)
		}
	}
}

// TestO11_OnlyANullValueRemovesAKey: no key, an empty key, an empty value and a null value are four things.
func TestO11_OnlyANullValueRemovesAKey(t *testing.T) {
	d := newTestDir(t, systest.NewFS(1))
	l := openTestLog(t, d, compactible)
	empty := []byte{}
	for range 2 {
		for _, r := range [][2][]byte{{nil, nil}, {empty, empty}, {[]byte("k"), empty}, {[]byte("gone"), nil}} {
			bu := record.NewBuilder(record.None)
			bu.Add(1, r[0], r[1], nil)
			mustAppend(t, l, 0, bu.Build())
		}
	}
	seal(t, d, l)
	mustCompact(t, l, CompactionPolicy{}, testDay)
	mustCompact(t, l, CompactionPolicy{}, testDay)
	var got []string
	for _, r := range mustRecords(t, l) {
		got = append(got, fmt.Sprintf("%d:%q=%q", r.offset, r.key, r.value))
	}
	if want := `0:""="" 4:""="" 5:""="" 6:"k"=""`; strings.Join(got, " ") != want {
		t.Fatalf("%s, want %s", strings.Join(got, " "), want)
	}
}

// TestCompaction_AFollowerBehindTakesTheRestOfAFiller: the leader has compacted across the follower's end.
func TestCompaction_AFollowerBehindTakesTheRestOfAFiller(t *testing.T) {
	_, d, l := newCompactible(t, 100, 3)
	seal(t, d, l)
	mustCompact(t, l, CompactionPolicy{Merge: true}, testDay)
	for at := range kafka.Offset(100) {
		f := openTestLog(t, newTestDir(t, systest.NewFS(1)), compactible)
		for i := range at {
			mustAppend(t, f, kafka.LeaderEpoch(i/10), keyed("x", nil, 1))
		}
		for f.End() < l.End() {
			b, err := l.Read(f.End(), l.End(), ReadLimits{MaxBytes: 150, AtLeastOne: true}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.AppendReplicated(b, testDay); err != nil {
				t.Fatalf("from %d: %v", at, err)
			}
		}
		if got := mustRecords(t, f); len(got) != int(at)+min(3, 100-int(at)) {
			t.Fatalf("from %d: %d records", at, len(got))
		}
		if e := f.EpochAt(95); e != 9 {
			t.Fatalf("epoch %d", e)
		}
	}
}

// TestI11_CompactionMeetsDamage: the log goes out of service, and no byte of it is written anew.
func TestI11_CompactionMeetsDamage(t *testing.T) {
	fsys, d, l := newCompactible(t, 50, 3)
	seal(t, d, l)
	second := l.mu.segments[1].path
	f, err := fsys.OpenFile(second, 2, 0) // os.O_RDWR
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{0xff}, 70); err != nil {
		t.Fatal(err)
	}
	_, err = l.Compact(t.Context(), CompactionPolicy{Upper: 50, Merge: true}, testDay)
	if !isCorrupt(err) || !isCorrupt(l.Damaged()) {
		t.Fatalf("error %v, damaged %v", err, l.Damaged())
	}
	for _, name := range mustList(t, fsys) {
		if strings.HasSuffix(name, cleanedSuffix) || name == compactingFile {
			t.Errorf("%s is left", name)
		}
	}
}

// TestCompaction_AFailedPassLeavesTheLog: whatever file operation fails once, the log reads as before, or as compacted, and either it takes
// appends and the next pass succeeds, or it says that it is out of service.
func TestCompaction_AFailedPassLeavesTheLog(t *testing.T) {
	for n := int64(1); ; n++ {
		fsys, d, l := newCompactible(t, 40, 3)
		seal(t, d, l)
		before, hit := fsys.Ops(), false
		fsys.Hook(func(op systest.Op) error {
			if op.N == before+n {
				hit = true
				return systest.ErrNoSpace
			}
			return nil
		})
		_, err := l.Compact(t.Context(), CompactionPolicy{Upper: 40, Merge: true}, testDay)
		fsys.Hook(nil)
		if !hit {
			if n < 10 {
				t.Fatalf("only %d operations", n)
			}
			return
		}
		if l.Damaged() != nil {
			continue // after the rename: told, and rebuilt from a peer
		}
		if got := mustRecords(t, l); got[len(got)-1].offset != 39 {
			t.Fatalf("operation %d: %+v", n, got)
		}
		mustAppend(t, l, 9, keyed("k", nil, 1))
		seal(t, d, l)
		if done := mustCompact(t, l, CompactionPolicy{Merge: true}, testDay); !done.Ran {
			t.Fatalf("operation %d failed with %v, and the next pass does not run", n, err)
		}
		if got := mustRecords(t, l); len(got) != 4 {
			t.Fatalf("operation %d: %d records", n, len(got))
		}
		if l.mu.clean.upTo != 41 {
			t.Fatalf("compacted up to %d", l.mu.clean.upTo)
		}
	}
}

// TestCompaction_MarksAreBounded, and none is too early.
func TestCompaction_MarksAreBounded(t *testing.T) {
	var c cleanState
	const retention = time.Hour
	for i := range int64(10_000) {
		c.upTo = kafka.Offset(i * 10)
		nowMs := i * 1000
		c.mark(nowMs, retention)
		if h := c.horizon(nowMs, retention); h > 0 && int64(h)/10*1000 > nowMs-retention.Milliseconds() {
			t.Fatalf("at %d: the horizon is %d", nowMs, h)
		}
		if len(c.marks) > cleanMarksMax {
			t.Fatalf("%d marks", len(c.marks))
		}
	}
	if h := c.horizon(math.MaxInt32*1000, retention); h < 99_000 {
		t.Fatalf("the horizon stays at %d", h)
	}
	again, err := decodeCleanState(encodeCleanState(c))
	if err != nil || fmt.Sprint(again) != fmt.Sprint(c) {
		t.Fatalf("%+v, %v", again, err)
	}
}

// TestConcurrent_CompactionAndReaders: while a log is written and compacted again and again, readers at their own pace see each offset once, in
// order, and lookups by time find what is there. (For -race.)
func TestConcurrent_CompactionAndReaders(t *testing.T) {
	const total = 400
	d, err := OpenDir(DirOptions{Machine: systest.Machine(systest.NewFS(1), nil, nil), Path: testRoot, Metrics: testMetrics})
	if err != nil {
		t.Fatal(err)
	}
	stored := make(chan struct{}, 1)
	o := compactible
	o.OnStored = func(kafka.Offset, error) {
		select {
		case stored <- struct{}{}:
		default:
		}
	}
	l := openTestLog(t, d, o)
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		for i := range total {
			if _, err := l.Append(kafka.LeaderEpoch(i/50), keyed(fmt.Sprintf("k%d", i%9), []byte("value"), int64(i)), testDay); err != nil {
				t.Error(err)
				return
			}
			if i%10 == 0 {
				<-stored
			}
		}
	})
	for range 2 {
		wg.Go(func() { readOver(t, l, total) })
	}
	passes := 0
	wg.Go(func() {
		for over := false; !over || passes == 0; { // how many fit beside the writer is the scheduler's choice, but one there is
			select {
			case <-done:
				over = true
			default:
			}
			c, err := l.Compact(t.Context(), CompactionPolicy{Upper: l.StoredEnd(), Merge: passes%2 == 0, KeysMax: 4 + passes%6}, testDay)
			if err != nil {
				t.Error(err)
				return
			}
			if c.Ran {
				passes++
			}
			end := l.End()
			if at, ok, err := l.MaxTimestamp(end); err != nil || (end > 0 && (!ok || at.Offset < end-1)) {
				t.Errorf("the newest record below %d is at %+v, %t, %v", end, at, ok, err)
			}
			if _, _, err := l.OffsetForTime(int64(end)/2, end); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if err := d.Close(CloseOptions{Clean: true}); err != nil {
		t.Fatal(err)
	}
}

// readOver reads a log that is being compacted, and wants every offset once: in the batch read next, or in one that spans it.
func readOver(t *testing.T, l *Log, total kafka.Offset) {
	var buf []byte
	for at := kafka.Offset(0); at < total; {
		got, err := l.Read(at, l.End(), ReadLimits{MaxBytes: 300, AtLeastOne: true}, buf[:0])
		if err != nil {
			t.Error(err)
			return
		}
		for i, b := range splitAll(got) {
			if b.NextOffset() <= at || b.BaseOffset() > at || (i > 0 && b.BaseOffset() != at) {
				t.Errorf("batch %d of an answer is [%d, %d), want %d", i, b.BaseOffset(), b.NextOffset(), at)
				return
			}
			at = b.NextOffset()
		}
		buf = got
	}
}

// TestCompaction_EndsWithItsContext: a pass that is given up half way leaves the log whole, and the next one does all of it.
func TestCompaction_EndsWithItsContext(t *testing.T) {
	fsys, d, l := newCompactible(t, 100, 3)
	seal(t, d, l)
	ctx, cancel := context.WithCancel(t.Context())
	renames := 0
	fsys.Hook(func(op systest.Op) error {
		if op.Kind == systest.OpRename && strings.HasSuffix(op.Name, cleanedSuffix) {
			if renames++; renames == 2 {
				cancel()
			}
		}
		return nil
	})
	done, err := l.Compact(ctx, CompactionPolicy{Upper: 100}, testDay)
	fsys.Hook(nil)
	if err != nil || done.Ran || renames != 2 {
		t.Fatalf("%+v, %v after %d segments", done, err, renames)
	}
	if got := mustRecords(t, l); len(got) >= 100 || len(got) < 50 {
		t.Fatalf("%d records", len(got))
	}
	for _, name := range mustList(t, fsys) {
		if strings.HasSuffix(name, cleanedSuffix) || name == compactingFile {
			t.Errorf("%s is left", name)
		}
	}
	if done := mustCompact(t, l, CompactionPolicy{}, testDay); !done.Ran || len(mustRecords(t, l)) != 3 {
		t.Fatalf("%+v", done)
	}
}

// TestR177_GapsAreNotUnread: behind the last record that compaction has left there is nothing to be read, before it there is.
func TestR177_GapsAreNotUnread(t *testing.T) {
	d := newTestDir(t, systest.NewFS(1))
	l := openTestLog(t, d, compactible)
	mustAppend(t, l, 1, keyed("stays", []byte("value"), 1))
	mustAppend(t, l, 1, keyed("goes", nil, 1))
	mustAppend(t, l, 1, keyed("goes", nil, 1))
	seal(t, d, l)
	p := CompactionPolicy{Merge: true, TombstoneRetention: time.Hour}
	mustCompact(t, l, p, testDay)
	mustCompact(t, l, p, testDay.Add(2*time.Hour))
	if got := mustRecords(t, l); len(got) != 1 || l.End() != 3 {
		t.Fatalf("%d records, end %d", len(got), l.End())
	}
	for off, want := range []bool{true, false, false, false} {
		if _, unread, err := l.AppendTimeAt(kafka.Offset(off), l.End()); unread != want || err != nil {
			t.Errorf("from %d: unread %v (%v), want %v", off, unread, err, want)
		}
	}
}
