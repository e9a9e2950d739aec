package sys_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

func batchNames(n int) (names []string) {
	for i := range n {
		names = append(names, "/d/"+string(rune('a'+i)))
	}
	return names
}

// batchFS holds the files with their old content, durable.
func batchFS(t *testing.T, names []string) *systest.FS {
	t.Helper()
	fsys := systest.NewFS(3)
	if err := fsys.MkdirAll("/d", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := sys.WriteFileAtomic(fsys, name, []byte("old")); err != nil {
			t.Fatal(err)
		}
	}
	if err := fsys.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	return fsys
}

func contentOf(t *testing.T, fsys sys.FS, name string) string {
	t.Helper()
	b, err := sys.ReadFile(fsys, name, 100)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestABatchCutShortLeavesEachFileOldOrNew(t *testing.T) {
	for _, files := range []int{3, 20} { // synced one by one, and together
		names := batchNames(files)
		for n := int64(1); ; n++ {
			fsys := batchFS(t, names)
			fsys.CrashAt(fsys.Ops() + n)
			b := sys.NewFileBatch(fsys, "/")
			var errs []error
			for _, name := range names {
				errs = append(errs, b.Write(name, []byte("new")))
			}
			b.Commit(func(_ string, err error) { errs = append(errs, err) })
			for _, mode := range []systest.CrashMode{systest.LoseAll, systest.KeepAll, systest.Random} {
				after := fsys.Clone(mode)
				for _, name := range names {
					got := contentOf(t, after, name)
					if got != "new" && (got != "old" || !fsys.Crashed()) {
						t.Fatalf("%d files, operation %d, %v: %s holds %q", files, n, mode, name, got)
					}
				}
			}
			if !fsys.Crashed() {
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
	}
}

func TestABatchReportsWhatKeepsItsOldContent(t *testing.T) {
	names := batchNames(12)
	fsys := batchFS(t, names)
	fsys.Hook(func(op systest.Op) error {
		if op.Kind == systest.OpSyncAll {
			return &systest.SyncFault{Name: "/nothing", Err: errors.ErrUnsupported}
		}
		if op.Kind == systest.OpSync && strings.HasPrefix(op.Name, names[5]) {
			return syscall.EIO
		}
		return nil
	})
	b := sys.NewFileBatch(fsys, "/")
	for _, name := range names {
		if err := b.Write(name, []byte("new")); err != nil {
			t.Fatal(err)
		}
	}
	var failed []string
	b.Commit(func(name string, _ error) { failed = append(failed, name) })
	if len(failed) != 1 || failed[0] != names[5] || contentOf(t, fsys, names[5]) != "old" || contentOf(t, fsys, names[6]) != "new" {
		t.Fatalf("failed: %v", failed)
	}
}

func TestAnErrorOfAnAtomicWriteNamesTheFileOnce(t *testing.T) {
	fsys := batchFS(t, nil)
	fsys.SetFree(0)
	err := sys.WriteFileAtomic(fsys, "/d/vote", []byte("x"))
	if !sys.IsNoSpace(err) || strings.Count(err.Error(), "/d/vote") != 1 || strings.Contains(err.Error(), ".tmp") {
		t.Fatalf("error %q", err)
	}
}
