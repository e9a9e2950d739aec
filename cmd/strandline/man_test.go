package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestManual: each command has a page, which names its flags and examples, and in which no line of text is taken for a request of the formatter.
func TestManual(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	root := newRootCommand(newApp())
	if err := writeManual(root, dir); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"TH": true, "SH": true, "B": true, "BR": true, "PP": true, "TP": true, "nf": true, "fi": true, "nh": true, "ad": true}
	eachCommand(root, func(cmd *cobra.Command) {
		text, err := os.ReadFile(filepath.Join(dir, pageName(cmd)+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		page := string(text)
		for line := range strings.Lines(page) {
			if request, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, ".")), " "); strings.HasPrefix(line, ".") && !known[request] {
				t.Errorf("%s: %q is a request", cmd.CommandPath(), line)
			}
		}
		if cmd.Example != "" && !strings.Contains(page, roff(strings.TrimSpace(cmd.Example))) {
			t.Errorf("%s: its page lacks the examples", cmd.CommandPath())
		}
		if f := cmd.LocalFlags().Lookup("config"); f != nil && !strings.Contains(page, `\-\-config`) {
			t.Errorf("%s: its page lacks --config", cmd.CommandPath())
		}
	})
}

func TestRoffTakesTheMeaning(t *testing.T) {
	for text, want := range map[string]string{
		`-o a\n`:         `\-o a\en`,
		".profile\n'x'":  "\\&.profile\n\\&'x'",
		"one. two 'o' x": "one. two 'o' x",
	} {
		if got := roff(text); got != want {
			t.Errorf("roff(%q) = %q, want %q", text, got, want)
		}
	}
}
