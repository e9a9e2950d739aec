//go:build fault

package sys

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// faultFS makes kill -9 a power cut: bytes and sizes that were not synced live in this process, and reach the operating
// system only at Sync and SyncAll. Names act at once: what a power cut does to names is tested with systest.
//
// It trades memory and speed for that: everything unsynced is held, by page and without bound, and the lock of a file is
// held while a page is read from the system. A process that stops without syncing loses bytes too.
type faultFS struct {
	system systemFS

	// names is held to change names, and shared by who opens a file by its name to write it back.
	names sync.RWMutex
	nodes map[string]*faultNode // files that are open or hold unsynced bytes, by absolute path
}

// faultPage is the unit in which unsynced bytes are held.
const faultPage = 4096

// noLimit says that all bytes of the system's file still count.
const noLimit = math.MaxInt64

// faultNode is a file, apart from who has it open.
type faultNode struct {
	flush sync.Mutex // one write-back or truncation at a time; taken before mu

	mu       sync.Mutex
	path     string
	removed  bool
	handles  int
	size     int64
	modTime  time.Time
	dirty    bool
	limit    int64            // the system's bytes from here on are truncated, though it does not know yet
	pages    map[int64][]byte // unsynced pages
	flushing map[int64][]byte // the same, on their way to the system
}

func newFaultFS() *faultFS { return &faultFS{nodes: map[string]*faultNode{}} }

func absolute(name string) string {
	if full, err := filepath.Abs(name); err == nil {
		return full
	}
	return filepath.Clean(name)
}

// OpenFile implements FS.
func (fsys *faultFS) OpenFile(name string, flag int, perm os.FileMode) (File, error) {
	asked := flag
	if flag&os.O_WRONLY != 0 {
		flag = flag&^os.O_WRONLY | os.O_RDWR // pages are read before they are changed
	}
	fsys.names.Lock()
	f, err := fsys.open(name, flag&^os.O_TRUNC, perm)
	fsys.names.Unlock()
	if err != nil || asked&os.O_TRUNC == 0 {
		return f, err
	}
	return f, f.Truncate(0)
}

func (fsys *faultFS) open(name string, flag int, perm os.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if st.IsDir() {
		return &systemFile{File: f}, nil
	}
	full := absolute(name)
	n := fsys.nodes[full]
	if n == nil {
		n = &faultNode{path: full, size: st.Size(), modTime: st.ModTime(), limit: noLimit, pages: map[int64][]byte{}}
		fsys.nodes[full] = n
	}
	n.handles++
	return &faultFile{fsys: fsys, node: n, os: f, writable: flag&os.O_RDWR != 0}, nil
}

// Rename implements FS.
func (fsys *faultFS) Rename(oldName, newName string) error {
	fsys.names.Lock()
	defer fsys.names.Unlock()
	if err := fsys.system.Rename(oldName, newName); err != nil {
		return err
	}
	from, to := absolute(oldName), absolute(newName)
	if from == to {
		return nil
	}
	fsys.forget(to)
	moved := map[string]*faultNode{}
	for path, n := range fsys.nodes {
		if rest, ok := strings.CutPrefix(path, from); ok && (rest == "" || rest[0] == filepath.Separator) {
			moved[to+rest] = n
			delete(fsys.nodes, path)
		}
	}
	for path, n := range moved {
		fsys.nodes[path] = n
		n.mu.Lock()
		n.path = path
		n.mu.Unlock()
	}
	return nil
}

// Remove implements FS.
func (fsys *faultFS) Remove(name string) error {
	fsys.names.Lock()
	defer fsys.names.Unlock()
	if err := fsys.system.Remove(name); err != nil {
		return err
	}
	fsys.forget(absolute(name))
	return nil
}

// forget takes the name off a file; who has it open still sees its bytes.
func (fsys *faultFS) forget(path string) {
	if n := fsys.nodes[path]; n != nil {
		n.mu.Lock()
		n.removed = true
		n.mu.Unlock()
		delete(fsys.nodes, path)
	}
}

// MkdirAll implements FS.
func (fsys *faultFS) MkdirAll(name string, perm os.FileMode) error {
	return fsys.system.MkdirAll(name, perm)
}

// ReadDir implements FS.
func (fsys *faultFS) ReadDir(name string) ([]FileInfo, error) {
	fsys.names.RLock()
	defer fsys.names.RUnlock()
	infos, err := fsys.system.ReadDir(name)
	for i := range infos {
		if n := fsys.nodes[absolute(filepath.Join(name, infos[i].Name))]; n != nil {
			n.mu.Lock()
			infos[i].Size, infos[i].ModTime = n.size, n.modTime
			n.mu.Unlock()
		}
	}
	return infos, err
}

// SyncDir implements FS.
func (fsys *faultFS) SyncDir(name string) error { return fsys.system.SyncDir(name) }

// SyncAll implements FS.
func (fsys *faultFS) SyncAll(name string) error {
	fsys.names.RLock()
	defer fsys.names.RUnlock()
	for _, n := range fsys.nodes {
		if err := n.writeBackByName(); err != nil {
			return err
		}
	}
	return fsys.system.SyncAll(name)
}

// writeBackByName hands the unsynced bytes of a file to the system; names must not change meanwhile.
func (n *faultNode) writeBackByName() error {
	n.mu.Lock()
	path, skip := n.path, !n.dirty || n.removed
	n.mu.Unlock()
	if skip {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed by somebody else, as tests do with their directories
	}
	if err != nil {
		return err
	}
	return errors.Join(n.writeBack(f), f.Close())
}

