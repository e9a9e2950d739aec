//go:build !linux

package main

import "time"

// newPacer returns a sleep for one goroutine; the report's "pacer late" says how good it is here.
func newPacer() (sleep func(time.Duration), done func()) {
	return time.Sleep, func() {}
}
