package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var rewrite = flag.Bool("rewrite", false, "rewrite docs/reference/cli.md from the commands")

const referenceFile = "../../docs/reference/cli.md"

// TestReferencePage: docs/reference/cli.md says what the commands say. After a change: go test ./cmd/strandline -run Reference -rewrite
func TestReferencePage(t *testing.T) {
	want := referencePage(newRootCommand(newApp()))
	if *rewrite {
		if err := os.WriteFile(referenceFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Errorf("%s is out of date: go test ./cmd/strandline -run Reference -rewrite", referenceFile)
	}
}

// TestEveryCommandHasHelp: each command says what it does and, if it does anything itself, shows an example.
func TestEveryCommandHasHelp(t *testing.T) {
	eachCommand(newRootCommand(newApp()), func(cmd *cobra.Command) {
		if cmd.Short == "" {
			t.Errorf("%s: no short description", cmd.CommandPath())
		}
		if !cmd.HasSubCommands() && cmd.Example == "" && !isCobras(cmd) {
			t.Errorf("%s: no example", cmd.CommandPath())
		}
		if cmd.Example != "" && !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s: its examples never use it", cmd.CommandPath())
		}
	})
}

// isCobras says that cobra wrote the command's help.
func isCobras(cmd *cobra.Command) bool {
	return cmd.Name() == "help" || cmd.Name() == "completion" || cmd.HasParent() && cmd.Parent().Name() == "completion"
}

func eachCommand(cmd *cobra.Command, fn func(*cobra.Command)) {
	fn(cmd)
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			eachCommand(sub, fn)
		}
	}
}

func referencePage(root *cobra.Command) []byte {
	var b bytes.Buffer
	b.WriteString("# Command line reference\n\nWritten by `go test ./cmd/strandline -run Reference -rewrite` from the commands themselves; do not edit.\n\n")
	fmt.Fprintf(&b, "%s\n\nFlags of every command:\n\n", root.Long)
	writeFlags(&b, root.PersistentFlags())
	eachCommand(root, func(cmd *cobra.Command) {
		if cmd == root || isCobras(cmd) && cmd.HasParent() && cmd.Parent() != root {
			return
		}
		fmt.Fprintf(&b, "\n## %s\n\n", cmd.CommandPath())
		if cmd.HasSubCommands() {
			fmt.Fprintf(&b, "%s.\n", strings.TrimSuffix(cmd.Short, "."))
			writeExamples(&b, cmd)
			return
		}
		long := cmd.Long
		if long == "" {
			long = strings.TrimSuffix(cmd.Short, ".") + "."
		}
		fmt.Fprintf(&b, "    %s\n\n", cmd.UseLine())
		writeText(&b, long)
		writeFlags(&b, cmd.LocalFlags())
		writeExamples(&b, cmd)
	})
	return b.Bytes()
}

func writeExamples(b *bytes.Buffer, cmd *cobra.Command) {
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", unindent(cmd.Example))
	}
}

// writeText keeps the line breaks of indented blocks by making them code.
func writeText(b *bytes.Buffer, text string) {
	inBlock := false
	for line := range strings.Lines(text + "\n") {
		indented := strings.HasPrefix(line, "  ")
		if indented != inBlock {
			b.WriteString("\n")
			inBlock = indented
		}
		if indented {
			b.WriteString("  ")
		}
		b.WriteString(line)
	}
	b.WriteString("\n")
}

func writeFlags(b *bytes.Buffer, flags *pflag.FlagSet) {
	var rows []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			name += " " + value
		}
		preset := f.DefValue
		if preset == "[]" || preset == "false" {
			preset = ""
		}
		if preset != "" {
			preset = "`" + preset + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", strings.ReplaceAll(name, "|", `\|`), preset, strings.ReplaceAll(usage, "|", `\|`)))
	})
	if len(rows) == 0 {
		return
	}
	b.WriteString("| flag | default | meaning |\n|---|---|---|\n" + strings.Join(rows, ""))
}

func unindent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimPrefix(line, "  "))
	}
	return b.String()
}
