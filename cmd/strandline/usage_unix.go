//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"
	"time"
)

// processCPU is the CPU time this process has used, in user and kernel mode.
func processCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// isOwn says whether the user of this process owns a file.
func isOwn(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
