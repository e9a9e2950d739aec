package systest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/sys"
)

// must fails the test on the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, fsys sys.FS, name string) sys.File {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	must(t, err)
	return f
}

func put1(t *testing.T, f sys.File, off int64, b []byte) {
	t.Helper()
	_, err := f.WriteAt(b, off)
	must(t, err)
}

// durableFile makes a file whose name and content are durable.
func durableFile(t *testing.T, fsys *FS, name string, content []byte) sys.File {
	t.Helper()
	f := open(t, fsys, name)
	put1(t, f, 0, content)
	must(t, f.Sync(), fsys.SyncDir(path.Dir(name)))
	return f
}

func content(t *testing.T, fsys *FS, name string) string {
	t.Helper()
	b, err := sys.ReadFile(fsys, name, fileSizeMax)
	must(t, err)
	return string(b)
}

func isThere(t *testing.T, fsys *FS, name string) bool {
	t.Helper()
	ok, err := sys.Exists(fsys, name)
	must(t, err)
	return ok
}

func fill(c byte, n int) []byte { return bytes.Repeat([]byte{c}, n) }

func TestLoseAllKeepsSyncedBytesAndSyncedNamesOnly(t *testing.T) {
	fsys := NewFS(1)
	f := durableFile(t, fsys, "/f", []byte("synced"))
	put1(t, f, 0, []byte("pending"))
	g := open(t, fsys, "/g") // its bytes are synced, its name is not
	put1(t, g, 0, []byte("x"))
	must(t, g.Sync())
	after := fsys.Crash(LoseAll)
	if got := content(t, after, "/f"); got != "synced" {
		t.Errorf("f holds %q", got)
	}
	if isThere(t, after, "/g") {
		t.Error("a name that was never synced survived")
	}
}

func TestNameCanSurviveWithoutItsBytes(t *testing.T) {
	fsys := NewFS(1)
	put1(t, open(t, fsys, "/f"), 0, []byte("pending"))
	must(t, fsys.SyncDir("/"))
	if got := content(t, fsys.Crash(LoseAll), "/f"); got != "" {
		t.Fatalf("f holds %q", got)
	}
}

func TestKeepAllAndKillKeepEverythingButOnlyOneIsDurable(t *testing.T) {
	fsys := NewFS(1)
	put1(t, open(t, fsys, "/f"), 0, []byte("pending"))
	kept, killed := fsys.Clone(KeepAll), fsys.Clone(KillProcess)
	for mode, next := range map[CrashMode]*FS{KeepAll: kept, KillProcess: killed} {
		if got := content(t, next, "/f"); got != "pending" {
			t.Errorf("%s: f holds %q", mode, got)
		}
	}
	if !isThere(t, kept.Crash(LoseAll), "/f") {
		t.Error("keep-all left the name pending")
	}
	if isThere(t, killed.Crash(LoseAll), "/f") {
		t.Error("kill -9 made the name durable")
	}
	if kept.BootID() == fsys.BootID() || killed.BootID() != fsys.BootID() {
		t.Errorf("boot ids %q, after a power cut %q, after kill -9 %q", fsys.BootID(), kept.BootID(), killed.BootID())
	}
}

func TestKillKeepsWhatIsPendingApart(t *testing.T) {
	fsys := NewFS(1)
	f := durableFile(t, fsys, "/f", []byte("old"))
	put1(t, f, 0, []byte("new"))
	must(t, fsys.Rename("/f", "/g"))
	killed := fsys.Crash(KillProcess)
	again := open(t, killed, "/g")
	must(t, again.Sync())
	// The rename is still pending and the bytes are synced.
	if got := content(t, killed.Clone(LoseAll), "/f"); got != "new" {
		t.Fatalf("f holds %q", got)
	}
	must(t, killed.SyncDir("/"))
	after := killed.Crash(LoseAll)
	if isThere(t, after, "/f") || content(t, after, "/g") != "new" {
		t.Fatal("the rename was synced and did not survive")
	}
}

