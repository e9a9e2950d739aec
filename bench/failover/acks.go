package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/client"
	"strandline.dev/test/chaos/rig"
)

// writer writes to every partition at a steady pace until it is ended.
type writer struct {
	began time.Time // what its record ids begin with
	stop  func()

	mu     sync.Mutex
	acks   [][]time.Time
	failed int
}

// begin starts a client that writes to all partitions.
func begin(ctx context.Context, o options, c *rig.Cluster, name string) (*writer, error) {
	w := &writer{began: time.Now(), acks: make([][]time.Time, o.partitions)}
	switch name {
	case "raw":
		return w, w.raw(ctx, o, c)
	case "kgo":
		return w, w.kgo(o, c)
	}
	return nil, fmt.Errorf("client %q: raw or kgo", name)
}

// recordID is the header with the id of the nth record of a partition.
func (w *writer) recordID(p, n int) kgo.RecordHeader {
	return kgo.RecordHeader{Key: client.RecordIDHeader, Value: fmt.Appendf(nil, "%x-%d-%d", w.began.UnixNano(), p, n)}
}

func (w *writer) end() { w.stop() }

// acked notes an acknowledged write.
func (w *writer) acked(p int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acks[p] = append(w.acks[p], time.Now())
}

// refused notes an error that the application would see.
func (w *writer) refused(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed++
	fmt.Printf("  error at the application: %v\n", err)
}

func (w *writer) failures() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// wrote waits until each of the partitions has been written to after since.
func (w *writer) wrote(ctx context.Context, partitions []int, since time.Time) error {
	for {
		missing := w.silent(partitions, since)
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no write was acknowledged on partitions %v: %w", missing, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (w *writer) silent(partitions []int, since time.Time) (out []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range partitions {
		if n := len(w.acks[p]); n == 0 || w.acks[p][n-1].Before(since) {
			out = append(out, p)
		}
	}
	return out
}

// worst is the longest time between two acknowledged writes to one of the partitions that reaches into from..to.
func (w *writer) worst(partitions []int, from, to time.Time) (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range partitions {
		last := time.Time{}
		for _, at := range append(w.acks[p][:len(w.acks[p]):len(w.acks[p])], to) {
			if !last.IsZero() && at.After(from) && last.Before(to) {
				longest = max(longest, at.Sub(last))
			}
			last = at
		}
	}
	return longest
}
