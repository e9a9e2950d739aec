package sys_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

func TestSpace_IsOfTheFileSystemThatHoldsTheName(t *testing.T) {
	dir := t.TempDir()
	s, err := sys.Real().Space(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.Total <= 0 || s.Usable < 0 || s.Usable > s.Total {
		t.Errorf("%+v", s)
	}
	if _, err := sys.Real().Space(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
}

func TestSpace_OfTheTestDiskFollowsItsFiles(t *testing.T) {
	fsys := systest.NewFS(1)
	m := systest.Machine(fsys, nil, nil)
	before, err := m.Space("/")
	if err != nil {
		t.Fatal(err)
	}
	write(t, fsys, "/file", make([]byte, 1000))
	after, err := m.Space("/")
	if err != nil || after.Total != before.Total || after.Usable != before.Usable-1000 {
		t.Errorf("%+v, then %+v: %v", before, after, err)
	}
	fsys.SetFree(24)
	if s, err := m.Space("/"); err != nil || s != (sys.Space{Total: 1024, Usable: 24}) {
		t.Errorf("limited: %+v, %v", s, err)
	}
}