func TestCrashedMachineRefusesEverything(t *testing.T) {
	fsys := NewFS(1)
	f := durableFile(t, fsys, "/f", []byte("x"))
	fsys.Crash(Random)
	_, writeErr := f.WriteAt([]byte("y"), 0)
	_, readErr := f.ReadAt(make([]byte, 1), 0)
	_, openErr := fsys.OpenFile("/f", os.O_RDONLY, 0)
	_, listErr := fsys.ReadDir("/")
	errs := []error{
		writeErr, readErr, openErr, listErr, f.Sync(), f.Truncate(0), fsys.SyncAll("/"), fsys.SyncDir("/"),
		fsys.Rename("/f", "/g"), fsys.Remove("/f"), fsys.MkdirAll("/d/e", 0o700), f.Lock(),
	}
	for i, err := range errs {
		if !errors.Is(err, ErrCrashed) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	must(t, f.Close())
}

func TestLockEndsWithACrash(t *testing.T) {
	for _, mode := range []CrashMode{LoseAll, KillProcess} {
		fsys := NewFS(1)
		f := durableFile(t, fsys, "/lock", nil)
		must(t, f.Lock())
		if err := open(t, fsys, "/lock").Lock(); !errors.Is(err, sys.ErrLocked) {
			t.Errorf("%s: a second lock: %v", mode, err)
		}
		must(t, open(t, fsys.Crash(mode), "/lock").Lock())
	}
}

func TestRandomCrashShowsEachFaultOfTheModel(t *testing.T) {
	seenStates := map[string]int{}
	for seed := range uint64(800) {
		fsys := NewFS(seed)
		f := durableFile(t, fsys, "/f", fill('o', 3*pageSize))
		put1(t, f, 0, fill('n', 2*pageSize))
		put1(t, f, 3*pageSize, fill('n', 2*pageSize+700))
		got := content(t, fsys.Crash(Random), "/f")
		seenStates[classify(t, got)]++
	}
	for _, want := range []string{"old", "new", "hole", "zero tail", "torn"} {
		if seenStates[want] == 0 {
			t.Errorf("%q never happened: %v", want, seenStates)
		}
	}
}

// classify names what a crash left of the file above, and fails on anything outside the fault model.
func classify(t *testing.T, got string) string {
	t.Helper()
	if len(got) < 3*pageSize || len(got) > 5*pageSize+700 {
		t.Fatalf("size %d", len(got))
	}
	if got[2*pageSize:3*pageSize] != string(fill('o', pageSize)) {
		t.Fatal("a page that was not pending has changed")
	}
	state, newPages := "old", 0
	for page := 0; page*pageSize < len(got); page++ {
		b := got[page*pageSize : min((page+1)*pageSize, len(got))]
		fresh := len(b) - len(bytes.TrimLeft([]byte(b), "n"))
		switch rest := b[fresh:]; {
		case rest == "":
			newPages++
		case fresh > 0 && fresh%sectorSize != 0:
			t.Fatalf("page %d torn at %d", page, fresh)
		case fresh > 0:
			return "torn"
		case page >= 3 && rest == string(make([]byte, len(rest))):
			state = "zero tail"
		case page >= 3:
			t.Fatalf("page %d holds bytes nobody wrote", page)
		case newPages > 0 && page != 2:
			state = "hole"
		}
	}
	if state == "old" && newPages == 5 {
		return "new"
	}
	if state == "old" && newPages > 0 {
		return "part"
	}
	return state
}

func TestRandomCrashMayLoseATruncationAndWhatFollowedIt(t *testing.T) {
	old, fresh := string(fill('o', 2*pageSize)), string(fill('o', 100))+string(fill('n', 2*pageSize-100))
	var lost, kept, cut int
	for seed := range uint64(500) {
		fsys := NewFS(seed)
		f := durableFile(t, fsys, "/f", []byte(old))
		must(t, f.Truncate(100))
		put1(t, f, 100, fill('n', 2*pageSize-100))
		switch got := content(t, fsys.Crash(Random), "/f"); {
		case got == old:
			lost++
		case got == fresh:
			kept++
		case len(got) >= 100 && got[:100] == old[:100]:
			cut++
			for i, c := range []byte(got[100:]) {
				if c != 'n' && c != 0 {
					t.Fatalf("byte %d is %q: neither written nor zero", i+100, c)
				}
			}
		default:
			t.Fatal("bytes before the truncation have changed")
		}
	}
	if lost == 0 || kept == 0 || cut == 0 {
		t.Fatalf("lost %d, kept %d, partly %d: not all happened", lost, kept, cut)
	}
}

func TestRandomCrashKeepsAPrefixOfEachDirectory(t *testing.T) {
	counts := map[int]int{}
	for seed := range uint64(300) {
		fsys := NewFS(seed)
		must(t, fsys.MkdirAll("/d", 0o700), fsys.SyncDir("/"))
		for i := range 4 {
			open(t, fsys, fmt.Sprintf("/d/%d", i))
		}
		infos, err := fsys.Crash(Random).ReadDir("/d")
		must(t, err)
		for i, info := range infos {
			if info.Name != fmt.Sprint(i) {
				t.Fatalf("seed %d: survivors %v are no prefix", seed, infos)
			}
		}
		counts[len(infos)]++
	}
	if len(counts) != 5 {
		t.Fatalf("prefixes seen: %v", counts)
	}
}

func TestRenameIsWholeInEveryCrash(t *testing.T) {
	for seed := range uint64(300) {
		fsys := NewFS(seed)
		must(t, fsys.MkdirAll("/a", 0o700), fsys.MkdirAll("/b", 0o700), fsys.SyncAll("/"))
		durableFile(t, fsys, "/a/f", []byte("new"))
		durableFile(t, fsys, "/b/f", []byte("old"))
		must(t, fsys.Rename("/a/f", "/b/f"))
		after := fsys.Crash(Random)
		moved := !isThere(t, after, "/a/f")
		want := map[bool]string{true: "new", false: "old"}[moved]
		if got := content(t, after, "/b/f"); got != want {
			t.Fatalf("seed %d: moved %v, and the target holds %q", seed, moved, got)
		}
	}
}

func TestSyncDirOfTheTargetSettlesARenameForGood(t *testing.T) {
	fsys := NewFS(1)
	must(t, fsys.MkdirAll("/a", 0o700), fsys.MkdirAll("/b", 0o700), fsys.SyncAll("/"))
	f := open(t, fsys, "/a/f") // pending creation, then pending rename
	must(t, f.Sync(), fsys.Rename("/a/f", "/b/f"), fsys.SyncDir("/b"))
	for range 2 {
		after := fsys.Clone(LoseAll)
		if isThere(t, after, "/a/f") || !isThere(t, after, "/b/f") {
			t.Fatal("the file is not exactly at its new name")
		}
		must(t, fsys.SyncDir("/a"))
	}
}

func TestRemovedFileComesBackUntilSyncDir(t *testing.T) {
	fsys := NewFS(1)
	f := durableFile(t, fsys, "/f", []byte("x"))
	must(t, fsys.Remove("/f"))
	put1(t, f, 1, []byte("y")) // still open
	if got := content(t, fsys.Clone(LoseAll), "/f"); got != "x" {
		t.Fatalf("f holds %q", got)
	}
	must(t, fsys.SyncDir("/"))
	if isThere(t, fsys.Crash(KeepAll), "/f") {
		t.Fatal("a removal that was synced is undone")
	}
}

func TestSyncAllMakesFilesAndNamesDurable(t *testing.T) {
	fsys := NewFS(1)
	must(t, fsys.MkdirAll("/a/b", 0o700))
	put1(t, open(t, fsys, "/a/b/f"), 0, []byte("f"))
	put1(t, open(t, fsys, "/a/g"), 0, []byte("g"))
	must(t, fsys.SyncAll("/a"))
	after := fsys.Crash(LoseAll)
	if content(t, after, "/a/b/f") != "f" || content(t, after, "/a/g") != "g" {
		t.Fatal("something was lost")
	}
}

func TestSyncAllAfterKillFindsWhatWasPending(t *testing.T) {
	fsys := NewFS(1)
	f := durableFile(t, fsys, "/f", []byte("old"))
	put1(t, f, 0, []byte("new"))
	killed := fsys.Crash(KillProcess)
	must(t, killed.SyncAll("/"))
	if got := content(t, killed.Crash(LoseAll), "/f"); got != "new" {
		t.Fatalf("f holds %q", got)
	}
}

func TestI11_FailedSyncDropsPagesAndTheNextOneLies(t *testing.T) {
	fsys := NewFS(1)
	f := durableFile(t, fsys, "/f", fill('o', 2*pageSize))
	put1(t, f, 0, fill('n', 2*pageSize))
	fsys.FailAt(fsys.Ops()+1, ErrIO)
	if err := f.Sync(); !errors.Is(err, ErrIO) {
		t.Fatalf("got %v", err)
	}
	must(t, f.Sync())
	if got := content(t, fsys, "/f"); got[0] != 'n' {
		t.Error("the page cache forgot the bytes")
	}
	put1(t, f, 0, []byte("m")) // the first page becomes dirty again, the second does not
	must(t, f.Sync())
	want := "m" + string(fill('n', pageSize-1)) + string(fill('o', pageSize))
	if got := content(t, fsys.Crash(KeepAll), "/f"); got != want {
		t.Error("the disk does not hold what the dropped pages leave")
	}
}

func TestI11_FailedSyncAllNamesItsCulpritOrHidesIt(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		fsys := NewFS(1)
		f, g := durableFile(t, fsys, "/f", nil), durableFile(t, fsys, "/g", nil)
		put1(t, f, 0, []byte("f"))
		put1(t, g, 0, []byte("g"))
		fsys.Hook(func(op Op) error {
			if op.Kind == OpSyncAll {
				return &SyncFault{Name: "/f", Hidden: hidden, Err: ErrIO}
			}
			return nil
		})
		if err := fsys.SyncAll("/"); !errors.Is(err, ErrIO) {
			t.Fatalf("got %v", err)
		}
		must(t, g.Sync())
		if err := f.Sync(); errors.Is(err, ErrIO) == hidden {
			t.Errorf("hidden %v: sync of the culprit gives %v", hidden, err)
		}
		must(t, f.Sync())
		after := fsys.Crash(LoseAll)
		if content(t, after, "/f") != "\x00" || content(t, after, "/g") != "g" {
			t.Errorf("hidden %v: left %q and %q", hidden, content(t, after, "/f"), content(t, after, "/g"))
		}
	}
}

