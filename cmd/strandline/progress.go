package main

import (
	"fmt"
	"time"
)

// How often a long run says how far it has come: often enough for a person who watches, seldom enough for a log file.
const (
	progressTerminal = time.Second
	progressPlain    = 10 * time.Second
)

// progress says on stderr how far a long run has come, again and again on one line for a terminal, on plain lines elsewhere, until
// stop is called. Short runs say nothing.
func (a *app) progress(text func() string) (stop func()) {
	every, format := progressPlain, "%s\n"
	terminal := isInteractive(a.stderr)
	if terminal {
		every, format = progressTerminal, "\r\x1b[K%s"
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(a.stderr, format, text())
			case <-quit:
				if terminal {
					fmt.Fprint(a.stderr, "\r\x1b[K")
				}
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}
