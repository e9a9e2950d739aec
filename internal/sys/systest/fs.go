package systest

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"strandline.dev/internal/sys"
)

// FS is a file system in memory that can crash. It implements sys.FS.
type FS struct {
	mu      sync.Mutex // never held while waiting
	root    *inode
	journal []nameChange // pending changes of directories, oldest first
	// pending holds at least the files with something to sync, so that SyncAll costs what changed and not what there is.
	pending map[*inode]struct{}
	rng     *rand.Rand
	boot    int
	dead    bool
	writes  uint64 // orders page writes
	faults  faults
}

// NewFS returns an empty file system; the seed decides what random crashes keep. Its root directory is there and durable.
func NewFS(seed uint64) *FS { return newFS(rand.New(rand.NewPCG(seed, 0x5eed))) }

func newFS(rng *rand.Rand) *FS {
	return &FS{root: newDirInode(), pending: map[*inode]struct{}{}, rng: rng, boot: 1, faults: faults{free: -1}}
}

// BootID names the run of the machine: a power cut changes it, kill -9 does not.
func (fsys *FS) BootID() string { return fmt.Sprintf("boot-%d", fsys.boot) }

// elements splits a name; the root has none.
func elements(name string) []string {
	name = strings.Trim(path.Clean("/"+filepath.ToSlash(name)), "/")
	if name == "" {
		return nil
	}
	return strings.Split(name, "/")
}

func clean(name string) string { return "/" + strings.Join(elements(name), "/") }

// find walks to an inode.
func (fsys *FS) find(parts []string) (*inode, error) {
	n := fsys.root
	for _, p := range parts {
		if !n.isDir {
			return nil, syscall.ENOTDIR
		}
		next, ok := n.entries[p]
		if !ok {
			return nil, syscall.ENOENT
		}
		n = next
	}
	return n, nil
}

// parent walks to the directory of a name and returns its last element.
func (fsys *FS) parent(name string) (dir *inode, last string, err error) {
	parts := elements(name)
	if len(parts) == 0 {
		return nil, "", syscall.EINVAL
	}
	dir, err = fsys.find(parts[:len(parts)-1])
	if err == nil && !dir.isDir {
		err = syscall.ENOTDIR
	}
	return dir, parts[len(parts)-1], err
}

// change performs and journals one step on directories.
func (fsys *FS) change(c nameChange) {
	c.perform()
	fsys.journal = append(fsys.journal, c)
}

// run does one operation: faults first, without the lock, then do under it.
func (fsys *FS) run(op Op, do func() error) error {
	err := fsys.begin(op)
	if err == nil {
		fsys.mu.Lock()
		err = ErrCrashed
		if !fsys.dead {
			err = do()
		}
		fsys.mu.Unlock()
	}
	return wrap(op, err)
}

func wrap(op Op, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op.Kind.String(), Path: op.Name, Err: err}
}

// OpenFile implements sys.FS.
func (fsys *FS) OpenFile(name string, flag int, _ os.FileMode) (sys.File, error) {
	kind := OpOpen
	if flag&os.O_CREATE != 0 {
		kind = OpCreate
	}
	if flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE && fsys.isThere(name) {
		kind = OpOpen
	}
	var f *file
	err := fsys.run(Op{Kind: kind, Name: clean(name)}, func() (err error) {
		f, err = fsys.open(name, flag)
		return err
	})
	if err != nil {
		return nil, err
	}
	if flag&os.O_TRUNC != 0 && flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		if st, err := f.Stat(); err == nil && st.Size > 0 {
			if err := f.Truncate(0); err != nil {
				f.Close()
				return nil, err
			}
		}
	}
	return f, nil
}

// OpenFiles counts the descriptors that are open of files whose names end so.
func (fsys *FS) OpenFiles(suffix string) int {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	return fsys.root.openFiles(suffix)
}

func (n *inode) openFiles(suffix string) (open int) {
	for name, e := range n.entries {
		if e.isDir {
			open += e.openFiles(suffix)
		} else if strings.HasSuffix(name, suffix) {
			open += e.opens
		}
	}
	return open
}

func (fsys *FS) isThere(name string) bool {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	_, err := fsys.find(elements(name))
	return err == nil
}

func (fsys *FS) open(name string, flag int) (*file, error) {
	n, err := fsys.find(elements(name))
	switch {
	case err == syscall.ENOENT && flag&os.O_CREATE != 0:
		dir, last, err := fsys.parent(name)
		if err != nil {
			return nil, err
		}
		n = newFileInode()
		fsys.change(nameChange{{dir, last, n}})
	case err != nil:
		return nil, err
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return nil, syscall.EEXIST
	case n.isDir && flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE) != 0:
		return nil, syscall.EISDIR
	}
	n.opens++
	return &file{fsys: fsys, node: n, name: clean(name), flag: flag}, nil
}

