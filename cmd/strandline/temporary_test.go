package main

import (
	"os"
	"path/filepath"
	"testing"

	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
)

// TestSweepOfKilledDevs: only a data directory under dev's own name that nobody has locked goes.
func TestSweepOfKilledDevs(t *testing.T) {
	parent := t.TempDir()
	open := func(name string) *storage.Dir {
		t.Helper()
		d, err := storage.OpenDir(storage.DirOptions{Machine: sys.Real(), Path: filepath.Join(parent, name)})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, name := range []string{"strandline-dev-1", "strandline-dev-mine", "strandline-demo-1", "other"} {
		if err := open(name).Close(storage.CloseOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	running := open("strandline-dev-2")
	defer running.Close(storage.CloseOptions{})
	if err := os.MkdirAll(filepath.Join(parent, "strandline-dev-3", "letters"), 0o700); err != nil { // no data directory of ours
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(parent, "other"), filepath.Join(parent, "strandline-dev-4")); err != nil {
		t.Fatal(err)
	}
	sweepTemporary(parent)
	if _, err := os.Lstat(filepath.Join(parent, "strandline-dev-1")); err == nil {
		t.Error("the directory of a dead dev is still there")
	}
	for _, name := range []string{"strandline-dev-2/meta.json", "strandline-dev-3/letters", "strandline-dev-4", "strandline-dev-mine", "strandline-demo-1", "other/meta.json"} {
		if _, err := os.Lstat(filepath.Join(parent, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
