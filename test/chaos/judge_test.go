package chaos

import (
	"strings"
	"testing"
)

// TestJudge_FindsEachViolation proves the checker on hand-made histories before it judges the broker.
func TestJudge_FindsEachViolation(t *testing.T) {
	const p = int32(0)
	// Values 1, 2, 3 were sent in that order; 1 and 3 were acknowledged at offsets 0 and 2.
	for _, c := range []struct {
		name string
		log  []read
		want string // "" = no violation
	}{
		{"all there", []read{{0, 1}, {1, 2}, {2, 3}}, ""},
		{"unacknowledged one missing, offsets kept", []read{{0, 1}, {2, 3}}, ""},
		{"lost", []read{{0, 1}, {1, 2}}, "P1"},
		{"all lost", nil, "P1"},
		{"first lost", []read{{1, 2}, {2, 3}}, "P1"},
		{"invented", []read{{0, 1}, {1, 2}, {2, 3}, {3, 9}}, "P3"},
		{"duplicated", []read{{0, 1}, {1, 2}, {2, 3}, {3, 3}}, "P4"},
		{"unacknowledged duplicated", []read{{0, 1}, {1, 2}, {2, 3}, {3, 2}}, "P4"},
		{"reordered", []read{{0, 2}, {1, 1}, {2, 3}}, "P5"},
		{"moved", []read{{0, 1}, {1, 2}, {3, 3}}, "P19"},
	} {
		h := newHistory()
		for _, v := range []uint64{1, 2, 3} {
			h.send(p, v)
		}
		h.ack(1, 0)
		h.ack(3, 2)
		bad := h.judge(map[int32][]read{p: c.log})
		if c.want == "" && len(bad) != 0 {
			t.Errorf("%s: a good history was refused: %v", c.name, bad)
		}
		if c.want != "" && !strings.Contains(strings.Join(bad, "\n"), c.want+" ") {
			t.Errorf("%s: want %s, got %v", c.name, c.want, bad)
		}
	}
}