func TestFullDiskWritesWhatFitsAndRecovers(t *testing.T) {
	fsys := NewFS(1)
	f, g := open(t, fsys, "/f"), open(t, fsys, "/g")
	put1(t, g, 0, fill('g', 50))
	fsys.SetFree(10)
	n, err := f.WriteAt(fill('f', 30), 0)
	if n != 10 || !errors.Is(err, ErrNoSpace) || !sys.IsNoSpace(err) {
		t.Fatalf("wrote %d, %v", n, err)
	}
	put1(t, f, 0, fill('F', 10)) // overwriting needs no space
	if _, err := f.WriteAt([]byte("x"), 100); !errors.Is(err, ErrNoSpace) {
		t.Fatalf("a hole fits: %v", err)
	}
	if err := f.Truncate(11); !errors.Is(err, ErrNoSpace) {
		t.Fatalf("growing by truncate: %v", err)
	}
	must(t, f.Truncate(4), g.Close(), fsys.Remove("/g"))
	if n, err := f.WriteAt(fill('f', 100), 4); n != 56 || !errors.Is(err, ErrNoSpace) {
		t.Fatalf("after freeing 6 + 50 bytes wrote %d, %v", n, err)
	}
	fsys.SetFree(-1)
	put1(t, f, 0, fill('f', 1000))
}

