package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys/systest"
)

// harm is a way to damage a file.
type harm struct {
	name string
	do   func(fsys *systest.FS, name string, size int64) error
}

var harms = []harm{
	{"flipped bit", func(f *systest.FS, name string, size int64) error { return f.FlipBit(name, size/2, 3) }},
	{"empty", func(f *systest.FS, name string, _ int64) error { return f.Cut(name, 0) }},
	{"zeroed", func(f *systest.FS, name string, size int64) error { return f.Zero(name, 0, size) }},
	{"truncated", func(f *systest.FS, name string, size int64) error { return f.Cut(name, size-1) }},
	{"missing", func(f *systest.FS, name string, _ int64) error {
		dir := name[:strings.LastIndex(name, "/")]
		return errors.Join(f.Remove(name), f.SyncDir(dir))
	}},
}

// harmedFile is one file of the matrix and what its damage may lead to.
type harmedFile struct {
	file string
	// also is damaged in the same way.
	also string
	// intact says that the log must come back whole and undamaged.
	intact bool
	// unknownPolicy says that the log counts as `replicated` and so as unclean after a power cut (I4).
	unknownPolicy bool
}

var harmedFiles = []harmedFile{
	{file: dirFile("meta.json"), intact: true},
	{file: dirFile("meta.copy.json"), intact: true},
	{file: dirFile("start"), intact: true},
	{file: dirFile("clean-shutdown"), intact: true},
	{file: dirFile("sync-point"), intact: true},
	{file: dirFile("sync-point.copy"), intact: true},
	{file: dirFile("sync-point"), also: dirFile("sync-point.copy"), intact: true, unknownPolicy: true},
	{file: logFile("epochs"), intact: true},
	{file: logFile("00000000000000000000.index"), intact: true},
	{file: logFile("00000000000000000000.meta"), intact: true},
	{file: logFile("00000000000000000005.producers"), intact: true},
	{file: logFile("00000000000000000018.producers"), intact: true},
	{file: logFile("00000000000000000015.index"), intact: true},
	{file: logFile("00000000000000000000.log")},
	{file: logFile("00000000000000000015.log")},
}

// harmedDisk is a cleanly stopped directory with a log of 18 batches of one record in segments of five, the last one active, from a
// producer, and the bytes of its log.
func harmedDisk(t *testing.T) (*systest.FS, []byte) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, LogOptions{SegmentBytes: 900, IndexInterval: 1})
	for i := range 18 {
		b := testBatch(uint64(i), 1, 100, testDay.UnixMilli()+int64(i))
		b.SetProducer(1, 0, int32(i), false)
		mustAppend(t, l, kafka.LeaderEpoch(i/6), b)
		d.syncer.runAll()
	}
	want, err := readAll(l, 18, 1000)
	if err != nil {
		t.Fatal(err)
	}
	closeClean(t, d)
	return fsys, want
}

// TestDamage_EachFileEachWay: whatever one file of the directory suffers, the node starts, no wrong byte is served, and what is not
// the log itself is rebuilt.
func TestDamage_EachFileEachWay(t *testing.T) {
	for _, h := range harmedFiles {
		for _, k := range harms {
			t.Run(h.file[len(testRoot)+1:]+h.also+" "+k.name, func(t *testing.T) {
				disk, want := harmedDisk(t)
				disk = disk.Crash(systest.LoseAll) // a power cut after the clean stop: another boot
				size := int64(len(disk.Files()[h.file]))
				if size == 0 {
					t.Fatalf("no file %s among %s", h.file, fileNames(disk))
				}
				if err := k.do(disk, h.file, size); err != nil {
					t.Fatal(err)
				}
				if h.also != "" {
					if err := k.do(disk, h.also, size); err != nil {
						t.Fatal(err)
					}
				}
				checkHarmed(t, disk, h, want)
			})
		}
	}
}

func fileNames(f *systest.FS) string {
	var names []string
	for name, b := range f.Files() {
		names = append(names, fmt.Sprintf("%s (%d)", name, len(b)))
	}
	return strings.Join(names, ", ")
}

