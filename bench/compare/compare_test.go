package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		runs []float64
		want spread
	}{{[]float64{3}, spread{3, 3, 3}}, {[]float64{5, 1, 3}, spread{3, 1, 5}}, {[]float64{4, 1, 2, 9}, spread{3, 1, 9}}} {
		if got := spreadOf(c.runs); got != c.want {
			t.Errorf("%v: %v, want %v", c.runs, got, c.want)
		}
	}
}

// A run that failed gives no figures, not even those it had before; nor does one that others disturbed.
func TestSeries_LeavesBadRunsOut(t *testing.T) {
	s := series{runs: []result{
		{Values: map[string]float64{"x": 1}, Foreign: foreignMax}, {Values: map[string]float64{"x": 9}, Error: "broke"},
		{Values: map[string]float64{"x": 9}, Foreign: foreignMax + 0.01},
	}}
	if got, ok := s.spread("x"); !ok || got != (spread{1, 1, 1}) {
		t.Errorf("%v %v", got, ok)
	}
	if _, ok := s.spread("y"); ok {
		t.Error("a figure that nobody measured")
	}
}

func TestMetric_Format(t *testing.T) {
	for _, c := range []struct {
		places int
		value  float64
		want   string
	}{{0, 1234567.4, "1,234,567"}, {0, 999, "999"}, {0, 1000, "1,000"}, {2, 1234.567, "1234.57"}} {
		if got := (metric{places: c.places}).format(c.value); got != c.want {
			t.Errorf("%v: %q, want %q", c.value, got, c.want)
		}
	}
}

// What this process and its descendants use is not foreign, nor is what the kernel's threads do; everything else is.
func TestForeign_Ours(t *testing.T) {
	own := os.Getpid()
	all := map[int]process{1: {pid: 1}, 2: {pid: 2}, 10: {pid: 10, parent: 2}, own: {pid: own, parent: 1}}
	child, grandchild, stranger := own+1, own+2, own+3
	all[child], all[grandchild], all[stranger] = process{parent: own}, process{parent: child}, process{parent: 1}
	for pid, want := range map[int]bool{1: false, 10: true, own: true, child: true, grandchild: true, stranger: false} {
		if got := ours(all, pid); got != want {
			t.Errorf("process %d of %d: %v, want %v", pid, own, got, want)
		}
	}
}

// The command's name may hold anything.
func TestForeign_ReadsProcess(t *testing.T) {
	name := filepath.Join(t.TempDir(), "42", "stat")
	must(t, os.MkdirAll(filepath.Dir(name), 0o700))
	must(t, os.WriteFile(name, []byte("42 (a) b (c)) S 7 1 1 0 -1 4194304 100 200 0 0 150 50 20 30 20 0 1 0 0"), 0o600))
	got, ok := readProcess(name)
	if want := (process{pid: 42, parent: 7, seconds: 2.5}); !ok || got != want {
		t.Errorf("%+v %v, want %+v", got, ok, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