func TestRemovedFileGivesItsSpaceBackWhenClosed(t *testing.T) {
	fsys := NewFS(1)
	f := open(t, fsys, "/f")
	put1(t, f, 0, fill('f', 50))
	fsys.SetFree(0)
	must(t, fsys.Remove("/f"))
	g := open(t, fsys, "/g")
	if _, err := g.WriteAt([]byte("x"), 0); !errors.Is(err, ErrNoSpace) {
		t.Fatalf("an open file gave its space away: %v", err)
	}
	must(t, f.Close())
	put1(t, g, 0, fill('g', 50))
}

func TestHookCanFailShortenAndCloneWithoutLocks(t *testing.T) {
	fsys := NewFS(1)
	f := durableFile(t, fsys, "/f", []byte("old"))
	var before *FS
	fsys.Hook(func(op Op) error {
		switch op.Kind {
		case OpSync:
			before = fsys.Clone(LoseAll)
		case OpWrite:
			return &ShortWrite{Bytes: 2, Err: ErrIO}
		case OpRead:
			return ErrIO
		}
		return nil
	})
	if n, err := f.WriteAt([]byte("new"), 0); n != 2 || !errors.Is(err, ErrIO) {
		t.Fatalf("wrote %d, %v", n, err)
	}
	must(t, f.Sync())
	if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, ErrIO) {
		t.Fatalf("read: %v", err)
	}
	fsys.Hook(nil)
	if content(t, before, "/f") != "old" || content(t, fsys, "/f") != "ned"[:2]+"d" {
		t.Fatalf("clone holds %q, file holds %q", content(t, before, "/f"), content(t, fsys, "/f"))
	}
}

