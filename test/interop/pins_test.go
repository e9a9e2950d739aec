package interop

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// pin is one line of versions.txt.
type pin struct{ kind, name, version string }

// pins reads versions.txt.
func pins(t *testing.T) []pin {
	t.Helper()
	f, err := os.Open("versions.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var out []pin
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if w := strings.Fields(lines.Text()); len(w) == 3 && w[0] != "#" {
			out = append(out, pin{w[0], w[1], w[2]})
		}
	}
	return out
}

// pinned is the version of the one line that agrees with p where p says something.
func pinned(t *testing.T, p pin) string {
	t.Helper()
	var found []string
	for _, q := range pins(t) {
		if q.kind == p.kind && q.name == p.name && (p.version == "" || p.version == q.version) {
			found = append(found, q.version)
		}
	}
	if len(found) != 1 {
		t.Fatalf("versions.txt has %d lines for %+v, want one", len(found), p)
	}
	return found[0]
}

// TestPins_AgreeWithTheBuildFiles: what go.mod and Cargo.toml require is what versions.txt says.
func TestPins_AgreeWithTheBuildFiles(t *testing.T) {
	for _, p := range pins(t) {
		file, want := "", ""
		switch p.kind {
		case "go":
			file, want = "go.mod", "\t"+p.name+" v"+p.version+"\n"
		case "cargo":
			file, want = "clients/rust/Cargo.toml", p.name+` = { version = "=`+p.version+`"`
		default:
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not have %q", file, want)
		}
	}
}
