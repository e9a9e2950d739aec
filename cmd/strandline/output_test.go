package main

import (
	"slices"
	"strings"
	"testing"
)

// TestPrinter_NamesDoNotReachTheTerminal: what somebody else has called a group moves no cursor and ends no row.
func TestPrinter_NamesDoNotReachTheTerminal(t *testing.T) {
	var out strings.Builder
	p := printer{w: &out}
	if err := p.table([]string{"GROUP", "STATE"}, [][]string{{"esc\x1b[31m\x1b]0;title\x07", "Empty"}, {"two\nrows\tand a tab", "Stable"}, {"größe-注文", "\x00\u009b"}, {"\x9bA", "a\u202eb\u2028c\u200bd\U000e0001"}}); err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(out.String())
	want := []string{"GROUP", "STATE", `esc\x1b[31m\x1b]0;title\x07`, "Empty", `two\x0arows\x09and`, "a", "tab", "Stable", "größe-注文", `\x00\u009b`, `\x9bA`, `a\u202eb\u2028c\u200bd\U000e0001`}
	long := strings.Repeat("ö", 30_000)
	if got, want := clip(long), long[:2*cellMax]+"... (30000 characters)"; got != want || clip(long[:2*cellMax]) != long[:2*cellMax] {
		t.Errorf("a long name: %.20s, %d bytes", got, len(got))
	}
	if !slices.Equal(got, want) || strings.Count(out.String(), "\n") != 5 {
		t.Errorf("got\n%s\nwant %q", out.String(), want)
	}
}