func checkHarmed(t *testing.T, disk *systest.FS, h harmedFile, want []byte) {
	d := openTestDir(t, disk)
	l := openTestLog(t, d, LogOptions{SegmentBytes: 900, IndexInterval: 1})
	got, readErr := readAll(l, l.End(), 500)
	if !bytes.HasPrefix(want, got) {
		t.Fatal("wrong bytes were served")
	}
	r := l.Recovered()
	if !h.intact {
		// A flipped bit below the sync point is met by the reader; the rest by recovery. Nothing was cut, and the log says so.
		if l.Damaged() == nil && !isCorrupt(readErr) {
			t.Fatalf("the damage went unseen: end %d, read %d bytes, %v", l.End(), len(got), readErr)
		}
		if _, err := l.Append(9, testBatch(1, 1, 10, 0), testDay); l.Damaged() != nil && !isCorrupt(err) {
			t.Fatalf("a damaged log took an append: %v", err)
		}
		return
	}
	if readErr != nil || len(got) != len(want) || l.Damaged() != nil {
		t.Fatalf("read %d of %d bytes, %v, damaged %v", len(got), len(want), readErr, l.Damaged())
	}
	if _, clean := d.CleanShutdown(); clean != !strings.HasSuffix(h.file, cleanFile) {
		t.Fatalf("clean shutdown %t", clean)
	}
	if (r.SyncPointPolicy == Replicated) != h.unknownPolicy {
		t.Fatalf("policy %s", r.SyncPointPolicy)
	}
	p := l.Producers()
	if len(p) != 1 || len(p[0].Batches) != 5 || p[0].Batches[4].LastSequence != 17 {
		t.Fatalf("producers %+v", p)
	}
	if e := l.EpochEndFor(1); e != (kafka.EpochEnd{Epoch: 1, End: 12}) {
		t.Fatalf("epoch 1 ends at %+v", e)
	}
	ts := testDay.UnixMilli() + 3
	if at, ok, err := l.OffsetForTime(ts, 18); err != nil || !ok || at.Offset != 3 {
		t.Fatalf("time lookup: %+v, %t, %v", at, ok, err)
	}
	mustAppend(t, l, 9, testBatch(99, 1, 100, 0))
	closeDamaged(t, d)
}