func TestI14_WriteFileAtomicGivesBackTheRoomWhenItFails(t *testing.T) {
	for _, kind := range []OpKind{OpCreate, OpWrite, OpSync, OpRename} {
		fsys := NewFS(1)
		if err := sys.WriteFileAtomic(fsys, "/s", []byte("old")); err != nil {
			t.Fatal(err)
		}
		fsys.SetFree(10)
		fsys.Hook(func(op Op) error {
			if op.Kind == kind {
				return ErrNoSpace
			}
			return nil
		})
		if err := sys.WriteFileAtomic(fsys, "/s", []byte("new")); !sys.IsNoSpace(err) {
			t.Fatalf("%s: error %v", kind, err)
		}
		space, err := fsys.Space("/")
		if err != nil {
			t.Fatal(err)
		}
		if files := fsys.Files(); len(files) != 1 || string(files["/s"]) != "old" || space.Usable != 10 {
			t.Errorf("%s: %d files, %q, %d bytes free, want the old one and 10", kind, len(files), files["/s"], space.Usable)
		}
	}
}

func TestCrashAtEveryOperationStopsThere(t *testing.T) {
	work := func(fsys *FS) (done []string, err error) {
		for i := range 3 {
			name := fmt.Sprintf("/s%d", i)
			if err := sys.WriteFileAtomic(fsys, name, []byte(name)); err != nil {
				return done, err
			}
			done = append(done, name)
		}
		return done, nil
	}
	whole := NewFS(1)
	if _, err := work(whole); err != nil {
		t.Fatal(err)
	}
	for n := int64(1); n <= whole.Ops(); n++ {
		for _, mode := range []CrashMode{LoseAll, KeepAll, Random} {
			fsys := NewFS(uint64(n))
			fsys.CrashAt(n)
			done, err := work(fsys)
			if !errors.Is(err, ErrCrashed) || !fsys.Crashed() || fsys.Ops() != n {
				t.Fatalf("crash at %d: %v after %d operations", n, err, fsys.Ops())
			}
			after := fsys.Crash(mode)
			for _, name := range done {
				if got := content(t, after, name); got != name {
					t.Fatalf("crash at %d, %s: %s was confirmed and holds %q", n, mode, name, got)
				}
			}
		}
	}
}

func TestSameSeedGivesTheSameCrash(t *testing.T) {
	run := func() map[string][]byte {
		fsys := NewFS(42)
		for i := range 30 {
			f := open(t, fsys, fmt.Sprintf("/f%d", i))
			put1(t, f, 0, fill('x', i*1500))
		}
		must(t, fsys.SyncDir("/"))
		return fsys.Crash(Random).Files()
	}
	first, second := run(), run()
	if fmt.Sprint(first) != fmt.Sprint(second) || len(first) != 30 {
		t.Fatal("two runs of one seed differ")
	}
}

func TestDamageChangesDiskAndReads(t *testing.T) {
	fsys := NewFS(1)
	durableFile(t, fsys, "/f", fill(0xff, 10))
	must(t, fsys.FlipBit("/f", 3, 0), fsys.Zero("/f", 5, 2), fsys.Cut("/f", 8))
	want := "\xff\xff\xff\xfe\xff\x00\x00\xff"
	if got := content(t, fsys, "/f"); got != want {
		t.Errorf("reads %q", got)
	}
	if got := content(t, fsys.Crash(LoseAll), "/f"); got != want {
		t.Errorf("disk holds %q", got)
	}
	if err := NewFS(1).FlipBit("/absent", 0, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("damage to an absent file: %v", err)
	}
	if err := fsys.Clone(KeepAll).FlipBit("/f", 8, 0); err == nil {
		t.Error("damage beyond the end succeeded")
	}
}

func TestLatencyPassesInBubbleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := NewFS(1)
		fsys.SetLatency(func(op Op) time.Duration {
			if op.Kind == OpSync {
				return time.Second
			}
			return 0
		})
		f := open(t, fsys, "/f")
		start := time.Now()
		synced := make(chan error)
		go func() { synced <- f.Sync() }()
		put1(t, f, 0, []byte("x")) // not held up by the sync
		if time.Since(start) != 0 {
			t.Error("a write waited for a sync")
		}
		must(t, <-synced)
		if time.Since(start) != time.Second {
			t.Errorf("sync took %v", time.Since(start))
		}
	})
}

func TestModTimeCanBeSet(t *testing.T) {
	fsys := NewFS(1)
	f := durableFile(t, fsys, "/f", nil)
	at := time.Unix(1000, 0)
	must(t, fsys.SetModTime("/f", at))
	if st, err := f.Stat(); err != nil || !st.ModTime.Equal(at) || st.Name != "f" {
		t.Fatalf("%+v, %v", st, err)
	}
}

func TestWildOffsetIsRefused(t *testing.T) {
	f := open(t, NewFS(1), "/f")
	if _, err := f.WriteAt([]byte("x"), 1<<40); err == nil {
		t.Fatal("a write at 1 TiB succeeded")
	}
	if err := f.Truncate(1 << 40); err == nil {
		t.Fatal("a truncation to 1 TiB succeeded")
	}
}

// TestAgreesWithTheSystem runs random operations on both file systems: answers and content must be the same.
func TestAgreesWithTheSystem(t *testing.T) {
	for seed := range uint64(40) {
		d := differential{t: t, rng: rand.New(rand.NewPCG(seed, 1)), real: sys.Real().FS, fake: NewFS(seed)}
		d.dir = t.TempDir()
		must(t, d.fake.MkdirAll(d.dir, 0o700))
		for range 250 {
			d.step()
		}
		d.compareTree("")
		d.closeAll()
	}
}

type pair struct {
	name       string
	real, fake sys.File
}

type differential struct {
	t          *testing.T
	rng        *rand.Rand
	real, fake sys.FS
	dir        string
	open       []pair
	log        []string
}

func (d *differential) name() string {
	names := []string{"a", "b", "c", "d/a", "d/b", "d/e/f", "d", "d/e", "g"}
	return filepath.Join(d.dir, names[d.rng.IntN(len(names))])
}

// same compares two errors by what callers can tell apart.
func (d *differential) same(what string, real, fake error) {
	d.t.Helper()
	d.log = append(d.log[max(0, len(d.log)-15):], fmt.Sprintf("%s: %v", what, real))
	for _, kind := range []error{nil, fs.ErrNotExist, fs.ErrExist, fs.ErrClosed, io.EOF, sys.ErrLocked} {
		is := func(err error) bool { return err == kind || (kind != nil && errors.Is(err, kind)) }
		if is(real) != is(fake) {
			d.t.Fatalf("%s: the system says %v, the test file system %v\n%q", what, real, fake, d.log)
		}
	}
}

func (d *differential) step() {
	switch d.rng.IntN(12) {
	case 0, 1, 2:
		d.stepOpen()
	case 3:
		from, to := d.name(), d.name()
		d.same("rename "+from+" "+to, d.real.Rename(from, to), d.fake.Rename(from, to))
	case 4:
		name := d.name()
		d.same("remove "+name, d.real.Remove(name), d.fake.Remove(name))
	case 5:
		name := d.name()
		d.same("mkdir "+name, d.real.MkdirAll(name, 0o700), d.fake.MkdirAll(name, 0o700))
	case 6:
		name := d.name()
		d.same("syncdir "+name, d.real.SyncDir(name), d.fake.SyncDir(name))
	case 7:
		name := d.name()
		r, rerr := sys.Exists(d.real, name)
		f, ferr := sys.Exists(d.fake, name)
		d.same("exists "+name, rerr, ferr)
		if r != f {
			d.t.Fatalf("exists %s: %v and %v", name, r, f)
		}
	default:
		if len(d.open) > 0 {
			d.stepFile(d.rng.IntN(len(d.open)))
		}
	}
}

