// Package sys is the one door to the machine: files, sockets, the wall clock that stamps records, and the boot id.
//
// Knows: how to reach the operating system, and which promises a file system makes about durability. Does not know: what is
// written or sent. Durations and timers are the standard library's (monotonic) and do not pass through here.
//
// Durability contract (what callers may rely on, and what sys/systest breaks on purpose):
//   - WriteAt reaches the page cache; it survives kill -9 but not a power cut.
//   - File.Sync makes the bytes and the size of one file durable (fdatasync). Its first error is final for that file: the
//     kernel may have marked lost pages clean, so a later success proves nothing (I11).
//   - Creating, renaming and removing a name is durable only after SyncDir of its directory.
//   - SyncAll makes everything written so far on the file system of a directory durable (syncfs on Linux).
//
// Concurrency: all methods may be called from any goroutine.
package sys

import (
	"context"
	"io"
	"net"
	"os"
	"time"
)

// Machine is what a node is given to run on.
type Machine struct {
	FS   FS
	Net  Net
	Wall Wall
	// BootID identifies the run of the operating system; "" when unreadable, which never matches another (I4).
	BootID func() string
}

// FS is a file system. Names are ordinary paths.
type FS interface {
	// OpenFile opens a file with the flags of package os.
	OpenFile(name string, flag int, perm os.FileMode) (File, error)
	// Rename replaces newName by oldName in one step.
	Rename(oldName, newName string) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// MkdirAll creates a directory and its parents.
	MkdirAll(name string, perm os.FileMode) error
	// ReadDir lists a directory in name order.
	ReadDir(name string) ([]FileInfo, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
	// SyncAll makes all earlier writes to the file system that holds name durable.
	SyncAll(name string) error
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	// Truncate sets the size.
	Truncate(size int64) error
	// Sync makes content and size durable; its first error is final (I11).
	Sync() error
	// Stat reports size and modification time.
	Stat() (FileInfo, error)
	// Lock takes an exclusive lock that ends with the file or the process, or fails at once.
	Lock() error
	Close() error
}

// FileInfo describes a name in a directory.
type FileInfo struct {
	Name    string // last element of the path
	Size    int64  // bytes
	ModTime time.Time
	IsDir   bool
}

// Net opens connections.
type Net interface {
	Listen(address string) (net.Listener, error)
	Dial(ctx context.Context, address string) (net.Conn, error)
}

// Wall is the clock that stamps records. It may step; nothing that measures a duration uses it.
type Wall interface {
	Now() time.Time
}
