//go:build unix

package main

import (
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
