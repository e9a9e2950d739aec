package main

import (
	"math/bits"
	"sync"
	"time"
)

// Bucket widths are within 1/histogramSteps of the value: 64 linear steps in each power of two.
const (
	histogramStepBits = 6
	histogramSteps    = 1 << histogramStepBits
)

// histogram counts durations, so that a long run costs no more memory than a short one. Safe for concurrent use.
type histogram struct {
	mu     sync.Mutex
	counts [(64 - histogramStepBits) * histogramSteps]int64
	n      int64
	max    time.Duration
}

// bucketOf finds the bucket of a duration: the first two powers of two are exact, each further one has histogramSteps buckets.
func bucketOf(ns uint64) int {
	shift := max(0, bits.Len64(ns)-histogramStepBits-1)
	return shift*histogramSteps + int(ns>>shift)
}

// bucketTop is the largest duration in a bucket.
func bucketTop(i int) time.Duration {
	if i < 2*histogramSteps {
		return time.Duration(i)
	}
	shift := i/histogramSteps - 1
	return time.Duration((uint64(i-shift*histogramSteps)+1)<<shift - 1)
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[bucketOf(uint64(d))]++
	h.n++
	h.max = max(h.max, d)
}

// latency is a histogram's summary, in milliseconds.
type latency struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50Ms"`
	P90   float64 `json:"p90Ms"`
	P99   float64 `json:"p99Ms"`
	P999  float64 `json:"p999Ms"`
	Max   float64 `json:"maxMs"`
}

// summary is nil when nothing was measured.
func (h *histogram) summary() *latency {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n == 0 {
		return nil
	}
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return &latency{
		Count: h.n, P50: ms(h.quantileLocked(0.5)), P90: ms(h.quantileLocked(0.9)),
		P99: ms(h.quantileLocked(0.99)), P999: ms(h.quantileLocked(0.999)), Max: ms(h.max),
	}
}

// quantileLocked is the smallest bucket's top that at least q of all durations do not exceed.
func (h *histogram) quantileLocked(q float64) time.Duration {
	need := int64(q * float64(h.n))
	if float64(need) < q*float64(h.n) {
		need++
	}
	var seen int64
	for i, c := range h.counts {
		if seen += c; seen >= need && c > 0 {
			return min(bucketTop(i), h.max)
		}
	}
	return h.max
}
