package interop

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"strandline.dev/test/interop/steps"
)

const (
	readme     = "../../README.md"
	tableBegin = "<!-- clients: written by `.ci/interop -rewrite` from a run; `make interop` fails when it is stale -->\n"
	tableEnd   = "<!-- /clients -->\n"
)

// markdown is the table as this run found it.
func (d *table) markdown(t *testing.T, all []program) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The %d steps of a walk: %s. Between two of them the broker is killed with -9 and started again.\n\n", len(steps.Names), strings.Join(steps.Names, ", "))
	b.WriteString("| client | language | version | exercised | not offered by the client |\n|---|---|---|---|---|\n")
	for _, p := range all {
		o, done := d.rows[p.name], 0
		whys, of := []string{}, map[string][]string{} // the steps of each reason, in the order of the walk
		for _, name := range steps.Names {
			why := o.steps[name]
			if why == "ok" {
				done++
				continue
			}
			if of[why] == nil {
				whys = append(whys, why)
			}
			of[why] = append(of[why], name)
		}
		exercised := fmt.Sprintf("%d of %d", done, len(steps.Names))
		if done == len(steps.Names) {
			exercised = fmt.Sprintf("all %d", done)
		}
		var lacks []string
		for _, why := range whys {
			lacks = append(lacks, strings.Join(of[why], ", ")+": "+why)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", strings.TrimSuffix(p.name, "-"+o.version), p.language, o.version, exercised, strings.Join(lacks, "; "))
	}
	fmt.Fprintf(&b, "\nKafka's own command-line tools, %s:\n\n| tool | tasks |\n|---|---|\n", pinned(t, pin{"maven", "org.apache.kafka:kafka-tools", ""}))
	for i := 0; i < len(d.tasks); {
		tool := d.tasks[i].tool
		var names []string
		for ; i < len(d.tasks) && d.tasks[i].tool == tool; i++ {
			names = append(names, d.tasks[i].name)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", tool, strings.Join(names, ", "))
	}
	return b.String()
}

// check compares the README with this run, or with -rewrite writes it.
func (d *table) check(t *testing.T, all []program) {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	old, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		t.Fatalf("README.md has no table of clients between %q and %q", tableBegin, tableEnd)
	}
	now := d.markdown(t, all)
	switch {
	case old == now:
	case *rewrite:
		if err := os.WriteFile(readme, []byte(before+tableBegin+now+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("README's table of clients is stale; `.ci/interop -rewrite` writes it. This run:\n%s", now)
	}
}
