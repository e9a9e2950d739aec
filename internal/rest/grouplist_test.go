package rest

import (
	"strings"
	"testing"
)

// TestGroupList_APageEndsWithANameThatCanBeSaid: else nobody could ask for the next one.
func TestGroupList_APageEndsWithANameThatCanBeSaid(t *testing.T) {
	long := strings.Repeat("n", groupNameMax+1)
	groups := []groupSummary{{Group: "a"}, {Group: long}, {Group: long + "n"}, {Group: "o"}, {Group: "p"}}
	for limit, want := range map[int]int{1: 1, 2: 4, 3: 4, 4: 4, 5: 5, 9: 5} {
		if got := pageOf(groups, limit); got != want {
			t.Errorf("limit %d: %d, want %d", limit, got, want)
		}
	}
	if got := pageOf(groups[:3], 2); got != 3 {
		t.Errorf("with long names at the end: %d", got)
	}
}
