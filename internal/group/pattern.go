package group

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Pattern is the regular expression of a subscription (RE2 syntax). It matches names as a whole.
type Pattern struct {
	whole *regexp.Regexp
	// States is about how many states it has: each may be looked at for each byte of a name, and takes PatternStateBytes.
	States int
}

// PatternStateBytes is about what a state of a Pattern takes.
const PatternStateBytes = 40

// String returns the expression as it is matched.
func (p *Pattern) String() string { return p.whole.String() }

// MatchString says whether a topic of this name is one of its.
func (p *Pattern) MatchString(topic string) bool { return p.whole.MatchString(topic) }

// CompilePattern compiles an expression. One that is longer than patternBytesMax, or would have more than patternStatesMax states, is refused before
// that costs anything.
func CompilePattern(pattern string) (*Pattern, error) {
	if len(pattern) > patternBytesMax {
		return nil, fmt.Errorf("it has %d bytes, and may have %d", len(pattern), patternBytesMax)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl) // by itself: what encloses it must not mend it
	if err != nil {
		return nil, err
	}
	n := states(tree)
	if n > patternStatesMax {
		return nil, fmt.Errorf("it has %d states, and may have %d: what may repeat counts as often as it may", n, patternStatesMax)
	}
	if strings.Contains(pattern, `\Q`) {
		pattern = tree.String() // what encloses it would be part of a \Q without its end
	}
	whole, err := regexp.Compile(`\A(?:` + pattern + `)\z`)
	if err != nil {
		return nil, err
	}
	return &Pattern{whole, n}, nil
}

// states counts those of an expression. A class of characters counts by its ranges too, which take a state's memory by the ten ends.
func states(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCharClass:
		n += len(re.Rune) / 10
	}
	for _, sub := range re.Sub {
		n += states(sub)
	}
	switch {
	case re.Op != syntax.OpRepeat:
	case re.Max < 0:
		n *= re.Min + 1
	default:
		n *= re.Max // syntax.Parse bounds it, with those around it, by 1,000
	}
	return n
}
