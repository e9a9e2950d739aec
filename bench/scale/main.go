// Command scale measures what many partitions, connections, consumers and members of a group cost one node: it starts the built binary, drives it as
// clients do, and reads its processor time, memory and open files from /proc. bench/scale.sh runs it.
//
// Every part works on a node of its own. A figure is the median of -runs runs, printed beside the bar it is judged by.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// settings are the flags.
type settings struct {
	binary, kbench, dir, only string
	flush                     string
	runs                      int
	partitions, connections   int
	consumers, members        int
	records                   int64
	settle, window            time.Duration
}

// part is one group of measurements on one node.
type part struct {
	name string
	run  func(context.Context, *bench) error
}

var parts = []part{
	{"topics", manyTopics},
	{"partitions", manyPartitions},
	{"produce", manyProduced},
	{"wide", wideConsumer},
	{"connections", manyConnections},
	{"consumers", manyConsumers},
	{"group", manyMembers},
}

func main() {
	var s settings
	flag.StringVar(&s.binary, "binary", "bin/strandline", "the built binary")
	flag.StringVar(&s.kbench, "kbench", "", "the built kbench; without it the part produce is left out")
	flag.StringVar(&s.dir, "dir", os.TempDir(), "where data directories are made")
	flag.StringVar(&s.only, "only", "", "the parts to run, comma-separated (default: all)")
	flag.StringVar(&s.flush, "flush", "synced,replicated", "the flush policies of the part produce, comma-separated")
	flag.IntVar(&s.runs, "runs", 3, "runs of each part")
	flag.IntVar(&s.partitions, "partitions", 10_000, "partitions")
	flag.IntVar(&s.connections, "connections", 5_000, "idle connections")
	flag.IntVar(&s.consumers, "consumers", 1_000, "idle consumers")
	flag.IntVar(&s.members, "members", 5_000, "members of one group")
	flag.Int64Var(&s.records, "records", 1_000_000, "records of a produce run")
	flag.DurationVar(&s.settle, "settle", 20*time.Second, "pause before an idle node is looked at")
	flag.DurationVar(&s.window, "window", 20*time.Second, "how long an idle node is looked at")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	b := &bench{settings: s}
	for n := range s.runs {
		for _, p := range parts {
			if s.only != "" && !slices.Contains(strings.Split(s.only, ","), p.name) {
				continue
			}
			began := time.Now()
			if err := p.run(ctx, b); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			fmt.Fprintf(os.Stderr, "run %d: %s done in %v\n", n+1, p.name, time.Since(began).Round(time.Second))
		}
	}
	b.report()
	return nil
}

// bench collects measurements.
type bench struct {
	settings
	order  []string
	values map[string][]float64
	bars   map[string]bar
}

// bar is what a measurement is judged by; limit 0 means that it is only reported.
type bar struct {
	unit    string
	limit   float64
	atLeast bool
}

// note adds a measurement.
func (b *bench) note(name string, v float64, r bar) {
	if b.values == nil {
		b.values, b.bars = map[string][]float64{}, map[string]bar{}
	}
	if _, ok := b.values[name]; !ok {
		b.order = append(b.order, name)
	}
	b.values[name] = append(b.values[name], v)
	b.bars[name] = r
	fmt.Fprintf(os.Stderr, "  %s: %.3g %s\n", name, v, r.unit)
}

// report prints the medians.
func (b *bench) report() {
	fmt.Printf("%-66s %10s %10s %10s  %-10s %s\n", "measurement", "median", "min", "max", "unit", "bar")
	for _, name := range b.order {
		vs, r := slices.Sorted(slices.Values(b.values[name])), b.bars[name]
		median := (vs[(len(vs)-1)/2] + vs[len(vs)/2]) / 2
		fmt.Printf("%-66s %10.3g %10.3g %10.3g  %-10s %s\n", name, median, vs[0], vs[len(vs)-1], r.unit, r.verdict(median))
	}
}

func (r bar) verdict(v float64) string {
	switch {
	case r.limit == 0:
		return ""
	case r.atLeast && v >= r.limit:
		return fmt.Sprintf("at least %g: met", r.limit)
	case r.atLeast:
		return fmt.Sprintf("at least %g: NOT met", r.limit)
	case v < r.limit:
		return fmt.Sprintf("under %g: met", r.limit)
	}
	return fmt.Sprintf("under %g: NOT met", r.limit)
}

// sleep pauses, or ends with ctx.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
