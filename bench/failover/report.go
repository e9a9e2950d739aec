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
	errors   int
}

func report(list []figure) {
	fmt.Printf("\n%-17s %-6s %6s %12s %10s %10s %10s %10s %14s %7s %s\n",
		"scenario", "client", "rounds", "before worst", "median ms", "bar", "worst ms", "bar", "healing worst", "errors", "")
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
		fmt.Printf("%-17s %-6s %6d %12d %10d %10s %10d %10d %14d %7d %s\n", f.scenario.name, f.client, len(f.gaps),
			slices.Max(f.calms).Milliseconds(), median.Milliseconds(), bar,
			worst.Milliseconds(), f.scenario.worst.Milliseconds(), slices.Max(f.backs).Milliseconds(), f.errors, verdict)
	}
}