// writeBack hands the unsynced bytes to the system, through a descriptor of this very file.
func (n *faultNode) writeBack(f *os.File) error {
	n.flush.Lock()
	defer n.flush.Unlock()
	n.mu.Lock()
	n.flushing, n.pages = n.pages, map[int64][]byte{}
	size, limit := n.size, n.limit
	n.mu.Unlock()

	err := cutTo(f, limit)
	n.mu.Lock()
	n.limit = noLimit
	n.mu.Unlock()
	for page, b := range n.flushing {
		start := page * faultPage
		if err == nil && start < size {
			_, err = f.WriteAt(b[:min(faultPage, size-start)], start)
		}
	}
	if err == nil {
		err = growTo(f, size)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flushing = nil
	n.dirty = len(n.pages) > 0 || n.size != size
	return err
}

// cutTo shortens the system's file to limit, if it is longer.
func cutTo(f *os.File, limit int64) error {
	st, err := f.Stat()
	if err == nil && st.Size() > limit {
		err = f.Truncate(limit)
	}
	return err
}

// growTo lengthens the system's file to size, if it is shorter.
func growTo(f *os.File, size int64) error {
	st, err := f.Stat()
	if err == nil && st.Size() < size {
		err = f.Truncate(size)
	}
	return err
}

// page returns the bytes of one page as they are seen; the caller holds mu and must not change them.
func (n *faultNode) page(f *os.File, page int64) ([]byte, error) {
	if b := n.pages[page]; b != nil {
		return b, nil
	}
	if b := n.flushing[page]; b != nil {
		return b, nil
	}
	b := make([]byte, faultPage)
	start := page * faultPage
	if start >= n.limit {
		return b, nil
	}
	if _, err := f.ReadAt(b[:min(faultPage, n.limit-start)], start); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b, nil
}

// faultFile is an open file.
type faultFile struct {
	fsys     *faultFS
	node     *faultNode
	os       *os.File
	writable bool
}

// ReadAt implements io.ReaderAt.
func (f *faultFile) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return f.os.ReadAt(p, off) // the system's own error
	}
	n := f.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, err := f.os.Stat(); err != nil {
		return 0, err // closed
	}
	done := 0
	for done < len(p) && off < n.size {
		b, err := n.page(f.os, off/faultPage)
		if err != nil {
			return done, err
		}
		b = b[off%faultPage:]
		c := copy(p[done:], b[:min(int64(len(b)), n.size-off)])
		done += c
		off += int64(c)
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// WriteAt implements io.WriterAt: the bytes stay in this process.
func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || !f.writable {
		return f.os.WriteAt(p, off) // the system's own error
	}
	n := f.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, err := f.os.Stat(); err != nil {
		return 0, err // closed
	}
	done := 0
	for done < len(p) {
		at := off + int64(done)
		b, err := n.writablePage(f.os, at/faultPage)
		if err != nil {
			return done, err
		}
		done += copy(b[at%faultPage:], p[done:])
		n.size = max(n.size, off+int64(done))
		n.dirty = true
	}
	n.modTime = time.Now()
	return done, nil
}

// writablePage returns a page that belongs to the unsynced bytes; the caller holds mu.
func (n *faultNode) writablePage(f *os.File, page int64) ([]byte, error) {
	if b := n.pages[page]; b != nil {
		return b, nil
	}
	b, err := n.page(f, page)
	if err != nil {
		return nil, err
	}
	own := append(make([]byte, 0, faultPage), b...)
	n.pages[page] = own
	return own, nil
}

// Truncate implements File: the size stays in this process.
func (f *faultFile) Truncate(size int64) error {
	if size < 0 || !f.writable {
		return f.os.Truncate(size) // the system's own error
	}
	n := f.node
	n.flush.Lock()
	defer n.flush.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, err := f.os.Stat(); err != nil {
		return err // closed
	}
	if size < n.size {
		n.limit = min(n.limit, size)
		for page, b := range n.pages {
			if start := page * faultPage; start >= size {
				delete(n.pages, page)
			} else if size-start < faultPage {
				clear(b[size-start:])
			}
		}
	}
	n.size = size
	n.dirty = true
	n.modTime = time.Now()
	return nil
}

// Sync implements File.
func (f *faultFile) Sync() error {
	f.fsys.names.RLock()
	defer f.fsys.names.RUnlock()
	var err error
	if f.writable {
		err = f.node.writeBack(f.os)
	} else {
		err = f.node.writeBackByName()
	}
	if err != nil {
		return err
	}
	return syncFile(f.os)
}

// Stat implements File.
func (f *faultFile) Stat() (FileInfo, error) {
	st, err := f.os.Stat()
	if err != nil {
		return FileInfo{}, err
	}
	info := fileInfo(st)
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	info.Size, info.ModTime = f.node.size, f.node.modTime
	return info, nil
}

// Lock implements File.
func (f *faultFile) Lock() error { return lockFile(f.os) }

// Close implements File. Unsynced bytes stay for who opens the file next.
func (f *faultFile) Close() error {
	f.fsys.names.Lock()
	defer f.fsys.names.Unlock()
	if err := f.os.Close(); err != nil {
		return err
	}
	n := f.node
	n.mu.Lock()
	defer n.mu.Unlock()
	n.handles--
	if n.handles == 0 && !n.dirty && !n.removed {
		delete(f.fsys.nodes, n.path)
	}
	return nil
}
