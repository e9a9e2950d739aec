package storage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strandline.dev/internal/sys/systest"
)

// TestForeignDirectoryIsRefused: a directory that holds other files is named and left as it was; lost+found, our own leftovers and a
// directory that has become ours are no reason to refuse.
func TestForeignDirectoryIsRefused(t *testing.T) {
	fsys := systest.NewFS(1)
	put := func(names ...string) {
		t.Helper()
		for _, name := range names {
			full := filepath.Join(testRoot, name)
			if err := fsys.MkdirAll(filepath.Dir(full), 0o700); err != nil {
				t.Fatal(err)
			}
			f, err := fsys.OpenFile(full, os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("lost+found/x", "meta.json.tmp", "lock", "letters/a", "notes", "photo", "zebra")
	before, _ := fsys.ReadDir(testRoot)
	_, err := tryTestDir(fsys)
	if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), testRoot) || !strings.Contains(err.Error(), "letters, notes, photo and 1 more") {
		t.Fatalf("%v", err)
	}
	if after, _ := fsys.ReadDir(testRoot); len(after) != len(before) {
		t.Errorf("%d names, %d before", len(after), len(before))
	}
	for _, name := range []string{"letters/a", "letters", "notes", "photo", "zebra"} {
		if err := fsys.Remove(filepath.Join(testRoot, name)); err != nil {
			t.Fatal(err)
		}
	}
	d := newTestDir(t, fsys)
	if err := d.Close(CloseOptions{}); err != nil {
		t.Fatal(err)
	}
	put("notes")
	if _, err := tryTestDir(fsys); err != nil {
		t.Errorf("a data directory with a foreign file in it: %v", err)
	}
}
