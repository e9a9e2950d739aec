package main

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// step is the ratio of two neighbouring bounds: quantiles are exact to 2 %.
const step = 1.02

// histogram counts durations from 10 microseconds on.
type histogram struct {
	mu      sync.Mutex
	buckets [1200]int
	n       int
	max     time.Duration
}

func (h *histogram) add(d time.Duration) {
	i := 0
	if d > 10*time.Microsecond {
		i = min(int(math.Log(float64(d)/1e4)/math.Log(step)), len(h.buckets)-1)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buckets[i]++
	h.n++
	h.max = max(h.max, d)
}

func (h *histogram) quantile(q float64) time.Duration {
	left := int(q * float64(h.n))
	for i, n := range h.buckets {
		if left -= n; left < 0 {
			return time.Duration(1e4 * math.Pow(step, float64(i+1)))
		}
	}
	return h.max
}

func (h *histogram) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	return fmt.Sprintf("p50 %.2f  p99 %.2f  p99.9 %.2f  max %.1f ms  (%d records)", ms(h.quantile(.5)), ms(h.quantile(.99)), ms(h.quantile(.999)), ms(h.max), h.n)
}
