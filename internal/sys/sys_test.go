package sys_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"strandline.dev/internal/sys"
)

func write(t *testing.T, fsys sys.FS, name string, data []byte) {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
}

func TestWriteFileAtomicReplacesTheWholeFile(t *testing.T) {
	fsys, name := sys.Real().FS, filepath.Join(t.TempDir(), "state")
	for _, want := range []string{"a long first content", "short", ""} {
		if err := sys.WriteFileAtomic(fsys, name, []byte(want)); err != nil {
			t.Fatal(err)
		}
		got, err := sys.ReadFile(fsys, name, 100)
		if err != nil || string(got) != want {
			t.Fatalf("read %q, %v; want %q", got, err, want)
		}
		onDisk, err := os.ReadFile(name)
		if err != nil || string(onDisk) != want {
			t.Fatalf("on disk %q, %v; want %q", onDisk, err, want)
		}
	}
	infos, err := fsys.ReadDir(filepath.Dir(name))
	if err != nil || len(infos) != 1 || infos[0].Name != "state" {
		t.Fatalf("directory holds %v, %v; want only the file", infos, err)
	}
	if st, err := os.Stat(name); err != nil || st.Mode().Perm()&0o077 != 0 {
		t.Fatalf("mode %v, %v: others can read it", st.Mode(), err)
	}
}

func TestI14_WriteFileAtomicLeavesNoTemporaryFileWhenItFails(t *testing.T) {
	fsys, name := sys.Real().FS, filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(name, 0o700); err != nil { // nothing can be renamed over a directory
		t.Fatal(err)
	}
	if err := sys.WriteFileAtomic(fsys, name, []byte("content")); err == nil {
		t.Fatal("a directory was replaced by a file")
	}
	infos, err := fsys.ReadDir(filepath.Dir(name))
	if err != nil || len(infos) != 1 {
		t.Fatalf("directory holds %v, %v; want only the directory", infos, err)
	}
}

func TestI14_ReadFileRefusesMoreThanItsLimit(t *testing.T) {
	fsys, name := sys.Real().FS, filepath.Join(t.TempDir(), "big")
	write(t, fsys, name, make([]byte, 11))
	if _, err := sys.ReadFile(fsys, name, 10); !errors.Is(err, sys.ErrTooLarge) {
		t.Fatalf("got %v, want ErrTooLarge", err)
	}
	if b, err := sys.ReadFile(fsys, name, 11); err != nil || len(b) != 11 {
		t.Fatalf("got %d bytes, %v at the limit", len(b), err)
	}
	if _, err := sys.ReadFile(fsys, name+"-absent", 10); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want ErrNotExist", err)
	}
}

func TestExistsTellsFilesDirectoriesAndAbsence(t *testing.T) {
	fsys, dir := sys.Real().FS, t.TempDir()
	write(t, fsys, filepath.Join(dir, "file"), nil)
	for name, want := range map[string]bool{"file": true, ".": true, "absent": false, "absent/below": false} {
		got, err := sys.Exists(fsys, filepath.Join(dir, name))
		if err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", name, got, err, want)
		}
	}
}

func TestRemoveAllTakesTreesFilesAndAbsence(t *testing.T) {
	fsys, dir := sys.Real().FS, t.TempDir()
	tree := filepath.Join(dir, "tree")
	if err := fsys.MkdirAll(filepath.Join(tree, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, fsys, filepath.Join(tree, "a", "b", "f"), []byte("x"))
	write(t, fsys, filepath.Join(tree, "g"), []byte("x"))
	write(t, fsys, filepath.Join(dir, "plain"), []byte("x"))
	for _, name := range []string{tree, filepath.Join(dir, "plain"), filepath.Join(dir, "absent")} {
		if err := sys.RemoveAll(fsys, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if infos, err := fsys.ReadDir(dir); err != nil || len(infos) != 0 {
		t.Fatalf("left %v, %v", infos, err)
	}
}

func TestLockIsExclusiveAndEndsWithTheFile(t *testing.T) {
	fsys, name := sys.Real().FS, filepath.Join(t.TempDir(), "lock")
	open := func() sys.File {
		f, err := fsys.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, second := open(), open()
	defer second.Close()
	if err := first.Lock(); err != nil {
		t.Fatal(err)
	}
	if err := second.Lock(); !errors.Is(err, sys.ErrLocked) {
		t.Fatalf("second lock: %v, want ErrLocked", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.Lock(); err != nil {
		t.Fatalf("after the first closed: %v", err)
	}
}

func TestSyncsWorkOrSayUnsupported(t *testing.T) {
	fsys, dir := sys.Real().FS, t.TempDir()
	write(t, fsys, filepath.Join(dir, "f"), bytes.Repeat([]byte("x"), 10_000))
	if err := fsys.SyncDir(dir); err != nil {
		t.Fatal(err)
	}
	if err := fsys.SyncAll(dir); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
	if err := fsys.SyncAll(filepath.Join(dir, "absent")); err == nil {
		t.Fatal("SyncAll of an absent directory succeeded")
	}
	if err := fsys.SyncDir(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("SyncDir of an absent directory: %v", err)
	}
}

func TestI4_BootIDIsTheSameWithinOneRun(t *testing.T) {
	first, second := sys.Real().BootID(), sys.Real().BootID()
	if first != second {
		t.Fatalf("%q, then %q", first, second)
	}
	if _, err := os.Stat("/proc/sys/kernel/random/boot_id"); err == nil && first == "" {
		t.Fatal("this system has a boot id and it was not read")
	}
}

func TestIsNoSpaceKnowsAFullDisk(t *testing.T) {
	for _, err := range []error{syscall.ENOSPC, &fs.PathError{Op: "write", Err: syscall.ENOSPC}} {
		if !sys.IsNoSpace(err) {
			t.Errorf("%v is not taken for a full disk", err)
		}
	}
	for _, err := range []error{nil, syscall.EIO, fs.ErrNotExist} {
		if sys.IsNoSpace(err) {
			t.Errorf("%v is taken for a full disk", err)
		}
	}
}

func TestNetCarriesBytesAndRefusesWhereNobodyListens(t *testing.T) {
	n := sys.Real().Net
	l, err := n.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = c.Write([]byte("hello"))
			err = errors.Join(err, c.Close())
		}
		accepted <- err
	}()
	c, err := n.Dial(context.Background(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := make([]byte, 5)
	if k, err := c.Read(b); err != nil || string(b[:k]) != "hello" {
		t.Fatalf("read %q, %v", b[:k], err)
	}
	if err := errors.Join(<-accepted, l.Close()); err != nil {
		t.Fatal(err)
	}
	if c, err := n.Dial(context.Background(), l.Addr().String()); err == nil {
		c.Close()
		t.Fatal("a dial to a closed listener succeeded")
	}
}
