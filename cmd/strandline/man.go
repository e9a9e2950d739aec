package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newManCommand makes `man`, which packages run when they are built; people read what it writes.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write a manual page for each command into a directory", Hidden: true,
		Example: "  strandline man ./man && man ./man/strandline.1",
		Args:    exactArgs("DIR"),
		RunE:    func(cmd *cobra.Command, args []string) error { return writeManual(cmd.Root(), args[0]) },
	}
}

// writeManual writes one page of section 1 for each command that is not hidden.
func writeManual(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return &failure{what: "no directory for the pages", why: err}
	}
	var write func(*cobra.Command) error
	write = func(cmd *cobra.Command) error {
		if cmd.Hidden || cmd.Name() == "help" {
			return nil
		}
		if err := os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), manualPage(cmd), 0o644); err != nil {
			return &failure{what: "the page of " + cmd.CommandPath() + " was not written", why: err}
		}
		for _, sub := range cmd.Commands() {
			if err := write(sub); err != nil {
				return err
			}
		}
		return nil
	}
	return write(root)
}

// pageName is the name of a command's page: strandline-topic-create.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manualPage is the page of one command in roff. It carries no date, so that the same source gives the same page.
func manualPage(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH %q 1 \"\" \"strandline\" \"Strandline\"\n.nh\n.ad l\n", strings.ToUpper(pageName(cmd)))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", pageName(cmd), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	manualText(&b, cmp.Or(cmd.Long, cmd.Short+"."))
	manualFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	manualFlags(&b, "OPTIONS OF EVERY COMMAND", cmd.InheritedFlags())
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	var also []string
	if cmd.HasParent() {
		also = append(also, cmd.Parent().CommandPath())
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			also = append(also, sub.CommandPath())
		}
	}
	if len(also) > 0 {
		b.WriteString(".SH SEE ALSO\n")
		for i, path := range also {
			also[i] = ".BR " + roff(strings.ReplaceAll(path, " ", "-")) + " (1)"
		}
		b.WriteString(strings.Join(also, ",\n") + "\n")
	}
	return b.Bytes()
}

// manualText keeps empty lines as paragraphs and the line breaks of indented blocks.
func manualText(b *bytes.Buffer, text string) {
	inBlock := false
	for line := range strings.Lines(text + "\n") {
		line = strings.TrimRight(line, "\n")
		switch indented := strings.HasPrefix(line, "  "); {
		case indented && !inBlock:
			b.WriteString(".nf\n")
			inBlock = true
		case !indented && inBlock:
			b.WriteString(".fi\n")
			inBlock = false
		}
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(roff(line) + "\n")
	}
	if inBlock {
		b.WriteString(".fi\n")
	}
}

func manualFlags(b *bytes.Buffer, title string, flags *pflag.FlagSet) {
	began := false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if !began {
			fmt.Fprintf(b, ".SH %s\n", title)
			began = true
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			name += " " + value
		}
		if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(name), roff(usage))
	})
}

// roff takes the meaning from what a formatter would take for its own: a backslash, a dash, a dot or quote that begins a line.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			b.WriteString(`\&`)
		}
		b.WriteString(line)
	}
	return b.String()
}
