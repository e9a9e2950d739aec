package group

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// PositionKind says what a Position counts from.
type PositionKind uint8

const (
	PositionStart PositionKind = iota // N records after the first one
	PositionEnd                       // N records before the end
	PositionExact                     // offset N
	PositionTime                      // the first record not older than N milliseconds since 1970
)

// Position is a place in each partition, as people write it.
type Position struct {
	Kind PositionKind
	N    int64
}

// ParsePosition reads start, end, +N, -N, N and @TIME.
func ParsePosition(v string, now time.Time) (Position, error) {
	switch {
	case v == "start":
		return Position{Kind: PositionStart}, nil
	case v == "end":
		return Position{Kind: PositionEnd}, nil
	case strings.HasPrefix(v, "@"):
		t, err := parseInstant(v[1:], now)
		return Position{Kind: PositionTime, N: t}, err
	}
	kind := PositionExact
	digits := v
	if rest, ok := strings.CutPrefix(v, "+"); ok {
		kind, digits = PositionStart, rest
	} else if rest, ok := strings.CutPrefix(v, "-"); ok {
		kind, digits = PositionEnd, rest
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return Position{}, fmt.Errorf("%w %q: want start, end, -N, +N, an offset, or @TIME", ErrPosition, v)
	}
	return Position{Kind: kind, N: int64(n)}, nil
}

// instantLayouts are the forms of a point in time; without a zone it is UTC.
var instantLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly}

// parseInstant reads a point in time as milliseconds since 1970: seconds, milliseconds or nanoseconds since 1970 (told apart by their
// number of digits, as rpk does), a date or date and time, or a duration back from now such as -15m.
func parseInstant(v string, now time.Time) (int64, error) {
	if n, err := strconv.ParseUint(v, 10, 63); err == nil {
		switch {
		case len(v) <= 10:
			return int64(n) * 1000, nil
		case len(v) <= 13:
			return int64(n), nil
		case len(v) == 19:
			return int64(n) / int64(time.Millisecond), nil
		}
		return 0, fmt.Errorf("%w: time %q: want 10 digits of seconds, 13 of milliseconds or 19 of nanoseconds", ErrPosition, v)
	}
	for _, layout := range instantLayouts {
		if t, err := time.Parse(layout, v); err == nil {
			return t.UnixMilli(), nil
		}
	}
	if d, err := time.ParseDuration(v); err == nil && d < 0 {
		return now.Add(d).UnixMilli(), nil
	}
	return 0, fmt.Errorf("%w: time %q: want 2026-01-31, 2026-01-31T15:04:05Z, milliseconds since 1970, or a duration back such as -15m", ErrPosition, v)
}

// In resolves the position in a partition that holds [start, end); an exact offset outside is not moved (the caller refuses it: a
// silent jump would hide lost records).
func (p Position) In(start, end int64) int64 {
	switch p.Kind {
	case PositionStart:
		return min(end, start+min(p.N, end-start))
	case PositionEnd:
		return max(start, end-min(p.N, end-start))
	}
	return p.N
}
