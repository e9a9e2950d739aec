package mutants

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var runFlag = flag.Int("mutants.run", -1, "how many mutants to run, chosen at random; 0 for all, -1 for none")

// root is the module's directory.
const root = "../.."

// mutant is one broken rule.
type mutant struct {
	name, rule, file, catch string
	// edits are pairs of lines taken out and put in.
	edits [][2]string
}

// read parses a mutant file.
func read(t *testing.T, path string) mutant {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, body, ok := strings.Cut(string(b), "<<<<\n")
	if !ok {
		t.Fatalf("%s: no <<<<", path)
	}
	m := mutant{name: strings.TrimSuffix(filepath.Base(path), ".mutant")}
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "rule":
			m.rule = value
		case "file":
			m.file = value
		case "catch":
			m.catch = value
		}
	}
	for edit := range strings.SplitSeq(body, "<<<<\n") {
		from, to, ok1 := strings.Cut(edit, "====\n")
		to, _, ok2 := strings.Cut(to, ">>>>\n")
		if !ok1 || !ok2 {
			t.Fatalf("%s: an edit without ==== or >>>>", path)
		}
		m.edits = append(m.edits, [2]string{from, to})
	}
	if m.rule == "" || m.file == "" || m.catch == "" {
		t.Fatalf("%s: rule, file or catch is missing", path)
	}
	return m
}

// mutate returns the mutated source.
func (m mutant) mutate() (string, error) {
	b, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	s := string(b)
	for _, e := range m.edits {
		if n := strings.Count(s, e[0]); n != 1 {
			return "", fmt.Errorf("%s: in %s %d times, want 1:\n%s", m.name, m.file, n, e[0])
		}
		s = strings.Replace(s, e[0], e[1], 1)
	}
	return s, nil
}

// command is what must fail.
func (m mutant) command(t *testing.T) []string {
	t.Helper()
	switch f := strings.Fields(m.catch); {
	case len(f) == 3 && f[0] == "sim":
		return []string{"./internal/sim", "-run", "TestSim$", "-sim.seeds", f[1], "-sim.events", f[2]}
	case len(f) == 3 && f[0] == "test":
		return []string{f[1], "-run", f[2]}
	}
	t.Fatalf("%s: catch: %q", m.name, m.catch)
	return nil
}

func all(t *testing.T) []mutant {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.mutant")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no mutants: %v", err)
	}
	var out []mutant
	for _, p := range paths {
		out = append(out, read(t, p))
	}
	return out
}

func TestMutants_FitTheSource(t *testing.T) {
	for _, m := range all(t) {
		if _, err := m.mutate(); err != nil {
			t.Error(err)
		}
		m.command(t)
	}
}

// TestMutants_AreCaught runs mutants. One that does not build is no mutant.
func TestMutants_AreCaught(t *testing.T) {
	ms := all(t)
	rand.Shuffle(len(ms), func(a, b int) { ms[a], ms[b] = ms[b], ms[a] })
	switch n := *runFlag; {
	case n < 0:
		ms = nil
	case n > 0:
		ms = ms[:min(n, len(ms))]
	}
	for _, m := range ms {
		t.Run(m.name, func(t *testing.T) { catch(t, m) })
	}
}

func catch(t *testing.T, m mutant) {
	t.Helper()
	source, err := m.mutate()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mutated, overlay := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json")
	original, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	for path, b := range map[string][]byte{mutated: []byte(source), overlay: list} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) ([]byte, error) {
		c := exec.Command("go", append(args[:1:1], append([]string{"-overlay", overlay}, args[1:]...)...)...)
		c.Dir = root
		return c.CombinedOutput()
	}
	if out, err := run("build", "./internal/..."); err != nil {
		t.Fatalf("does not build: %s", out)
	}
	out, err := run(append([]string{"test", "-count=1"}, m.command(t)...)...)
	if err == nil {
		t.Fatalf("nobody noticed: %s\n%s", m.rule, out)
	}
	if !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic:") {
		t.Fatalf("failed for another reason: %s", out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, ": seed ") || strings.Contains(line, "--- FAIL") || strings.Contains(line, "panic:") {
			t.Logf("caught: %s", strings.TrimSpace(line))
			return
		}
	}
}
