package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"
)

// printer writes results: one JSON object a line, or tables with aligned columns.
type printer struct {
	w        io.Writer
	json     bool
	noHeader bool
}

func (a *app) printer(s settings) printer {
	return printer{w: a.stdout, json: s.json, noHeader: s.noHeader}
}

// object writes v as one line of JSON.
func (p printer) object(v any) error {
	e := json.NewEncoder(p.w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table writes rows under a heading. No rows, no heading.
func (p printer) table(heading []string, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	if !p.noHeader {
		fmt.Fprintln(tw, strings.Join(heading, "\t"))
	}
	for _, r := range rows {
		cells := make([]string, len(r))
		for i, cell := range r {
			cells[i] = clip(visible(cell))
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	return tw.Flush()
}

// cellMax is how many characters of a text a table shows: more than the longest name of a topic has. A group may have 32,767; -o json has them all.
const cellMax = 300

func clip(cell string) string {
	if n := utf8.RuneCountInString(cell); n > cellMax {
		return fmt.Sprintf("%s... (%d characters)", string([]rune(cell)[:cellMax]), n)
	}
	return cell
}

// visible shows what of a name that somebody else has chosen is not to be seen, but would move the cursor, colour the screen, end the row or turn its
// direction: control and format characters, separators of lines, and bytes that are no UTF-8.
func visible(name string) string {
	isHidden := func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }
	if utf8.ValidString(name) && !strings.ContainsFunc(name, isHidden) {
		return name
	}
	var out strings.Builder
	for i, r := range name {
		_, size := utf8.DecodeRuneInString(name[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, "\\x%02x", name[i])
		case !isHidden(r):
			out.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&out, "\\x%02x", r)
		case r < 0x10000:
			fmt.Fprintf(&out, "\\u%04x", r)
		default:
			fmt.Fprintf(&out, "\\U%08x", r)
		}
	}
	return out.String()
}

// isInteractive says whether f is a terminal, so that a person may sit behind it.
func isInteractive(f any) bool {
	file, ok := f.(*os.File)
	if !ok {
		return false
	}
	st, err := file.Stat()
	if err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a character device, too
	return err != nil || !os.SameFile(st, null)
}

// confirm asks a person before something that cannot be taken back. Only a terminal is asked: a script has said what it wants.
func (a *app) confirm(s settings, question string) error {
	if s.yes || !isInteractive(a.stdin) {
		return nil
	}
	fmt.Fprintf(a.stderr, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &failure{what: "nothing was changed", todo: "answer y, or give -y"}
}
