package main

import (
	"strconv"
	"strings"
	"time"
)

// positionKind says what a position counts from.
type positionKind uint8

const (
	positionStart positionKind = iota // n records after the first one
	positionEnd                       // n records before the end
	positionExact                     // offset n
	positionTime                      // the first record not older than n milliseconds since 1970
)

// position is where consuming starts in each partition.
type position struct {
	kind positionKind
	n    int64
}

// positionFlag is the -o flag of consume. Because -o json and -o text mean the output everywhere else, it takes these too.
type positionFlag struct {
	position *position
	output   *string
	now      func() time.Time
}

func (f positionFlag) Set(v string) error {
	if v == "json" || v == "text" {
		*f.output = v
		return nil
	}
	p, err := parsePosition(v, f.now())
	if err != nil {
		return err
	}
	*f.position = p
	return nil
}

func (f positionFlag) Type() string { return "position" }

func (f positionFlag) String() string { return "" }

// parsePosition reads start, end, +N, -N, N and @TIME.
func parsePosition(v string, now time.Time) (position, error) {
	bad := usagef("position %q: want start, end, -N, +N, an offset, or @TIME", v)
	switch {
	case v == "start":
		return position{kind: positionStart}, nil
	case v == "end":
		return position{kind: positionEnd}, nil
	case strings.HasPrefix(v, "@"):
		t, err := parseInstant(v[1:], now)
		return position{kind: positionTime, n: t}, err
	}
	kind := positionExact
	digits := v
	if rest, ok := strings.CutPrefix(v, "+"); ok {
		kind, digits = positionStart, rest
	} else if rest, ok := strings.CutPrefix(v, "-"); ok {
		kind, digits = positionEnd, rest
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return position{}, bad
	}
	return position{kind: kind, n: int64(n)}, nil
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
		return 0, usagef("time %q: want 10 digits of seconds, 13 of milliseconds or 19 of nanoseconds", v)
	}
	for _, layout := range instantLayouts {
		if t, err := time.Parse(layout, v); err == nil {
			return t.UnixMilli(), nil
		}
	}
	if d, err := time.ParseDuration(v); err == nil && d < 0 {
		return now.Add(d).UnixMilli(), nil
	}
	return 0, usagef("time %q: want 2026-01-31, 2026-01-31T15:04:05Z, milliseconds since 1970, or a duration back such as -15m", v)
}

// in resolves the position in a partition that holds [start, end); an exact offset outside is not moved (the caller refuses it: a
// silent jump would hide lost records).
func (p position) in(start, end int64) int64 {
	switch p.kind {
	case positionStart:
		return min(end, start+min(p.n, end-start))
	case positionEnd:
		return max(start, end-min(p.n, end-start))
	}
	return p.n
}
