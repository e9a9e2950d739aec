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
	// Space reports on the file system that holds a name. It stands apart from FS: it is asked for by people, not by the log.
	Space func(name string) (Space, error)
	// OpenFiles is how many files and sockets this process may have open at once; 0 says that nobody knows of a bound.
	OpenFiles int64
}

// Space is how much room a file system has, in bytes.
type Space struct {
	// Total is the size of the file system, and Usable what this process may still write.
	Total, Usable int64
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
