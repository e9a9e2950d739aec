package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// metric is a column of a suite's table.
type metric struct {
	key, short, title string
	places            int
}

func (m metric) format(v float64) string {
	text := fmt.Sprintf("%.*f", m.places, v)
	if m.places > 0 {
		return text
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func metricsOf(suite string) []metric {
	switch suite {
	case suiteThroughput:
		return []metric{
			{"produce.records_per_s", "produce/s", "produce rec/s", 0}, {"produce.server_us", "us", "broker us/rec", 2},
			{"produce.client_us", "client", "client us/rec", 2},
			{"consume.records_per_s", "consume/s", "consume rec/s", 0}, {"consume.server_us", "us", "broker us/rec", 2},
			{"consume.client_us", "client", "client us/rec", 2},
			{"idle_rss_mb", "idle MB", "idle RSS MB", 0}, {"consume.server_rss_mb", "after MB", "RSS MB after", 0},
			{"consume.server_peak_rss_mb", "peak MB", "peak RSS MB", 0},
		}
	case suiteStart:
		return []metric{{"firstack.seconds", "first ack s", "first ack, s", 3}, {"firstack.server_rss_mb", "RSS MB", "RSS MB then", 0}}
	}
	return []metric{
		{"latency.latency_ms.p50", "p50", "ack p50 ms", 2}, {"latency.latency_ms.p99", "p99", "ack p99 ms", 2},
		{"latency.latency_ms.p99_9", "p99.9", "ack p99.9 ms", 2}, {"latency.e2e_latency_ms.p99", "e2e p99", "end to end p99 ms", 2},
		{"latency.server_us", "us", "broker us/rec", 1},
	}
}

// spread is what a number of runs gave.
type spread struct{ median, least, most float64 }

func spreadOf(v []float64) spread {
	slices.Sort(v)
	n := len(v)
	return spread{(v[(n-1)/2] + v[n/2]) / 2, v[0], v[n-1]}
}

// series are the runs of one target in one suite.
type series struct {
	suite, target string
	runs          []result
}

// counts says whether a run is in the medians: it went well, and nobody else had the machine.
func (r result) counts() bool { return r.Error == "" && r.Foreign <= foreignMax }

func (s series) spread(key string) (spread, bool) {
	var v []float64
	for _, r := range s.runs {
		if x, ok := r.Values[key]; ok && r.counts() {
			v = append(v, x)
		}
	}
	if len(v) == 0 {
		return spread{}, false
	}
	return spreadOf(v), true
}

func (f *flags) printReport() error {
	all, commits, err := readResults(f.out)
	if err != nil {
		return err
	}
	printMachine(commits)
	for _, suite := range []string{suiteThroughput, suiteLinger5, suiteLinger0, suiteStart} {
		printSuite(suite, all)
	}
	printBars(all)
	printCommands(all)
	return nil
}

func readResults(name string) (all []series, commits []string, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, nil, err
		}
		if !slices.Contains(commits, r.Commit) {
			commits = append(commits, r.Commit)
		}
		i := slices.IndexFunc(all, func(s series) bool { return s.suite == r.Suite && s.target == r.Target })
		if i < 0 {
			all, i = append(all, series{suite: r.Suite, target: r.Target}), len(all)
		}
		all[i].runs = append(all[i].runs, r)
	}
	return all, commits, lines.Err()
}

func find(all []series, suite, target string) series {
	for _, s := range all {
		if s.suite == suite && s.target == target {
			return s
		}
	}
	return series{}
}

func printMachine(commits []string) {
	model := shell("sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1")
	fmt.Printf("# Results\n\nMade by `bench/run.sh`; [README.md](README.md) says how. Do not edit.\n\n")
	fmt.Printf("Machine: %d x %s, %s, %s, %s. Everything (broker, client) shares these processors. Commit %s.\n",
		runtime.NumCPU(), model, shell("free -h | awk '/Mem:/ {print $2}'")+" memory", shell("uname -sr"), runtime.Version(), strings.Join(commits, ", "))
	fmt.Printf("Runs in which others had more than %.0f %% of the machine are left out. ", 100*foreignMax)
	fmt.Printf("Medians, with (least..most) of the runs. us/rec is CPU time of a process for each record.\n")
}

func shell(command string) string {
	b, _ := exec.Command("sh", "-c", command).Output()
	return strings.TrimSpace(string(b))
}

var titles = map[string]string{
	suiteThroughput: "Throughput: 64 partitions, 1 KiB, acks=all, idempotent, linger 5 ms",
	suiteLinger5:    "Latency, open loop, 10,000 records/s, linger 5 ms",
	suiteLinger0:    "Latency, open loop, 10,000 records/s, linger 0",
	suiteStart:      "Start: from the start of the process, on an empty directory, to the first acknowledged record",
}

func printSuite(suite string, all []series) {
	fmt.Printf("\n## %s\n\n| target | runs | foreign CPU, most |", titles[suite])
	columns := metricsOf(suite)
	for _, m := range columns {
		fmt.Printf(" %s |", m.title)
	}
	fmt.Printf("\n|---|---|---|%s\n", strings.Repeat("---|", len(columns)))
	failures := ""
	for _, t := range targets() {
		s := find(all, suite, t.name)
		if len(s.runs) == 0 {
			continue
		}
		foreign, counted, failed := 0.0, 0, 0
		for _, r := range s.runs {
			switch {
			case r.counts():
				foreign = max(foreign, r.Foreign)
				counted++
			case r.Error != "":
				failed++
			}
		}
		fmt.Printf("| %s | %d | %.1f %% |", t.name, counted, 100*foreign)
		for _, m := range columns {
			if v, ok := s.spread(m.key); ok {
				fmt.Printf(" %s (%s..%s) |", m.format(v.median), m.format(v.least), m.format(v.most))
			} else {
				fmt.Print(" - |")
			}
		}
		fmt.Println()
		if failed > 0 {
			failures += fmt.Sprintf("\n%s: %d runs failed: %s\n", t.name, failed, s.firstError())
		}
		if left := len(s.runs) - counted - failed; left > 0 {
			failures += fmt.Sprintf("\n%s: %d more runs are left out: others had more than %.0f %% of the machine.\n", t.name, left, 100*foreignMax)
		}
	}
	fmt.Print(failures)
}

func (s series) firstError() string {
	for _, r := range s.runs {
		if r.Error != "" {
			return strings.Join(strings.Fields(r.Error), " ")
		}
	}
	return ""
}

func printCommands(all []series) {
	fmt.Print("\n## Commands\n\nThe load of the last run of each row; addresses and process ids change.\n\n```\n")
	for _, s := range all {
		fmt.Printf("%s, %s: %s\n", s.suite, s.target, s.runs[len(s.runs)-1].Command)
	}
	fmt.Print("```\n")
}
