package sys

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"time"
)

// systemFS is the file system of this machine.
type systemFS struct{}

// OpenFile implements FS.
func (systemFS) OpenFile(name string, flag int, perm os.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &systemFile{File: f}, nil
}

// Rename implements FS.
func (systemFS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

// Remove implements FS.
func (systemFS) Remove(name string) error { return os.Remove(name) }

// MkdirAll implements FS.
func (systemFS) MkdirAll(name string, perm os.FileMode) error { return os.MkdirAll(name, perm) }

// ReadDir implements FS. A name that disappears while the directory is read is left out.
func (systemFS) ReadDir(name string) ([]FileInfo, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	infos := make([]FileInfo, 0, len(entries))
	for _, e := range entries {
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, fileInfo(st))
	}
	return infos, nil
}

// SyncDir implements FS.
func (systemFS) SyncDir(name string) error { return syncDir(name) }

// SyncAll implements FS.
func (systemFS) SyncAll(name string) error { return syncAll(name) }

// systemFile is an open file of this machine; ReadAt, WriteAt, Truncate and Close are package os's.
type systemFile struct{ *os.File }

// Sync implements File.
func (f *systemFile) Sync() error { return syncFile(f.File) }

// Stat implements File.
func (f *systemFile) Stat() (FileInfo, error) {
	st, err := f.File.Stat()
	if err != nil {
		return FileInfo{}, err
	}
	return fileInfo(st), nil
}

// Lock implements File.
func (f *systemFile) Lock() error { return lockFile(f.File) }

func fileInfo(st fs.FileInfo) FileInfo {
	info := FileInfo{Name: st.Name(), ModTime: st.ModTime(), IsDir: st.IsDir()}
	if !info.IsDir {
		info.Size = st.Size()
	}
	return info
}

// systemNet is TCP.
type systemNet struct{}

// Listen implements Net.
func (systemNet) Listen(address string) (net.Listener, error) { return net.Listen("tcp", address) }

// Dial implements Net.
func (systemNet) Dial(ctx context.Context, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// systemWall is the wall clock of this machine.
type systemWall struct{}

// Now implements Wall.
func (systemWall) Now() time.Time { return time.Now() }
