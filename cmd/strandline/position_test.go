package main

import (
	"math"
	"testing"
	"time"
)

func TestPositionGrammar(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	for v, want := range map[string]position{
		"start":                      {kind: positionStart},
		"end":                        {kind: positionEnd},
		"+3":                         {kind: positionStart, n: 3},
		"-10":                        {kind: positionEnd, n: 10},
		"81":                         {kind: positionExact, n: 81},
		"@1767225600":                {kind: positionTime, n: 1767225600000},
		"@1767225600123":             {kind: positionTime, n: 1767225600123},
		"@1767225600123456789":       {kind: positionTime, n: 1767225600123},
		"@2026-01-01":                {kind: positionTime, n: 1767225600000},
		"@2026-01-01T00:00Z":         {kind: positionTime, n: 1767225600000},
		"@2026-01-01T00:00":          {kind: positionTime, n: 1767225600000},
		"@2026-01-01T01:00:00+01:00": {kind: positionTime, n: 1767225600000},
		"@-15m":                      {kind: positionTime, n: 1_800_000_000_000 - 15*60*1000},
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
		p    position
		want int64
	}{
		{position{kind: positionStart}, 10}, {position{kind: positionEnd}, 20},
		{position{kind: positionStart, n: 4}, 14}, {position{kind: positionStart, n: math.MaxInt64}, 20},
		{position{kind: positionEnd, n: 4}, 16}, {position{kind: positionEnd, n: math.MaxInt64}, 10},
		{position{kind: positionExact, n: 99}, 99}, {position{kind: positionExact, n: 3}, 3},
	} {
		if got := c.p.in(10, 20); got != c.want {
			t.Errorf("%+v in [10,20) is %d, want %d", c.p, got, c.want)
		}
	}
}
