package node

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	rulesFile = "../../deploy/prometheus/strandline.rules.yml"
	// scrapeEvery is how often a drill is scraped, and its rules are evaluated.
	scrapeEvery = 15 * time.Second
)

var metricName = regexp.MustCompile(`strandline_[a-z_]+`)

// recorder scrapes the nodes of a drill as Prometheus would, and writes what it has seen as a file for `promtool test rules`.
type recorder struct {
	c       *cluster
	wanted  map[string]bool // by the rules
	scrapes int
	seen    map[string][]string // the values of each series; "_" where it was not there, "stale" where it ended
}

func newRecorder(c *cluster) *recorder {
	r := &recorder{c: c, wanted: map[string]bool{}, seen: map[string][]string{}}
	for _, name := range metricName.FindAllString(readText(c.t, rulesFile), -1) {
		r.wanted[partsOf.ReplaceAllString(name, "")] = true
	}
	return r
}

func readText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// watchInBubble scrapes for that long; each, if there is one, is done after every scrape.
func (r *recorder) watchInBubble(d time.Duration, each func()) {
	r.c.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		r.scrape()
		next := time.Now().Add(scrapeEvery)
		if each != nil {
			each()
		}
		time.Sleep(time.Until(next))
	}
}

func (r *recorder) scrape() {
	for _, m := range r.c.members {
		job := fmt.Sprintf(`instance="%s",job="strandline"`, m.host())
		if m.node == nil {
			r.note("up{"+job+"}", 0)
			continue
		}
		r.note("up{"+job+"}", 1)
		for name, f := range r.c.scrape(m.id, "/metrics") {
			if !r.wanted[name] {
				continue
			}
			for _, s := range f.series {
				id, labels, has := strings.Cut(s.id, "{")
				if has {
					job := job + "," + labels
					r.note(id+"{"+job, s.value)
				} else {
					r.note(id+"{"+job+"}", s.value)
				}
			}
		}
	}
	for id, values := range r.seen {
		if n := len(values); n == r.scrapes && values[n-1] != "_" && values[n-1] != "stale" {
			r.seen[id] = append(values, "stale") // Prometheus marks the end of a series that a scrape does not have any more
		}
	}
	r.scrapes++
}

// note adds a value of the present scrape.
func (r *recorder) note(id string, value float64) {
	values := r.seen[id]
	for len(values) < r.scrapes {
		values = append(values, "_")
	}
	r.seen[id] = append(values, strconv.FormatFloat(value, 'g', -1, 64))
}

// write makes the test file: the series, and that these alerts have fired at its end, and no others.
func (r *recorder) write(dir, name string, fires []string) {
	r.c.t.Helper()
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		r.c.t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [%q]\nevaluation_interval: 15s\ntests:\n  - interval: 15s\n    input_series:\n", rules)
	for _, id := range slices.Sorted(maps.Keys(r.seen)) {
		fmt.Fprintf(&b, "      - series: '%s'\n        values: '%s'\n", id, strings.Join(r.seen[id], " "))
	}
	b.WriteString("    promql_expr_test:\n")
	end := time.Duration(r.scrapes) * scrapeEvery
	for _, alert := range fires {
		fmt.Fprintf(&b, "      - {eval_time: %v, expr: 'clamp_max(count(count_over_time(ALERTS{alertname=\"%s\",alertstate=\"firing\"}[3h])), 1)', exp_samples: [{labels: '{}', value: 1}]}\n", end, alert)
	}
	fmt.Fprintf(&b, "      - {eval_time: %v, expr: 'count by (alertname) (count_over_time(ALERTS{alertname!~\"%s\",alertstate=\"firing\"}[3h]))', exp_samples: []}\n", end, strings.Join(fires, "|"))
	if err := os.WriteFile(filepath.Join(dir, name+".yml"), []byte(b.String()), 0o644); err != nil {
		r.c.t.Fatal(err)
	}
}