func (d *differential) stepOpen() {
	flags := []int{
		os.O_RDONLY, os.O_RDWR, os.O_WRONLY, os.O_RDWR | os.O_CREATE, os.O_RDWR | os.O_CREATE | os.O_EXCL,
		os.O_RDWR | os.O_CREATE | os.O_TRUNC, os.O_RDWR | os.O_TRUNC,
	}
	name, flag := d.name(), flags[d.rng.IntN(len(flags))]
	r, rerr := d.real.OpenFile(name, flag, 0o600)
	f, ferr := d.fake.OpenFile(name, flag, 0o600)
	d.same(fmt.Sprintf("open %s %x", name, flag), rerr, ferr)
	if rerr == nil {
		d.open = append(d.open, pair{name, r, f})
	}
}

func (d *differential) stepFile(i int) {
	p := d.open[i]
	switch d.rng.IntN(8) {
	case 0, 1:
		b, off := fill(byte('a'+d.rng.IntN(26)), d.rng.IntN(6000)), int64(d.rng.IntN(12_000)-100)
		rn, rerr := p.real.WriteAt(b, off)
		fn, ferr := p.fake.WriteAt(b, off)
		d.same(fmt.Sprintf("write %s %d %d", p.name, off, len(b)), rerr, ferr)
		if rn != fn {
			d.t.Fatalf("wrote %d and %d", rn, fn)
		}
	case 2:
		size := int64(d.rng.IntN(15_000) - 100)
		d.same(fmt.Sprintf("truncate %s %d", p.name, size), p.real.Truncate(size), p.fake.Truncate(size))
	case 3:
		d.same("sync "+p.name, p.real.Sync(), p.fake.Sync())
	case 4:
		d.compareFile(p)
	case 5:
		d.same("lock "+p.name, p.real.Lock(), p.fake.Lock())
	case 6:
		d.same("close "+p.name, p.real.Close(), p.fake.Close())
		if d.rng.IntN(4) > 0 { // else it is used again, to compare the errors
			d.open = append(d.open[:i], d.open[i+1:]...)
		}
	case 7:
		r, rerr := p.real.Stat()
		f, ferr := p.fake.Stat()
		d.same("stat "+p.name, rerr, ferr)
		if r.Size != f.Size || r.IsDir != f.IsDir || r.Name != f.Name {
			d.t.Fatalf("stat %s: %+v and %+v\n%q", p.name, r, f, d.log)
		}
	}
}

func (d *differential) compareFile(p pair) {
	off, length := int64(d.rng.IntN(16_000)), d.rng.IntN(16_000)
	rb, fb := make([]byte, length), make([]byte, length)
	rn, rerr := p.real.ReadAt(rb, off)
	fn, ferr := p.fake.ReadAt(fb, off)
	d.same(fmt.Sprintf("read %s %d %d", p.name, off, length), rerr, ferr)
	if rn != fn || !bytes.Equal(rb, fb) {
		d.t.Fatalf("read %s at %d: %d and %d bytes\n%q", p.name, off, rn, fn, d.log)
	}
}

func (d *differential) compareTree(below string) {
	dir := filepath.Join(d.dir, below)
	r, rerr := d.real.ReadDir(dir)
	f, ferr := d.fake.ReadDir(dir)
	d.same("readdir "+dir, rerr, ferr)
	if len(r) != len(f) {
		d.t.Fatalf("%s holds %v and %v\n%q", dir, r, f, d.log)
	}
	for i := range r {
		if r[i].Name != f[i].Name || r[i].IsDir != f[i].IsDir || r[i].Size != f[i].Size {
			d.t.Fatalf("%s: %+v and %+v\n%q", dir, r[i], f[i], d.log)
		}
		name := filepath.Join(below, r[i].Name)
		if r[i].IsDir {
			d.compareTree(name)
			continue
		}
		rb, rerr := sys.ReadFile(d.real, filepath.Join(d.dir, name), 1<<20)
		fb, ferr := sys.ReadFile(d.fake, filepath.Join(d.dir, name), 1<<20)
		d.same("readfile "+name, rerr, ferr)
		if !bytes.Equal(rb, fb) {
			d.t.Fatalf("%s differs\n%q", name, d.log)
		}
	}
}

func (d *differential) closeAll() {
	for _, p := range d.open {
		p.real.Close()
		p.fake.Close()
	}
}
