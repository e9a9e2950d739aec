// Command compare measures Strandline beside other brokers on one machine: it starts each of them on a free loopback port with an empty
// data directory, runs a load, stops it, and takes the next, round after round, so that what changes on the machine in the meantime
// touches all of them alike. bench/run.sh builds everything that it starts.
//
// Each result is a line of JSON in -out; -report makes Markdown of it. A run in which processes of others took more than foreignMax of
// the machine is repeated.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// flags are where everything is, and how much of it to run.
type flags struct {
	bin     string // directory with strandline, kbench, kfakesrv, nats-server, natsbench
	kafka   string // directory with Kafka's jars
	work    string // scratch, on the disk that is measured
	out     string
	suites  string
	targets string
	rounds  int
	records int
	seconds int
	report  bool
}

func main() {
	var f flags
	flag.StringVar(&f.bin, "bin", "", "`DIR` with the binaries that run.sh built")
	flag.StringVar(&f.kafka, "kafka", "", "`DIR` with Apache Kafka's jars; without it Kafka is left out")
	flag.StringVar(&f.work, "work", os.TempDir(), "`DIR` for data, on the disk to be measured")
	flag.StringVar(&f.out, "out", "results.jsonl", "`FILE` that results are appended to")
	flag.StringVar(&f.suites, "suites", "throughput,linger5,linger0,start", "what to measure")
	flag.StringVar(&f.targets, "targets", "", "only these targets, comma separated (default: all)")
	flag.IntVar(&f.rounds, "rounds", 5, "runs of each target and suite")
	flag.IntVar(&f.records, "records", 1_000_000, "records of a throughput run")
	flag.IntVar(&f.seconds, "seconds", 5, "length of a latency run")
	flag.BoolVar(&f.report, "report", false, "print the report of -out and end")
	flag.Parse()
	f.bin, _ = filepath.Abs(f.bin) // the working directory is there
	run := f.measure
	if f.report {
		run = f.printReport
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// result is one run of one target.
type result struct {
	Suite   string             `json:"suite"`
	Target  string             `json:"target"`
	Commit  string             `json:"commit"`
	Command string             `json:"command"`
	Foreign float64            `json:"foreign"` // part of the machine that others took
	Tries   int                `json:"tries"`
	Values  map[string]float64 `json:"values"`
	Error   string             `json:"error,omitempty"`
}

// measure runs the suites, interleaved: each round has every target once.
func (f *flags) measure() error {
	out, err := os.OpenFile(f.out, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	commit := describeCommit()
	for suite := range strings.SplitSeq(f.suites, ",") {
		for range f.rounds {
			for _, t := range f.chosen(suite) {
				r := f.runCalm(suite, t)
				r.Commit = commit
				fmt.Fprintln(os.Stderr, r.line())
				if err := json.NewEncoder(out).Encode(r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// chosen are the targets that take part in a suite.
func (f *flags) chosen(suite string) []target {
	var out []target
	for _, t := range targets() {
		wanted := f.targets == "" || slices.Contains(strings.Split(f.targets, ","), t.name)
		if wanted && slices.Contains(t.suites, suite) && (t.kind != kindKafka || f.kafka != "") {
			out = append(out, t)
		}
	}
	return out
}

// tries bounds how often a disturbed run is repeated.
const tries = 4

// runCalm repeats a run until nobody else had the machine.
func (f *flags) runCalm(suite string, t target) result {
	for n := 1; ; n++ {
		r := f.runOnce(suite, t)
		r.Tries = n
		if r.Foreign <= foreignMax || n == tries {
			return r
		}
		fmt.Fprintln(os.Stderr, "again:", r.line())
	}
}

func (r result) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-10s %-22s foreign %4.1f %%", r.Suite, r.Target, 100*r.Foreign)
	if r.Error != "" {
		return b.String() + "  error: " + r.Error
	}
	for _, m := range metricsOf(r.Suite) {
		if v, ok := r.Values[m.key]; ok {
			fmt.Fprintf(&b, "  %s %s", m.short, m.format(v))
		}
	}
	return b.String()
}

func describeCommit() string {
	b, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}
