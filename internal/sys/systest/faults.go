package systest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// OpKind is a kind of operation on the file system.
type OpKind uint8

// The kinds. Those up to OpSyncAll change something and are counted; the others only pass the hook.
const (
	OpCreate OpKind = iota
	OpWrite
	OpTruncate
	OpSync
	OpRename
	OpRemove
	OpMkdir
	OpSyncDir
	OpSyncAll
	OpOpen
	OpRead
	OpReadDir
	OpStat
	OpLock
	OpClose
)

var opNames = [...]string{
	"create", "write", "truncate", "sync", "rename", "remove", "mkdir", "syncdir", "syncall",
	"open", "read", "readdir", "stat", "lock", "close",
}

// String names the kind.
func (k OpKind) String() string {
	if int(k) < len(opNames) {
		return opNames[k]
	}
	return fmt.Sprintf("op-%d", uint8(k))
}

// Op is one operation, as a hook sees it before it happens.
type Op struct {
	N    int64 // counted from 1 over the operations that change something; 0 for the others
	Kind OpKind
	Name string // cleaned absolute path; of an open file, the one it was opened by
	To   string // new name of a rename
	Off  int64  // position of a read or write; new size of a truncation
	Len  int    // bytes of a read or write
}

// String describes the operation for a failing test.
func (op Op) String() string {
	return fmt.Sprintf("#%d %s %s%s off=%d len=%d", op.N, op.Kind, op.Name, op.To, op.Off, op.Len)
}

// faults is what a test has asked for.
type faults struct {
	ops     int64
	failAt  map[int64]error
	crashAt int64
	hook    func(Op) error
	latency func(Op) time.Duration
	free    int64 // bytes that may still be allocated; -1 without limit
}

// allow tells how many of the wanted bytes fit.
func (f *faults) allow(want int64) int64 {
	if f.free < 0 || want <= f.free {
		return want
	}
	return f.free
}

func (f *faults) account(grown int64) {
	if f.free >= 0 {
		f.free = max(0, f.free-grown)
	}
}

// begin counts the operation and lets faults happen. No lock is held while latency and hook run.
func (fsys *FS) begin(op Op) error {
	fsys.mu.Lock()
	if fsys.dead {
		fsys.mu.Unlock()
		return ErrCrashed
	}
	var injected error
	if op.Kind <= OpSyncAll {
		fsys.faults.ops++
		op.N = fsys.faults.ops
		injected = fsys.faults.failAt[op.N]
		if op.N == fsys.faults.crashAt {
			fsys.dead = true
			injected = ErrCrashed
		}
	}
	hook, latency := fsys.faults.hook, fsys.faults.latency
	fsys.mu.Unlock()
	if errors.Is(injected, ErrCrashed) {
		return injected
	}
	if latency != nil {
		if d := latency(op); d > 0 {
			time.Sleep(d)
		}
	}
	if hook != nil {
		injected = errors.Join(injected, hook(op))
	}
	return injected
}

// failSyncAll applies what a failed SyncAll does to pages.
func (fsys *FS) failSyncAll(err error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	if fsys.dead || errors.Is(err, ErrCrashed) {
		return
	}
	var one *SyncFault
	named := errors.As(err, &one)
	fsys.eachFile(func(name string, n *inode) {
		if !n.isPending() || (named && name != clean(one.Name)) {
			return
		}
		n.drop()
		if !named {
			n.syncErr = err
		} else if !one.Hidden {
			n.syncErr = one.Err
		}
	})
}

// Ops returns how many operations that change something were asked for.
func (fsys *FS) Ops() int64 {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	return fsys.faults.ops
}

// FailAt makes counted operation n (from 1) fail with err. A failed Sync drops the pending pages of its file.
func (fsys *FS) FailAt(n int64, err error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	if fsys.faults.failAt == nil {
		fsys.faults.failAt = map[int64]error{}
	}
	fsys.faults.failAt[n] = err
}

// CrashAt stops the machine when counted operation n (from 1) is asked for: it does not happen, and everything from then on
// fails with ErrCrashed. Crash then gives what survived.
func (fsys *FS) CrashAt(n int64) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	fsys.faults.crashAt = n
}

// Crashed tells whether the machine has stopped.
func (fsys *FS) Crashed() bool {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	return fsys.dead
}

// Hook sets a function that is asked before each operation; an error makes the operation fail. It may call Clone, wait, or
// return a SyncFault or ShortWrite. Nil takes it away.
func (fsys *FS) Hook(hook func(Op) error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	fsys.faults.hook = hook
}

// SetLatency sets how long each operation takes; nil is no time.
func (fsys *FS) SetLatency(latency func(Op) time.Duration) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	fsys.faults.latency = latency
}

// SetFree sets how many bytes files may still grow, holes counted, before ErrNoSpace; removing and truncating gives space
// back. A negative number is no limit.
func (fsys *FS) SetFree(bytes int64) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	fsys.faults.free = max(-1, bytes)
}

// FlipBit flips one bit of a byte, on disk and as read.
func (fsys *FS) FlipBit(name string, off int64, bit uint) error {
	return fsys.damage(name, off+1, func(b []byte) []byte {
		b[off] ^= 1 << (bit % 8)
		return b
	})
}

// Zero overwrites length bytes at off with zeros, on disk and as read.
func (fsys *FS) Zero(name string, off, length int64) error {
	return fsys.damage(name, off+length, func(b []byte) []byte {
		clear(b[off : off+length])
		return b
	})
}

// Cut shortens a file to size bytes, on disk and as read.
func (fsys *FS) Cut(name string, size int64) error {
	return fsys.damage(name, size, func(b []byte) []byte { return b[:size] })
}

// damage changes bytes below `needed` behind the back of everybody. What was pending is durable afterwards: damage to bytes
// that were never on disk is not a fault of a disk.
func (fsys *FS) damage(name string, needed int64, do func([]byte) []byte) error {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	n, err := fsys.find(elements(name))
	if err != nil {
		return &fs.PathError{Op: "damage", Path: name, Err: err}
	}
	if n.isDir || needed > int64(len(n.data)) {
		return fmt.Errorf("damage %s: it has %d bytes, %d needed", name, len(n.data), needed)
	}
	n.sync()
	n.data = do(n.data)
	n.durable = do(n.durable)
	return nil
}

// SetModTime sets the modification time of a file or directory.
func (fsys *FS) SetModTime(name string, t time.Time) error {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	n, err := fsys.find(elements(name))
	if err != nil {
		return &fs.PathError{Op: "chtimes", Path: name, Err: err}
	}
	n.modTime = t
	return nil
}

// Files returns the content of every file as it is seen, by path: for comparing and for messages of failing tests.
func (fsys *FS) Files() map[string][]byte {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	out := map[string][]byte{}
	var walk func(name string, n *inode)
	walk = func(name string, n *inode) {
		if !n.isDir {
			out[name] = bytes.Clone(n.data)
			return
		}
		for child, c := range n.entries {
			walk(name+"/"+child, c)
		}
	}
	walk("", fsys.root)
	return out
}
