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
	fmt.Fprintf(&b, "The %d steps of a walk: %s. ", len(steps.Names), strings.Join(steps.Names, ", "))
	b.WriteString("`none` to `zstd` are the codecs, checked on disk by a second client; `keys` and `values`: null and empty ones come back as they were sent; `headers`: repeated ones, in order; `null-headers`: null and empty values. ")
	b.WriteString("In `kill-9` the broker is killed under a live consumer, which must then see every record and none below its commit.\n\n")
	b.WriteString("| client | language | version | steps exercised | not offered by the client |\n|---|---|---|---|---|\n")
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
	tools, names := []string{}, map[string][]string{}
	for _, k := range d.tasks {
		if names[k.tool] == nil {
			tools = append(tools, k.tool)
		}
		names[k.tool] = append(names[k.tool], k.name)
	}
	for _, tool := range tools {
		fmt.Fprintf(&b, "| %s | %s |\n", tool, strings.Join(names[tool], ", "))
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
