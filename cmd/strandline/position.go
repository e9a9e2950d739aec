package main

import (
	"time"

	"strandline.dev/internal/group"
)

// positionFlag is the -o flag of consume. Because -o json and -o text mean the output everywhere else, it takes these too.
type positionFlag struct {
	position *group.Position
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
func parsePosition(v string, now time.Time) (group.Position, error) {
	p, err := group.ParsePosition(v, now)
	if err != nil {
		return p, usageError{err}
	}
	return p, nil
}
