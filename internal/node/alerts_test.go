package node

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	alertName    = regexp.MustCompile(`- alert: (\w+)`)
	recordedName = regexp.MustCompile(`record: "?(strandline:[a-z0-9_:]+)`)
	ruleName     = regexp.MustCompile(`strandline:[a-z0-9_:]+`)
)

// TestR182_RulesAreAboutWhatThereIs: every metric that the rules and the dashboard name is exposed, every alert fires in a drill, and has its
// words in docs/operating/alerts.md.
func TestR182_RulesAreAboutWhatThereIs(t *testing.T) {
	rules, page := readText(t, rulesFile), readText(t, metricsPage)
	dashboard := readText(t, "../../deploy/grafana/strandline.json")
	var panels struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(dashboard), &panels); err != nil || len(panels.Panels) < 10 {
		t.Fatalf("the dashboard has %d panels: %v", len(panels.Panels), err)
	}
	recorded := recordedName.FindAllStringSubmatch(rules, -1)
	isRecorded := func(name string) bool {
		return slices.ContainsFunc(recorded, func(m []string) bool { return m[1] == name })
	}
	for where, text := range map[string]string{"the rules": rules, "the dashboard": dashboard} {
		names := metricName.FindAllString(text, -1)
		if len(names) < 20 {
			t.Errorf("%s name only %d metrics", where, len(names))
		}
		for _, name := range names {
			if !strings.Contains(page, "| `"+name+"` |") && !strings.Contains(page, "| `"+partsOf.ReplaceAllString(name, "")+"` | histogram |") {
				t.Errorf("%s name %s, which no node exposes", where, name)
			}
		}
		for _, name := range ruleName.FindAllString(text, -1) {
			if !isRecorded(name) {
				t.Errorf("%s name %s, which no rule records", where, name)
			}
		}
	}
	runbook := readText(t, "../../docs/operating/alerts.md")
	for _, m := range alertName.FindAllStringSubmatch(rules, -1) {
		if !slices.ContainsFunc(drills, func(d drill) bool { return slices.Contains(d.fires, m[1]) }) {
			t.Errorf("%s fires in no drill", m[1])
		}
		if !strings.Contains(runbook, "\n## "+m[1]+"\n") {
			t.Errorf("docs/operating/alerts.md does not say what to do about %s", m[1])
		}
	}
}