// Rename implements sys.FS.
func (fsys *FS) Rename(oldName, newName string) error {
	op := Op{Kind: OpRename, Name: clean(oldName), To: clean(newName)}
	return fsys.run(op, func() error {
		from, fromLast, err := fsys.parent(oldName)
		if err != nil {
			return err
		}
		to, toLast, err := fsys.parent(newName)
		if err != nil {
			return err
		}
		node, ok := from.entries[fromLast]
		if !ok {
			return syscall.ENOENT
		}
		replaced, exists := to.entries[toLast]
		if exists {
			if replaced == node && !node.isDir {
				return nil
			}
			if err := replaceable(node, replaced); err != nil {
				return err
			}
		}
		if node.isDir && strings.HasPrefix(op.To+"/", op.Name+"/") {
			return syscall.EINVAL
		}
		fsys.change(nameChange{{from, fromLast, nil}, {to, toLast, node}})
		if exists {
			fsys.unlink(replaced)
		}
		return nil
	})
}

func replaceable(node, replaced *inode) error {
	switch {
	case replaced.isDir:
		return syscall.EEXIST // what package os answers before it asks the system
	case node.isDir:
		return syscall.ENOTDIR
	}
	return nil
}

// unlink takes the name off an inode; its bytes are freed with the last open file.
func (fsys *FS) unlink(n *inode) {
	n.named = false
	fsys.release(n)
}

func (fsys *FS) release(n *inode) {
	if !n.named && n.opens == 0 {
		delete(fsys.pending, n)
		fsys.faults.account(-int64(len(n.data)))
	}
}

// Remove implements sys.FS.
func (fsys *FS) Remove(name string) error {
	return fsys.run(Op{Kind: OpRemove, Name: clean(name)}, func() error {
		dir, last, err := fsys.parent(name)
		if err != nil {
			return err
		}
		n, ok := dir.entries[last]
		if !ok {
			return syscall.ENOENT
		}
		if len(n.entries) > 0 {
			return syscall.ENOTEMPTY
		}
		fsys.change(nameChange{{dir, last, nil}})
		fsys.unlink(n)
		return nil
	})
}

// MkdirAll implements sys.FS. Each directory it makes is one operation.
func (fsys *FS) MkdirAll(name string, _ os.FileMode) error {
	parts := elements(name)
	for i := range parts {
		at := strings.Join(parts[:i+1], "/")
		if fsys.isThere(at) && i < len(parts)-1 {
			continue
		}
		if err := fsys.mkdir(at); err != nil {
			return err
		}
	}
	return nil
}

func (fsys *FS) mkdir(name string) error {
	op := Op{Kind: OpMkdir, Name: clean(name)}
	if fsys.isThere(name) {
		op.Kind = OpOpen
	}
	return fsys.run(op, func() error {
		dir, last, err := fsys.parent(name)
		if err != nil {
			return err
		}
		if n, ok := dir.entries[last]; ok {
			if !n.isDir {
				return syscall.ENOTDIR
			}
			return nil
		}
		fsys.change(nameChange{{dir, last, newDirInode()}})
		return nil
	})
}

// ReadDir implements sys.FS.
func (fsys *FS) ReadDir(name string) ([]sys.FileInfo, error) {
	var infos []sys.FileInfo
	err := fsys.run(Op{Kind: OpReadDir, Name: clean(name)}, func() error {
		n, err := fsys.find(elements(name))
		if err != nil {
			return err
		}
		if !n.isDir {
			return syscall.ENOTDIR
		}
		infos = make([]sys.FileInfo, 0, len(n.entries))
		for _, child := range sortedNames(n.entries) {
			infos = append(infos, n.entries[child].info(child))
		}
		return nil
	})
	return infos, err
}

// SyncDir implements sys.FS.
func (fsys *FS) SyncDir(name string) error {
	return fsys.run(Op{Kind: OpSyncDir, Name: clean(name)}, func() error {
		n, err := fsys.find(elements(name))
		if err != nil {
			return err
		}
		if !n.isDir {
			return syscall.ENOTDIR
		}
		fsys.journal = syncDir(fsys.journal, n)
		return nil
	})
}

// SyncAll implements sys.FS.
func (fsys *FS) SyncAll(name string) error {
	op := Op{Kind: OpSyncAll, Name: clean(name)}
	if err := fsys.begin(op); err != nil {
		fsys.failSyncAll(err)
		return wrap(op, err)
	}
	return wrap(op, fsys.syncAll(name))
}

func (fsys *FS) syncAll(name string) error {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	if fsys.dead {
		return ErrCrashed
	}
	if _, err := fsys.find(elements(name)); err != nil {
		return err
	}
	for n := range fsys.pending {
		n.sync()
	}
	clear(fsys.pending)
	for _, c := range fsys.journal {
		c.commit()
	}
	fsys.journal = nil
	return nil
}

// eachFile visits every file that has a name, in name order; also those whose pending removal a crash may undo.
func (fsys *FS) eachFile(visit func(name string, n *inode)) {
	seen := map[*inode]bool{}
	var walk func(name string, n *inode)
	walk = func(name string, n *inode) {
		if seen[n] {
			return
		}
		seen[n] = true
		if !n.isDir {
			visit(name, n)
			return
		}
		for _, entries := range []map[string]*inode{n.entries, n.stored} {
			for _, child := range sortedNames(entries) {
				walk(name+"/"+child, entries[child])
			}
		}
	}
	walk("", fsys.root)
}

func (n *inode) info(name string) sys.FileInfo {
	return sys.FileInfo{Name: name, Size: int64(len(n.data)), ModTime: n.modTime, IsDir: n.isDir}
}

func sortedNames(entries map[string]*inode) []string {
	return slices.Sorted(maps.Keys(entries))
}
