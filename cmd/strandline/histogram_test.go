package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestHistogramBucketsAreClose: every duration is in a bucket whose top is at most 1/64 above it, and buckets are in order.
func TestHistogramBucketsAreClose(t *testing.T) {
	var h histogram
	values := []uint64{0, 1, 63, 64, 127, 128, 129, 1000, 1e6, 1e9, 1e12, math.MaxInt64}
	for range 10_000 {
		values = append(values, rand.Uint64()>>(1+rand.IntN(63)))
	}
	slices.Sort(values)
	last := -1
	for _, v := range values {
		i := bucketOf(v)
		if i < last || i >= len(h.counts) {
			t.Fatalf("%d is in bucket %d after %d, of %d", v, i, last, len(h.counts))
		}
		last = i
		if top := uint64(bucketTop(i)); top < v || top-v > v/histogramSteps {
			t.Fatalf("%d is in bucket %d, whose top is %d", v, i, top)
		}
	}
}

func TestHistogramSummary(t *testing.T) {
	var h histogram
	if h.summary() != nil {
		t.Error("a summary of nothing")
	}
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	s := h.summary()
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"p50", s.P50, 500}, {"p90", s.P90, 900}, {"p99", s.P99, 990}, {"p99.9", s.P999, 999}, {"max", s.Max, 1000}} {
		if c.got < c.want || c.got > c.want*1.02 {
			t.Errorf("%s is %v ms, want %v", c.name, c.got, c.want)
		}
	}
	if s.Count != 1000 {
		t.Errorf("count %d", s.Count)
	}
}
