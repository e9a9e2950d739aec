package sealed

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"strandline.dev/internal/sys"
)

// FS is a file system that seals the files which hold records and metadata: segments, and the metadata log's copy and snapshots. All
// others pass: they hold offsets, sizes and times.
type FS struct {
	sys.FS
	keys Keys
}

// New returns fsys with files sealed. Without keys files are written as they are, and one that is sealed is refused by name.
func New(fsys sys.FS, keys Keys) *FS { return &FS{fsys, keys} }

// Open is New with the keyring of that file; "" stands for no keys. Errors: those of OpenKeyring.
func Open(fsys sys.FS, keyring string) (*FS, error) {
	if keyring == "" {
		return New(fsys, nil), nil
	}
	keys, err := OpenKeyring(fsys, keyring)
	if err != nil {
		return nil, err
	}
	return New(fsys, keys), nil
}

// holdsPayload says whether files of this name are sealed.
func holdsPayload(name string) bool {
	base := strings.TrimSuffix(filepath.Base(name), ".tmp")
	return strings.HasSuffix(base, ".log") || strings.HasSuffix(base, ".cleaned") || strings.Contains(base, ".snap") || base == "log.copy"
}

// OpenFile opens a file. Errors of a sealed one, besides those of the file system: ErrNoKeys, ErrUnknownKey, ErrWrongKey.
func (s *FS) OpenFile(name string, flag int, perm os.FileMode) (sys.File, error) {
	if flag&os.O_WRONLY != 0 && holdsPayload(name) {
		flag = flag&^os.O_WRONLY | os.O_RDWR // what is there has to be looked at
	}
	inner, err := s.FS.OpenFile(name, flag, perm)
	if err != nil || !holdsPayload(name) {
		return inner, err
	}
	f := &file{inner: inner, keys: s.keys, path: name, bound: boundTo(name)}
	if err := f.open(); err != nil {
		inner.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	if f.mu.plain && s.keys == nil {
		return inner, nil // and it stays so: nothing stands in the way of those who encrypt nothing
	}
	return f, nil
}

// boundTo is what a file cannot be moved away from unnoticed: its directory, which has the topic's id and the partition in its name.
func boundTo(name string) []byte {
	dir := filepath.Dir(name)
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs // "." has a name too
	}
	return []byte(filepath.Base(dir))
}

// ReadDir lists a directory; the size of a sealed file is that of its plain bytes. A file whose key is not there is an error here too: who
// lists a log finds out before anything is begun beside it. Errors: those of OpenFile.
func (s *FS) ReadDir(name string) ([]sys.FileInfo, error) {
	list, err := s.FS.ReadDir(name)
	if err != nil {
		return nil, err
	}
	for i := range list {
		e := &list[i]
		if e.IsDir || e.Size == 0 || !holdsPayload(e.Name) {
			continue
		}
		if e.Size, err = s.plainSize(filepath.Join(name, e.Name), e.Size); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// StoredDir is ReadDir with the sizes that files have on the disk.
func (s *FS) StoredDir(name string) ([]sys.FileInfo, error) { return s.FS.ReadDir(name) }

func (s *FS) plainSize(name string, size int64) (int64, error) {
	inner, err := s.FS.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer inner.Close()
	l, err := scan(inner, size)
	if err != nil || !l.sealed {
		return size, err
	}
	if l.whole {
		_, err = openHeader(s.keys, l.id, l.wrapped, boundTo(name))
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return l.size + l.unread, nil
}
