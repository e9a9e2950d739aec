package main

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// newPacer returns a sleep for one goroutine. Go's timers are up to a millisecond late in an idle process, which would be most of the
// latency that is to be measured; the kernel's are not, on a thread of their own.
func newPacer() (sleep func(time.Duration), done func()) {
	runtime.LockOSThread()
	return func(d time.Duration) {
		ts := unix.NsecToTimespec(int64(d))
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil) // cut short by a signal: the caller looks at the clock again
	}, runtime.UnlockOSThread
}
