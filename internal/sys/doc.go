// Package sys is the one door to the machine: files, sockets, the wall clock that stamps records, and the boot id.
//
// Knows: how to reach the operating system, and which promises a file system makes about durability.
//
// Does not know: what is written or sent. Durations and timers are the standard library's (monotonic) and do not pass
// through here.
//
// Invariants. The durability contract, which callers may rely on and sys/systest breaks on purpose:
//   - WriteAt reaches the page cache; it survives kill -9 but not a power cut.
//   - File.Sync makes the bytes and the size of one file durable (fdatasync). Its first error is final for that file: the
//     kernel may have marked lost pages clean, so a later success proves nothing (I11). This package does not remember the
//     error; the caller does, also across restarts.
//   - Creating, renaming and removing a name is durable only after SyncDir of its directory. MkdirAll creates names too.
//   - SyncAll makes everything written so far on the file system of a directory durable (syncfs on Linux). Where the system
//     has no such call the error is errors.ErrUnsupported, and the caller syncs each file.
//   - A boot id that cannot be read is "", which never matches another (I4).
//
// Concurrency: all methods may be called from any goroutine.
//
// Files: sys.go (the interfaces), real.go with real_linux.go, real_bsd.go and real_windows.go (the system), space_*.go (room on a disk), files.go
// (small files written whole), errors.go; faultfs.go with fault_on.go and fault_off.go (the `fault` build, in which kill -9
// is a power cut: see faultfs.go).
package sys
