package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// watchEvery paces the flushes of the disk's watch; each writes watchBytes.
	watchEvery = 10 * time.Millisecond
	watchBytes = 4096
	// stillMax is the longest flush of the watch in a round of which the disk is called still.
	stillMax = 50 * time.Millisecond
)

// diskWatch writes and flushes a small file beside the nodes' data for as long as the nodes run, and so knows when the disk itself stood
// still: no record is stored meanwhile, whatever the nodes do. Safe for concurrent use.
type diskWatch struct {
	file  *os.File
	stop  chan struct{}
	ended sync.WaitGroup

	mu      sync.Mutex
	flushes []flush // the last one may be under way: without its end
	failed  error
}

type flush struct{ from, to time.Time }

func watchDisk(dir string) (*diskWatch, error) {
	f, err := os.Create(filepath.Join(dir, "watch"))
	if err != nil {
		return nil, fmt.Errorf("watch of the disk: %w", err)
	}
	w := &diskWatch{file: f, stop: make(chan struct{})}
	w.ended.Go(w.run)
	return w, nil
}

func (w *diskWatch) run() {
	block := make([]byte, watchBytes)
	for {
		w.mu.Lock()
		w.flushes = append(w.flushes, flush{from: time.Now()})
		at := len(w.flushes) - 1
		w.mu.Unlock()
		_, err := w.file.WriteAt(block, 0)
		if err == nil {
			err = w.file.Sync()
		}
		w.mu.Lock()
		w.flushes[at].to, w.failed = time.Now(), err
		w.mu.Unlock()
		select {
		case <-w.stop:
			return
		case <-time.After(watchEvery):
		}
		if err != nil {
			return
		}
	}
}

// longest is the longest flush that reaches into from..to.
func (w *diskWatch) longest(from, to time.Time) (longest time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.flushes {
		if f.to.IsZero() {
			f.to = time.Now()
		}
		if f.to.After(from) && f.from.Before(to) {
			longest = max(longest, f.to.Sub(f.from))
		}
	}
	return longest, w.failed
}

func (w *diskWatch) end() {
	close(w.stop)
	w.ended.Wait()
	_ = w.file.Close()
}
