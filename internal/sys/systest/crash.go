package systest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
)

// CrashMode says what a crash leaves of what was not synced.
type CrashMode uint8

const (
	// LoseAll is a power cut that keeps synced bytes and synced names only.
	LoseAll CrashMode = iota
	// KeepAll is a power cut just after everything happened to reach the disk.
	KeepAll
	// Random is a power cut in between, drawn from the seed; see the fault model in the package comment.
	Random
	// KillProcess is kill -9: nothing is lost, and nothing becomes durable by it. The boot id stays.
	KillProcess
)

// String names the mode.
func (m CrashMode) String() string {
	names := [...]string{"lose-all", "keep-all", "random", "kill-process"}
	if int(m) < len(names) {
		return names[m]
	}
	return fmt.Sprintf("mode-%d", uint8(m))
}

// Crash ends this machine: every later operation on the file system and its open files fails with ErrCrashed. It returns the
// file system that the next start finds. Faults, hooks and limits do not carry over.
func (fsys *FS) Crash(mode CrashMode) *FS {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	fsys.dead = true
	return fsys.image(mode)
}

// Clone returns what Crash would, and leaves this file system running: for looking at the same moment under several modes,
// also from inside a hook. Each call draws anew in mode Random.
func (fsys *FS) Clone(mode CrashMode) *FS {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	return fsys.image(mode)
}

func (fsys *FS) image(mode CrashMode) *FS {
	rng := rand.New(rand.NewPCG(fsys.rng.Uint64(), fsys.rng.Uint64()))
	next := newFS(rng)
	next.boot = fsys.boot
	c := copier{mode: mode, rng: rng, copies: map[*inode]*inode{}}
	if mode == KillProcess {
		c.kept = fsys.journal
		next.root = c.copy(fsys.root)
		next.journal = c.journal(fsys.journal)
		for n := range fsys.pending {
			if copied, ok := c.copies[n]; ok {
				next.pending[copied] = struct{}{}
			}
		}
	} else {
		next.boot++
		c.kept = survivingChanges(fsys.journal, mode, rng)
		next.root = c.copy(fsys.root)
	}
	return next
}

// copier copies a tree as a crash leaves it.
type copier struct {
	mode   CrashMode
	rng    *rand.Rand
	kept   []nameChange
	copies map[*inode]*inode
}

func (c *copier) copy(n *inode) *inode {
	if done, ok := c.copies[n]; ok {
		return done
	}
	if n.isDir {
		return c.copyDir(n)
	}
	out := newFileInode()
	c.copies[n] = out
	out.modTime = n.modTime
	if c.mode == KillProcess {
		out.data, out.durable = bytes.Clone(n.data), bytes.Clone(n.durable)
		for page, order := range n.dirty {
			out.dirty[page] = order
		}
		out.cut, out.syncErr = n.cut, n.syncErr
		return out
	}
	out.durable = c.survivingBytes(n)
	out.data = bytes.Clone(out.durable)
	return out
}

func (c *copier) copyDir(n *inode) *inode {
	out := newDirInode()
	c.copies[n] = out
	out.modTime = n.modTime
	stored := map[string]*inode{}
	for name, child := range n.stored {
		stored[name] = child
	}
	seen := n.entries
	if c.mode != KillProcess {
		for _, change := range c.kept {
			for _, p := range change {
				if p.dir == n {
					put(stored, p.name, p.node)
				}
			}
		}
		seen = stored
	}
	// In name order: the copies draw from the seed.
	for _, name := range sortedNames(stored) {
		out.stored[name] = c.copy(stored[name])
	}
	for _, name := range sortedNames(seen) {
		out.entries[name] = c.copy(seen[name])
	}
	return out
}

func (c *copier) journal(journal []nameChange) []nameChange {
	var out []nameChange
	for _, change := range journal {
		var copied nameChange
		for _, p := range change {
			e := entryChange{dir: c.copy(p.dir), name: p.name}
			if p.node != nil {
				e.node = c.copy(p.node)
			}
			copied = append(copied, e)
		}
		out = append(out, copied)
	}
	return out
}

// survivingBytes draws what a power cut leaves of one file.
func (c *copier) survivingBytes(n *inode) []byte {
	base := bytes.Clone(n.durable)
	switch {
	case c.mode == LoseAll || !n.isPending():
		return base
	case c.mode == KeepAll:
		return n.flushed(base)
	}
	pages := n.pendingPages()
	sizeMayGrow := true
	if n.cut >= 0 {
		if c.rng.IntN(2) == 0 {
			base = base[:n.cut]
		} else {
			// The truncation did not reach the disk, so neither did what was written into the space behind it.
			pages = before(pages, n.cut/pageSize)
			sizeMayGrow = false
		}
	}
	kept := c.pickPages(pages)
	for i, page := range kept {
		b := n.page(page)
		if i == len(kept)-1 && c.rng.IntN(3) == 0 {
			b = b[:min(len(b), sectorSize*(1+c.rng.IntN(pageSize/sectorSize)))]
		}
		base = grow(base, page*pageSize+int64(len(b)))
		copy(base[page*pageSize:], b)
	}
	if size := int64(len(n.data)); sizeMayGrow && size > int64(len(base)) {
		base = c.zeroTail(base, size)
	}
	return base
}

// pickPages draws a prefix (in the order of writing) or any subset.
func (c *copier) pickPages(pages []int64) []int64 {
	switch c.rng.IntN(4) {
	case 0:
		return nil
	case 1:
		return pages
	case 2:
		return pages[:c.rng.IntN(len(pages)+1)]
	}
	var kept []int64
	for _, p := range pages {
		if c.rng.IntN(2) == 0 {
			kept = append(kept, p)
		}
	}
	return kept
}

// zeroTail draws whether the size grew further than the bytes that came with it, wholly or in part.
func (c *copier) zeroTail(base []byte, size int64) []byte {
	switch c.rng.IntN(4) {
	case 0:
		return grow(base, size)
	case 1:
		return grow(base, int64(len(base))+c.rng.Int64N(size-int64(len(base))+1))
	}
	return base
}

func before(pages []int64, limit int64) []int64 {
	var out []int64
	for _, p := range pages {
		if p < limit {
			out = append(out, p)
		}
	}
	return out
}
