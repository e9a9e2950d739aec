package interop

import (
	"strings"
	"testing"
	"time"
)

// TestChurnBook_FindsEachViolation tells a book stories of two members, some true to the rules and some not. "ask N M" is the answer N to the
// question for the group's place when M had been confirmed; "pass" lets two seconds pass.
func TestChurnBook_FindsEachViolation(t *testing.T) {
	const read = "a assigned 0; a read 0 0 0; a read 0 1 1; a committing 0 2; a committed 0 2"
	for name, c := range map[string]struct{ story, want string }{
		"in order":            {read + "; ask 2 2; a revoked 0; b assigned 0; b read 0 2 2; b committing 0 3; b committed 0 3; ask 3 3", ""},
		"read again":          {"a assigned 0; a read 0 0 0; a lost 0; b assigned 0; b read 0 0 0; b read 0 1 1; b read 0 2 2; b committing 0 3; b committed 0 3; ask 3 3", ""},
		"heard late":          {read + "; b assigned 0; b read 0 2 2; b committing 0 3; b committed 0 3; a committing 0 2; a committed 0 2; ask 3 3", ""},
		"given again":         {read + "; b assigned 0; b committing 0 2; b committed 0 2; pass; a assigned 0; a read 0 2 2; a committing 0 3; a committed 0 3; ask 3 3", ""},
		"two owners":          {read + "; b assigned 0; b read 0 2 2; b committing 0 3; b committed 0 3; pass; a committing 0 3; a committed 0 3; ask 3 3", "after b, who was given it later"},
		"a commit goes back":  {read + "; a read 0 2 2; a committing 0 3; a committed 0 3; pass; a committing 0 1; a committed 0 1; ask 3 3", "committed 1 after 3"},
		"a lost commit":       {read + "; a read 0 2 2; a committing 0 3; a committed 0 3; ask 2 3; ask 3 3", "2, and 3 had been confirmed"},
		"a place goes back":   {read + "; a read 0 2 2; ask 3 0; ask 2 0; a committing 0 3; a committed 0 3; ask 3 3", "from 3 back to 2"},
		"a record left out":   {"a assigned 0; a read 0 0 0; a read 0 2 2; a committing 0 3; a committed 0 3; ask 3 3", "read offset 2 after 0"},
		"read by nobody":      {"a assigned 0; a read 0 0 0; a lost 0; b assigned 0; b read 0 2 2; b committing 0 3; b committed 0 3; ask 3 3", "1 of 3 records were read by nobody"},
		"another record":      {"a assigned 0; a read 0 0 0; a read 0 1 7; a read 0 2 2; a committing 0 3; a committed 0 3; ask 3 3", "read 7 at offset 1"},
		"what nobody has":     {read + "; a read 0 2 2; a committing 0 3; a committed 0 3; ask 4 3", "the group's place 4"},
		"a line of its own":   {read + "; a read 0 2 2; a says hello; a committing 0 3; a committed 0 3; ask 3 3", `a says "says hello"`},
		"a number that isn't": {read + "; a read 0 2 two; a read 0 2 2; a committing 0 3; a committed 0 3; ask 3 3", `a says "read 0 2 two"`},
	} {
		t.Run(name, func(t *testing.T) {
			at := time.Unix(0, 0)
			b := newChurnBook()
			b.now = func() time.Time { return at }
			for i := range int64(3) {
				b.published(0, i, i)
			}
			for range 2 { // the feeders of the partitions that there are
				b.done()
			}
			for step := range strings.SplitSeq(c.story, "; ") {
				who, what, _ := strings.Cut(step, " ")
				at = at.Add(time.Millisecond)
				switch who {
				case "pass":
					at = at.Add(2 * time.Second)
				case "ask":
					b.asked(0, int64(what[0]-'0'), int64(what[2]-'0'))
				default:
					b.line(who, what)
				}
			}
			found := strings.Join(b.judge(1), "\n")
			if c.want == "" && found != "" || !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
			if err := b.behind(1); err != nil {
				t.Error(err)
			}
		})
	}
}
