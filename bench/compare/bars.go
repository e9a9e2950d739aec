package main

import (
	"fmt"
	"strings"
)

// bar is something that has to hold: the median of a target, compared with a number or with the median of another target.
type bar struct {
	suite, target, key string
	than               string // of this target; "" for the number alone
	factor             float64
	atMost             bool
	text               string
}

func bars() []bar {
	const replicated, synced, null, disk = "strandline replicated", "strandline synced", "kfake null", "kfake disk"
	var out []bar
	for _, phase := range []string{"produce", "consume"} {
		rate, cost := phase+".records_per_s", phase+".server_us"
		out = append(out,
			bar{suiteThroughput, replicated, rate, disk, 0.9, false, phase + ", replicated, at least 0.9 of kfake on disk"},
			bar{suiteThroughput, replicated, rate, null, 0.75, false, phase + ", replicated, at least 0.75 of kfake null"},
			bar{suiteThroughput, synced, rate, null, 0.5, false, phase + ", synced, at least 0.5 of kfake null"},
			bar{suiteThroughput, replicated, cost, "", 1.2, true, phase + ", replicated, broker CPU at most 1.2 us a record"},
			bar{suiteThroughput, synced, cost, "", 1.2, true, phase + ", synced, broker CPU at most 1.2 us a record"})
	}
	// The processor time is an absolute bar, set on a machine where kfake on disk took 0.9 us a record. The ratio is the same bar on any machine.
	const sameBar = 1.2 / 0.9
	for _, own := range []string{replicated, synced} {
		text := fmt.Sprintf("produce, %s, broker CPU at most 1.33 of what kfake on disk takes", strings.TrimPrefix(own, "strandline "))
		out = append(out, bar{suiteThroughput, own, "produce.server_us", disk, sameBar, true, text})
	}
	return append(out,
		bar{suiteLinger5, synced, "latency.latency_ms.p99", "", 10, true, "10,000 records/s, linger 5 ms, synced, ack p99 under 10 ms"},
		bar{suiteLinger0, synced, "latency.latency_ms.p99", "", 5, true, "10,000 records/s, linger 0, synced, ack p99 under 5 ms"})
}

func printBars(all []series) {
	fmt.Print("\n## Bars\n\n| bar | measured | met |\n|---|---|---|\n")
	for _, b := range bars() {
		v, ok := find(all, b.suite, b.target).spread(b.key)
		if !ok {
			fmt.Printf("| %s | - | not measured |\n", b.text)
			continue
		}
		value := v.median
		if b.than != "" {
			other, ok := find(all, b.suite, b.than).spread(b.key)
			if !ok {
				fmt.Printf("| %s | - | not measured |\n", b.text)
				continue
			}
			value /= other.median
		}
		met := "yes"
		if (b.atMost && value > b.factor) || (!b.atMost && value < b.factor) {
			met = "**no**"
		}
		fmt.Printf("| %s | %.2f | %s |\n", b.text, value, met)
	}
}
