package main

import (
	"math"
	"testing"
	"time"

	"strandline.dev/internal/group"
)

func TestPositionGrammar(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	for v, want := range map[string]group.Position{
		"start":                      {Kind: group.PositionStart},
		"end":                        {Kind: group.PositionEnd},
		"+3":                         {Kind: group.PositionStart, N: 3},
		"-10":                        {Kind: group.PositionEnd, N: 10},
		"81":                         {Kind: group.PositionExact, N: 81},
		"@1767225600":                {Kind: group.PositionTime, N: 1767225600000},
		"@1767225600123":             {Kind: group.PositionTime, N: 1767225600123},
		"@1767225600123456789":       {Kind: group.PositionTime, N: 1767225600123},
		"@2026-01-01":                {Kind: group.PositionTime, N: 1767225600000},
		"@2026-01-01T00:00Z":         {Kind: group.PositionTime, N: 1767225600000},
		"@2026-01-01T00:00":          {Kind: group.PositionTime, N: 1767225600000},
		"@2026-01-01T01:00:00+01:00": {Kind: group.PositionTime, N: 1767225600000},
		"@-15m":                      {Kind: group.PositionTime, N: 1_800_000_000_000 - 15*60*1000},
	} {
		got, err := parsePosition(v, now)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", v, got, err, want)
		}
	}
	for _, v := range []string{"", "begin", "+", "-", "--1", "1.5", "@", "@yesterday", "@15m", "@12345678901234", "-9223372036854775809", ":end"} {
		if p, err := parsePosition(v, now); exitCode(err, true) != 2 {
			t.Errorf("%q: %+v, %v, want a usage error", v, p, err)
		}
	}
}

// TestPositionInPartition: counts are cut off at the ends of the log, exact offsets are left as they are for the caller to refuse.
func TestPositionInPartition(t *testing.T) {
	for _, c := range []struct {
		p    group.Position
		want int64
	}{
		{group.Position{Kind: group.PositionStart}, 10}, {group.Position{Kind: group.PositionEnd}, 20},
		{group.Position{Kind: group.PositionStart, N: 4}, 14}, {group.Position{Kind: group.PositionStart, N: math.MaxInt64}, 20},
		{group.Position{Kind: group.PositionEnd, N: 4}, 16}, {group.Position{Kind: group.PositionEnd, N: math.MaxInt64}, 10},
		{group.Position{Kind: group.PositionExact, N: 99}, 99}, {group.Position{Kind: group.PositionExact, N: 3}, 3},
	} {
		if got := c.p.In(10, 20); got != c.want {
			t.Errorf("%+v in [10,20) is %d, want %d", c.p, got, c.want)
		}
	}
}
