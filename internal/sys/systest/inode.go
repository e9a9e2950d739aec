package systest

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// inode is a file or a directory, apart from its name.
type inode struct {
	isDir   bool
	modTime time.Time

	// A directory: what is seen, and what a power cut would leave if nothing of the journal survived.
	entries map[string]*inode
	stored  map[string]*inode

	// A file: what is seen (the page cache), and what the disk holds.
	data    []byte
	durable []byte
	// dirty holds the pages that the next Sync writes, with the order of their last write. A page that is not dirty may
	// still differ from durable: a failed Sync dropped it (I11).
	dirty map[int64]uint64
	// cut is the smallest size below len(durable) that the file had since the last Sync, or -1: a pending truncation.
	cut int64
	// syncErr is told once by the next Sync: a failed SyncAll left it.
	syncErr error

	lockedBy *file
	opens    int  // open files
	named    bool // false once removed; its bytes are freed with the last open file
}

func newDirInode() *inode {
	return &inode{isDir: true, entries: map[string]*inode{}, stored: map[string]*inode{}, named: true, cut: -1, modTime: timeNow()}
}

func newFileInode() *inode {
	return &inode{dirty: map[int64]uint64{}, named: true, cut: -1, modTime: timeNow()}
}

// write puts p at off, which the caller has checked; the pages become pending.
func (n *inode) write(p []byte, off int64, order uint64) {
	if len(p) == 0 {
		return
	}
	end := off + int64(len(p))
	n.data = grow(n.data, end)
	copy(n.data[off:end], p)
	for page := off / pageSize; page*pageSize < end; page++ {
		n.dirty[page] = order
	}
	n.modTime = timeNow()
}

// resize sets the size; bytes that come in are zero.
func (n *inode) resize(size int64) {
	if size < int64(len(n.data)) {
		clear(n.data[size:])
		n.data = n.data[:size]
		maps.DeleteFunc(n.dirty, func(page int64, _ uint64) bool { return page*pageSize >= size })
		if size < int64(len(n.durable)) && (n.cut < 0 || size < n.cut) {
			n.cut = size
		}
	}
	n.data = grow(n.data, size)
	n.modTime = timeNow()
}

// sync makes what is pending durable.
func (n *inode) sync() {
	n.durable = n.flushed(n.durable)
	n.settle()
}

// drop is what a kernel does after a failed write-back: the pages count as clean though the disk never got them.
func (n *inode) drop() { clear(n.dirty) }

// settle forgets what was pending.
func (n *inode) settle() {
	clear(n.dirty)
	n.cut = -1
}

// flushed returns base, which holds the durable bytes, with everything pending applied.
func (n *inode) flushed(base []byte) []byte {
	size := int64(len(n.data))
	if n.cut >= 0 {
		clear(base[n.cut:])
		base = base[:n.cut]
	}
	if size < int64(len(base)) {
		base = base[:size]
	}
	base = grow(base, size)
	for page := range n.dirty {
		copy(base[page*pageSize:], n.page(page))
	}
	return base
}

// page returns the bytes of one page as they are seen; the last page of a file is short.
func (n *inode) page(page int64) []byte {
	start := page * pageSize
	return n.data[start:min(start+pageSize, int64(len(n.data)))]
}

// pendingPages lists the dirty pages in the order of their last write, then by position.
func (n *inode) pendingPages() []int64 {
	pages := slices.Collect(maps.Keys(n.dirty))
	slices.SortFunc(pages, func(a, b int64) int {
		return cmp.Or(cmp.Compare(n.dirty[a], n.dirty[b]), cmp.Compare(a, b))
	})
	return pages
}

// isPending tells whether a Sync has something to do.
func (n *inode) isPending() bool {
	return !n.isDir && (len(n.dirty) > 0 || n.cut >= 0 || len(n.data) != len(n.durable))
}

// grow extends b with zeros to at least size bytes. Bytes between len and cap may be old, so they are cleared.
func grow(b []byte, size int64) []byte {
	old := int64(len(b))
	if size <= old {
		return b
	}
	b = slices.Grow(b, int(size-old))[:size]
	clear(b[old:])
	return b
}
