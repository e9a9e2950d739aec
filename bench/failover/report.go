package main

import (
	"fmt"
	"slices"
	"time"
)

// figure is what the rounds of a scenario gave.
type figure struct {
	scenario scenario
	client   string
	calms    []time.Duration
	gaps     []time.Duration
	backs    []time.Duration
	still    []time.Duration // of gaps, those of rounds in which the disk was still
	errors   int
}

// report prints a line a scenario. "disk still" is the worst gap of the rounds in which no flush of the disk's watch took more than stillMax, and
// how many those are; the verdict is on all rounds.
func report(list []figure) {
	fmt.Printf("\n%-17s %-6s %6s %12s %10s %10s %10s %10s %16s %14s %7s %s\n",
		"scenario", "client", "rounds", "before worst", "median ms", "bar", "worst ms", "bar", "disk still", "healing worst", "errors", "")
	for _, f := range list {
		if len(f.gaps) == 0 {
			continue
		}
		slices.Sort(f.gaps)
		median, worst := f.gaps[len(f.gaps)/2], f.gaps[len(f.gaps)-1]
		verdict := "ok"
		if worst > f.scenario.worst || (f.scenario.median > 0 && median > f.scenario.median) || (f.scenario.quiet && f.errors > 0) {
			verdict = "OVER"
		}
		bar := "-"
		if f.scenario.median > 0 {
			bar = fmt.Sprint(f.scenario.median.Milliseconds())
		}
		still := "-"
		if len(f.still) > 0 {
			still = fmt.Sprintf("%d (%d)", slices.Max(f.still).Milliseconds(), len(f.still))
		}
		fmt.Printf("%-17s %-6s %6d %12d %10d %10s %10d %10d %16s %14d %7d %s\n", f.scenario.name, f.client, len(f.gaps),
			slices.Max(f.calms).Milliseconds(), median.Milliseconds(), bar,
			worst.Milliseconds(), f.scenario.worst.Milliseconds(), still, slices.Max(f.backs).Milliseconds(), f.errors, verdict)
	}
}
