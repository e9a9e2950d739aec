//go:build fault

package sys

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// openFault opens a file through a fault FS.
func openFault(t *testing.T, fsys FS, name string, flag int) File {
	t.Helper()
	f, err := fsys.OpenFile(name, flag, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func mustWrite(t *testing.T, f File, off int64, s string) {
	t.Helper()
	if _, err := f.WriteAt([]byte(s), off); err != nil {
		t.Fatal(err)
	}
}

// seen reads through a FS; a new faultFS sees what a restart would.
func seen(t *testing.T, fsys FS, name string) string {
	t.Helper()
	b, err := ReadFile(fsys, name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFaultKillLosesExactlyTheUnsyncedBytes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	fsys := newFaultFS()
	f := openFault(t, fsys, name, os.O_CREATE|os.O_RDWR)
	mustWrite(t, f, 0, "synced")
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, f, 3, "XYZ and more")
	if got := seen(t, fsys, name); got != "synXYZ and more" {
		t.Fatalf("the process sees %q", got)
	}
	if got := seen(t, newFaultFS(), name); got != "synced" {
		t.Fatalf("after kill -9: %q", got)
	}
	if st, err := f.Stat(); err != nil || st.Size != 15 {
		t.Fatalf("size %d, %v", st.Size, err)
	}
}

func TestFaultTruncationIsLostUntilSynced(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	fsys := newFaultFS()
	f := openFault(t, fsys, name, os.O_CREATE|os.O_RDWR)
	mustWrite(t, f, 0, "0123456789")
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(4), f.Truncate(6)); err != nil {
		t.Fatal(err)
	}
	if got := seen(t, fsys, name); got != "0123\x00\x00" {
		t.Fatalf("the process sees %q", got)
	}
	if got := seen(t, newFaultFS(), name); got != "0123456789" {
		t.Fatalf("after kill -9: %q", got)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := seen(t, newFaultFS(), name); got != "0123\x00\x00" {
		t.Fatalf("after sync and kill -9: %q", got)
	}
}

func TestFaultUnsyncedBytesOutliveClosingAndRenaming(t *testing.T) {
	dir := t.TempDir()
	fsys := newFaultFS()
	if err := fsys.MkdirAll(filepath.Join(dir, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	f := openFault(t, fsys, filepath.Join(dir, "a", "f"), os.O_CREATE|os.O_WRONLY)
	mustWrite(t, f, 0, "pending")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := fsys.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "b", "f")
	if got := seen(t, fsys, name); got != "pending" {
		t.Fatalf("the process sees %q", got)
	}
	infos, err := fsys.ReadDir(filepath.Join(dir, "b"))
	if err != nil || len(infos) != 1 || infos[0].Size != 7 {
		t.Fatalf("listed as %v, %v", infos, err)
	}
	if got := seen(t, newFaultFS(), name); got != "" {
		t.Fatalf("after kill -9: %q", got)
	}
	reader := openFault(t, fsys, name, os.O_RDONLY)
	if err := reader.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := seen(t, newFaultFS(), name); got != "pending" {
		t.Fatalf("after sync and kill -9: %q", got)
	}
}

func TestFaultSyncAllHandsEverythingOver(t *testing.T) {
	dir := t.TempDir()
	fsys := newFaultFS()
	for i := range 20 {
		f := openFault(t, fsys, filepath.Join(dir, fmt.Sprint(i)), os.O_CREATE|os.O_RDWR)
		mustWrite(t, f, int64(i)*1000, "x")
		if i%2 == 0 {
			f.Close()
		}
	}
	if err := fsys.SyncAll(dir); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if got := seen(t, newFaultFS(), filepath.Join(dir, fmt.Sprint(i))); len(got) != i*1000+1 || got[i*1000] != 'x' {
			t.Fatalf("file %d has %d bytes", i, len(got))
		}
	}
}

func TestFaultReplacedAndRemovedFilesDoNotComeBack(t *testing.T) {
	dir := t.TempDir()
	fsys := newFaultFS()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	old := openFault(t, fsys, b, os.O_CREATE|os.O_RDWR)
	mustWrite(t, old, 0, "old")
	mustWrite(t, openFault(t, fsys, a, os.O_CREATE|os.O_RDWR), 0, "new")
	if err := fsys.Rename(a, b); err != nil {
		t.Fatal(err)
	}
	if got := seen(t, fsys, b); got != "new" {
		t.Fatalf("after the rename: %q", got)
	}
	if err := fsys.Remove(b); err != nil {
		t.Fatal(err)
	}
	if err := fsys.SyncAll(dir); err != nil {
		t.Fatal(err)
	}
	fresh := openFault(t, fsys, b, os.O_CREATE|os.O_RDWR)
	if st, err := fresh.Stat(); err != nil || st.Size != 0 {
		t.Fatalf("a new file has %d bytes, %v", st.Size, err)
	}
	got := make([]byte, 3)
	if _, err := old.ReadAt(got, 0); err != nil || string(got) != "old" {
		t.Fatalf("the open file that was replaced reads %q, %v", got, err)
	}
}

// TestFaultAgreesWithAModel drives one file with random operations, and checks what is seen and what a kill would leave.
func TestFaultAgreesWithAModel(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		name := filepath.Join(t.TempDir(), "f")
		fsys := newFaultFS()
		f := openFault(t, fsys, name, os.O_CREATE|os.O_RDWR)
		var now, synced []byte
		for range 60 {
			switch rng.IntN(6) {
			case 0, 1, 2:
				p, off := bytes.Repeat([]byte{byte(rng.IntN(255) + 1)}, rng.IntN(6000)), rng.IntN(20_000)
				mustWrite(t, f, int64(off), string(p))
				if len(p) > 0 {
					now = append(now, make([]byte, max(0, off+len(p)-len(now)))...)
					copy(now[off:], p)
				}
			case 3:
				size := rng.IntN(25_000)
				if err := f.Truncate(int64(size)); err != nil {
					t.Fatal(err)
				}
				now = append(now[:min(size, len(now)):min(size, len(now))], make([]byte, max(0, size-len(now)))...)
			case 4:
				if err := f.Sync(); err != nil {
					t.Fatal(err)
				}
				synced = bytes.Clone(now)
			case 5:
				f.Close()
				f = openFault(t, fsys, name, os.O_RDWR)
			}
			if got := seen(t, fsys, name); got != string(now) {
				t.Fatalf("seed %d: seen bytes differ (%d, want %d)", seed, len(got), len(now))
			}
			if got := seen(t, newFaultFS(), name); got != string(synced) {
				t.Fatalf("seed %d: bytes left by a kill differ (%d, want %d)", seed, len(got), len(synced))
			}
		}
	}
}

func TestFaultErrorsAreTheSystems(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	fsys := newFaultFS()
	f := openFault(t, fsys, name, os.O_CREATE|os.O_RDWR)
	if _, err := f.ReadAt(make([]byte, 1), 0); err != io.EOF {
		t.Fatalf("read at the end: %v", err)
	}
	reader := openFault(t, fsys, name, os.O_RDONLY)
	if _, err := reader.WriteAt([]byte("x"), 0); err == nil {
		t.Fatal("a read-only file was written")
	}
	if err := reader.Truncate(0); err == nil {
		t.Fatal("a read-only file was truncated")
	}
	f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("write after close: %v", err)
	}
	if _, err := f.ReadAt([]byte("x"), 0); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("read after close: %v", err)
	}
}

func TestFaultBootIDIsNew(t *testing.T) {
	if !FaultBuild || Real().BootID() == systemBootID() || Real().BootID() == "" {
		t.Fatalf("boot id %q under the fault build", Real().BootID())
	}
}
