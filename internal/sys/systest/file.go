package systest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"syscall"

	"strandline.dev/internal/sys"
)

// file is an open file; name is the one it was opened by.
type file struct {
	fsys   *FS
	node   *inode
	name   string
	flag   int
	closed bool
}

func (f *file) op(kind OpKind, off int64, length int) Op {
	return Op{Kind: kind, Name: f.name, Off: off, Len: length}
}

// run does one operation on an open file.
func (f *file) run(op Op, do func() error) error {
	return f.fsys.run(op, func() error {
		if f.closed {
			return os.ErrClosed
		}
		return do()
	})
}

func (f *file) writable() bool { return f.flag&(os.O_WRONLY|os.O_RDWR) != 0 }

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, wrap(f.op(OpRead, off, len(p)), syscall.EINVAL)
	}
	err = f.run(f.op(OpRead, off, len(p)), func() error {
		switch {
		case f.flag&os.O_WRONLY != 0:
			return syscall.EBADF
		case f.node.isDir:
			return syscall.EISDIR
		case off < int64(len(f.node.data)):
			n = copy(p, f.node.data[off:])
		}
		return nil
	})
	if err == nil && n < len(p) {
		// Bare, as readers compare it.
		return n, io.EOF
	}
	return n, err
}

// WriteAt implements io.WriterAt. On a full disk it writes what fits.
func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	op := f.op(OpWrite, off, len(p))
	err = f.fsys.begin(op)
	var short *ShortWrite
	if errors.As(err, &short) {
		n, _ = f.write(p[:min(short.Bytes, len(p))], off)
		return n, wrap(op, err)
	}
	if err == nil {
		n, err = f.write(p, off)
	}
	return n, wrap(op, err)
}

func (f *file) write(p []byte, off int64) (int, error) {
	fsys := f.fsys
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	end := off + int64(len(p))
	switch {
	case fsys.dead:
		return 0, ErrCrashed
	case off < 0:
		return 0, syscall.EINVAL
	case f.closed:
		return 0, os.ErrClosed
	case !f.writable():
		return 0, syscall.EBADF
	case end > fileSizeMax:
		return 0, syscall.EFBIG
	}
	var full error
	size := int64(len(f.node.data))
	if allowed := fsys.faults.allow(end - size); allowed < end-size {
		full = ErrNoSpace
		end = max(size+allowed, off)
		if end > size+allowed {
			return 0, full // not even the hole before off fits
		}
		p = p[:end-off]
	}
	fsys.writes++
	f.node.write(p, off, fsys.writes)
	fsys.pending[f.node] = struct{}{}
	fsys.faults.account(int64(len(f.node.data)) - size)
	return len(p), full
}

// Truncate implements sys.File.
func (f *file) Truncate(size int64) error {
	return f.run(f.op(OpTruncate, size, 0), func() error {
		grown := size - int64(len(f.node.data))
		switch {
		case !f.writable() || size < 0:
			return syscall.EINVAL
		case size > fileSizeMax:
			return syscall.EFBIG
		case f.fsys.faults.allow(grown) < grown:
			return ErrNoSpace
		}
		f.node.resize(size)
		f.fsys.pending[f.node] = struct{}{}
		f.fsys.faults.account(grown)
		return nil
	})
}

// Sync implements sys.File. An injected error drops the pending pages, as a kernel does.
func (f *file) Sync() error {
	op := f.op(OpSync, 0, 0)
	injected := f.fsys.begin(op)
	return wrap(op, f.sync(injected))
}

func (f *file) sync(injected error) error {
	fsys := f.fsys
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	switch {
	case fsys.dead:
		return ErrCrashed
	case f.closed:
		return os.ErrClosed
	case f.node.isDir:
		fsys.journal = syncDir(fsys.journal, f.node)
		return injected
	case injected != nil:
		f.node.drop()
		return injected
	case f.node.syncErr != nil:
		err := f.node.syncErr
		f.node.syncErr = nil
		return err
	}
	f.node.sync()
	delete(fsys.pending, f.node)
	return nil
}

// Stat implements sys.File.
func (f *file) Stat() (info sys.FileInfo, err error) {
	err = f.run(f.op(OpStat, 0, 0), func() error {
		info = f.node.info(path.Base(f.name))
		return nil
	})
	return info, err
}

// Lock implements sys.File.
func (f *file) Lock() error {
	return f.run(f.op(OpLock, 0, 0), func() error {
		if f.node.lockedBy != nil && f.node.lockedBy != f {
			return fmt.Errorf("%w", sys.ErrLocked)
		}
		f.node.lockedBy = f
		return nil
	})
}

// Close implements sys.File. It makes nothing durable. It works on a crashed machine, so that tests can tidy up.
func (f *file) Close() error {
	f.fsys.mu.Lock()
	defer f.fsys.mu.Unlock()
	if f.closed {
		return wrap(f.op(OpClose, 0, 0), os.ErrClosed)
	}
	f.closed = true
	if f.node.lockedBy == f {
		f.node.lockedBy = nil
	}
	f.node.opens--
	f.fsys.release(f.node)
	return nil
}