func closeDamaged(t *testing.T, d *Dir) {
	t.Helper()
	if err := d.Close(CloseOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestDamage_IdentityLost: with both copies of the identity gone a directory that holds data is refused by name, and an empty
// one gets a new identity.
func TestDamage_IdentityLost(t *testing.T) {
	disk, _ := harmedDisk(t)
	for _, name := range []string{identityFile, identityCopy} {
		if err := disk.Cut(dirFile(name), 0); err != nil {
			t.Fatal(err)
		}
	}
	_, err := tryTestDir(disk)
	wantErr(t, err, ErrIdentityLost)
	if !strings.Contains(err.Error(), dirFile(identityFile)) {
		t.Fatalf("the error does not name the file: %v", err)
	}
	young := systest.NewFS(1)
	d := newTestDir(t, young)
	first := d.Identity().DirectoryID
	closeClean(t, d)
	for _, name := range []string{identityFile, identityCopy} {
		if err := young.Cut(dirFile(name), 0); err != nil {
			t.Fatal(err)
		}
	}
	if d = newTestDir(t, young); d.Identity().DirectoryID == first || d.Identity().DirectoryID.IsZero() {
		t.Fatalf("directory id %s after %s", d.Identity().DirectoryID, first)
	}
}

// TestDamage_StartFile: one damaged slot costs nothing; with both gone the number goes on from the sync-point file and the boot id
// matches nothing.
func TestDamage_StartFile(t *testing.T) {
	for slots := range 4 {
		fsys := systest.NewFS(1)
		for range 3 {
			d := newTestDir(t, fsys)
			closeClean(t, d)
		}
		for i := range 2 {
			if slots&(1<<i) != 0 {
				if err := fsys.Zero(dirFile(startFile), int64(i)*startSlotStride, startSlotBytes); err != nil {
					t.Fatal(err)
				}
			}
		}
		d := openTestDir(t, fsys)
		if d.StartNumber() != 4 {
			t.Fatalf("slots %02b damaged: start number %d, want 4", slots, d.StartNumber())
		}
		if slots == 3 && d.PreviousBootID() != "" {
			t.Fatalf("a boot id out of nowhere: %q", d.PreviousBootID())
		}
	}
}

// TestC023_FlippedBitIsNeverServed: one bit in any place of a segment leads to an error or to the bytes that were written, never to
// others, and takes the log out of service for good.
func TestC023_FlippedBitIsNeverServed(t *testing.T) {
	disk, want := harmedDisk(t)
	name := logFile("00000000000000000005.log")
	size := int64(len(disk.Files()[name]))
	for off := int64(0); off < size; off += 3 {
		f := disk.Clone(systest.KeepAll)
		if err := f.FlipBit(name, off, uint(off)); err != nil {
			t.Fatal(err)
		}
		d := openTestDir(t, f)
		l := openTestLog(t, d, LogOptions{SegmentBytes: 900, IndexInterval: 1})
		got, err := readAll(l, l.End(), 10_000)
		if !bytes.HasPrefix(want, got) {
			t.Fatalf("bit %d: wrong bytes were served", off)
		}
		if !isCorrupt(err) {
			t.Fatalf("bit %d: %v", off, err)
		}
		below, err := l.Read(0, 5, ReadLimits{MaxBytes: 10_000}, nil)
		if err != nil || !bytes.HasPrefix(want, below) || len(below) == 0 {
			t.Fatalf("bit %d: reads below the damage fail: %v", off, err)
		}
		if _, err := l.Append(9, testBatch(1, 1, 10, 0), testDay); !isCorrupt(err) {
			t.Fatalf("bit %d: append after damage: %v", off, err)
		}
		again := openTestLog(t, openTestDir(t, f.Crash(systest.LoseAll)), smallLog)
		if again.Damaged() == nil || !again.Recovered().Unclean {
			t.Fatalf("bit %d: the damage is forgotten after a restart", off)
		}
	}
}

// TestC027_TailMatrix: what the end of the newest file may look like after a crash, and where the log then ends.
func TestC027_TailMatrix(t *testing.T) {
	batch := func(i int) []byte {
		b := testBatch(uint64(i), 1, 100, 0)
		b.SetBaseOffset(kafka.Offset(i))
		b.SetLeaderEpoch(0)
		return b
	}
	flipped := func(i int) []byte {
		b := batch(i)
		b[80] ^= 4
		return b
	}
	header := func(i, at int, bits byte) []byte {
		b := batch(i)
		b[at] ^= bits
		return b
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	cases := []struct {
		name    string
		content []byte
		end     kafka.Offset // after a power cut
		kill    kafka.Offset // after kill -9, -1 for damage at `end`
		damaged bool         // also after a power cut
	}{
		{"empty", nil, 0, 0, false},
		{"one byte", batch(0)[:1], 0, 0, false},
		{"header less one", batch(0)[:record.HeaderSize-1], 0, 0, false},
		{"header only", batch(0)[:record.HeaderSize], 0, 0, false},
		{"whole", join(batch(0), batch(1)), 2, 2, false},
		{"short last", join(batch(0), batch(1)[:100]), 1, 1, false},
		{"zero tail", join(batch(0), make([]byte, 4096)), 1, -1, false},
		{"only zeros", make([]byte, 4096), 0, -1, false},
		{"bad last checksum", join(batch(0), flipped(1)), 1, -1, false},
		{"bad middle checksum", join(batch(0), flipped(1), batch(2)), 1, -1, true},
		{"zero page before a batch", join(batch(0), make([]byte, len(batch(1))), batch(2)), 1, -1, true},
		{"wrong offset", join(batch(0), batch(5)), 1, -1, true},
		{"lower offset", join(batch(0), batch(0)), 1, -1, true},
		{"length too large", join(batch(0), header(1, 10, 1)), 1, -1, true},
		{"length negative", join(batch(0), header(1, 8, 0x80)), 1, -1, true},
		{"length too small", join(batch(0), header(1, 11, 8)), 1, -1, true},
		{"length too large, and short", join(batch(0), header(1, 10, 1)[:100]), 1, 1, false},
	}
	for _, c := range cases {
		for _, mode := range []systest.CrashMode{systest.KeepAll, systest.KillProcess} {
			fsys := systest.NewFS(1)
			d := newTestDir(t, fsys)
			openTestLog(t, d, smallLog)
			writeFile(t, fsys, logFile("00000000000000000000.log"), c.content)
			d = openTestDir(t, fsys.Crash(mode))
			l := openTestLog(t, d, smallLog)
			end, damaged := c.end, c.damaged
			if mode == systest.KillProcess && c.kill < 0 {
				damaged = true
			}
			if l.End() != end || (l.Damaged() != nil) != damaged {
				t.Errorf("%s, %s: end %d, damaged %v; want %d, %t", c.name, mode, l.End(), l.Damaged(), end, damaged)
			}
			if got, err := readAll(l, l.End(), 1000); err != nil || !bytes.HasPrefix(c.content, got) {
				t.Errorf("%s, %s: read: %v", c.name, mode, err)
			}
			if !damaged {
				mustAppend(t, l, 0, testBatch(9, 1, 10, 0))
			}
		}
	}
}

func writeFile(t testing.TB, fsys *systest.FS, name string, content []byte) {
	t.Helper()
	f, err := fsys.OpenFile(name, 0x42, 0o600) // O_RDWR|O_CREATE
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Close(), fsys.SyncDir(name[:strings.LastIndex(name, "/")])); err != nil {
		t.Fatal(err)
	}
}

// TestC029_IndexIsACache: an index of zeros, random bytes, wrong size, of another segment, or none is rebuilt; lookups equal a full
// scan and retention does not look at it.
func TestC029_IndexIsACache(t *testing.T) {
	name := logFile("00000000000000000000.index")
	disk, want := harmedDisk(t)
	good := disk.Files()[name]
	other := disk.Files()[logFile("00000000000000000005.index")]
	stale := encodeIndex(&index{interval: 1, entries: []indexEntry{{0, 0, 1, 1}, {3, 17, 1, 1}}}, 0, 5, mustDecodeIndex(t, good).size)
	for what, content := range map[string][]byte{
		"zeros": make([]byte, len(good)), "random": bytes.Repeat([]byte{0xa5, 7}, len(good)), "short": good[:len(good)-1],
		"padded": append(bytes.Clone(good), make([]byte, 10<<10)...), "another segment's": other, "stale but valid": stale, "none": nil,
	} {
		f := disk.Clone(systest.KeepAll)
		if err := f.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if content != nil {
			writeFile(t, f, name, content)
		}
		l := openTestLog(t, openTestDir(t, f), LogOptions{SegmentBytes: 900, IndexInterval: 1})
		for o := range kafka.Offset(18) {
			got, err := l.Read(o, 18, ReadLimits{MaxBytes: 1, AtLeastOne: true}, nil)
			if err != nil || record.Batch(got).BaseOffset() != o || !bytes.Contains(want, got) {
				t.Fatalf("%s index: read at %d: %v", what, o, err)
			}
		}
		if start, err := l.ApplyRetention(RetentionPolicy{Age: 3600e9}, 18, testDay); err != nil || start != 0 {
			t.Fatalf("%s index: retention moved the start to %d, %v", what, start, err)
		}
		l.dir.syncer.runAll()
		if content != nil && !bytes.Equal(f.Files()[name], good) && what != "stale but valid" {
			t.Fatalf("%s index: not written anew", what)
		}
	}
}

func mustDecodeIndex(t *testing.T, b []byte) indexExtent {
	_, ext, err := decodeIndex(b)
	if err != nil {
		t.Fatal(err)
	}
	return ext
}

// TestC032_EmptyStateFiles is the row of the matrix that real crashes left: each state file emptied, one at a time, and the node
// starts. (TestDamage_EachFileEachWay has the others.)
func TestC032_EmptyStateFiles(t *testing.T) {
	for _, h := range harmedFiles[:13] {
		disk, want := harmedDisk(t)
		if err := disk.Cut(h.file, 0); err != nil {
			t.Fatal(err)
		}
		if h.also != "" {
			if err := disk.Cut(h.also, 0); err != nil {
				t.Fatal(err)
			}
		}
		checkHarmed(t, disk, h, want)
	}
}
